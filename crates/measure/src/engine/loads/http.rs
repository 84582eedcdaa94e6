//! Runs the load that sends HTTP requests.

use super::Taken;
use crate::engine::{EngineError, LoadTarget, Meter, MeterSlot};
use assay_model::load::Http;
use assay_model::sample::Outcome;
use assay_web::Manner;
use std::borrow::Cow;
use std::time::Duration;

pub(super) fn run(
    meter: &Meter<'_>,
    slot: &MeterSlot<'_>,
    load: &Http,
) -> Result<Taken, EngineError> {
    let load = pointed_at(load, slot.place);
    let found = meter.tools.server(&load.kept());
    let found = found.ok_or(EngineError::Unfit("a web server that was looked up"))?;
    let stop = || meter.cancel.is_cancelled();
    let manner = Manner {
        shuffled: load.shuffle,
        requests_per_connection: load.requests_per_connection,
        washout: Duration::from(slot.ramp),
        window: Duration::from(slot.runtime),
        limit: Duration::from(slot.limit),
        threads: load.threads,
        seed: slot.seed,
    };
    let (server, manner) = match meter.tools.is_changing() {
        false => (Cow::Borrowed(found), manner),
        true => {
            // After a reload a service responds with its old configuration for a while. The
            // expected response is therefore read in the middle of the washout; earlier responses
            // do not count.
            let half = manner.washout / 2;
            if !half.is_zero() {
                let first = Manner {
                    washout: Duration::ZERO,
                    window: half,
                    ..manner
                };
                let _ = found.carry_out(&load, &first, slot.round, &stop);
            }
            match found.again(&stop) {
                Ok(now) => {
                    let rest = Manner {
                        washout: manner.washout - half,
                        ..manner
                    };
                    (Cow::Owned(now), rest)
                }
                Err(error) => return Ok(Taken::failed(error.to_string())),
            }
        }
    };
    let step = match server.carry_out(&load, &manner, slot.round, &stop) {
        Ok(step) => step,
        Err(error) => return Ok(Taken::failed(error.to_string())),
    };
    Ok(Taken {
        outcome: step.measured.outcome(),
        wall: None,
        cpu: Some(step.measured.cpu),
        tool: TOOL.to_owned(),
        series: step.measured.series(),
        workers: vec![step.into_worker()],
    })
}

const TOOL: &str = "assay-http";

impl Taken {
    fn failed(error: String) -> Self {
        Self {
            outcome: Outcome::Failed { error },
            workers: Vec::new(),
            wall: None,
            cpu: None,
            tool: TOOL.to_owned(),
            series: Vec::new(),
        }
    }
}

/// Returns the load with the target's address as its URL. A load that already has a URL is returned unchanged.
fn pointed_at(load: &Http, place: &LoadTarget) -> Http {
    match place {
        LoadTarget::Named { path } if load.url.is_empty() => Http {
            url: path.to_string_lossy().into_owned(),
            ..load.clone()
        },
        _ => load.clone(),
    }
}

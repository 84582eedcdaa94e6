//! Runs the load of a slot. Each kind of load has its own module, which converts the parameters for the load generator.

mod attributes;
mod command;
pub mod fio;
mod http;
mod imap;
mod null;

use crate::engine::{EngineError, Meter, MeterSlot};
use assay_loads::fio::FioOutput;
use assay_loads::{LoadError, LoadResult, Timing};
use assay_model::sample::{Outcome, RatePoint, Worker};
use assay_model::{Load, Nanos};

/// Default time limit of one request, sign-in or command.
pub const OPERATION_LIMIT: Nanos = Nanos(60_000_000_000);

/// Result of the load of one slot.
pub(crate) struct Taken {
    pub outcome: Outcome,
    pub workers: Vec<Worker>,
    /// Duration of the load, if the load generator reports it. `None` means the time between the two readings of the
    /// counters.
    pub wall: Option<Nanos>,
    pub cpu: Option<Nanos>,
    pub tool: String,
    pub series: Vec<RatePoint>,
}

/// Runs the load of a slot with the module for its kind.
pub(crate) fn run<E: From<EngineError>>(
    meter: &Meter<'_>,
    slot: &MeterSlot<'_>,
    guest: &mut dyn FnMut(&str, Nanos) -> Result<FioOutput, E>,
) -> Result<Taken, E> {
    let timing = Timing {
        washout: slot.ramp,
        runtime: slot.runtime,
        limit: slot.limit,
    };
    let measured = match slot.load {
        Load::Fio { workload, .. } => return fio::run(meter, slot, workload, guest),
        Load::Http(load) => return Ok(http::run(meter, slot, load)?),
        Load::Imap {
            address,
            user,
            password_file,
            sessions,
        } => imap::run(address, user, password_file, *sessions, timing, meter)?,
        Load::Attributes { files, size } => {
            attributes::run(*files, *size, slot.place, timing, meter)?
        }
        Load::Command { argv, prints } => {
            command::run(argv, prints.as_ref(), slot.place, timing, meter)
        }
        Load::Null => null::run(timing, meter),
    };
    Ok(to_sample(slot.load.name(), measured))
}

fn to_sample(name: &str, measured: Result<LoadResult, LoadError>) -> Taken {
    let (outcome, measured) = match measured {
        Ok(measured) => (to_outcome(&measured), Some(measured)),
        Err(error) => {
            let error = error.to_string();
            (Outcome::Failed { error }, None)
        }
    };
    Taken {
        outcome,
        wall: Some(measured.as_ref().map_or(Nanos(0), |measured| measured.wall)),
        cpu: measured.as_ref().map(|measured| measured.cpu),
        workers: measured
            .into_iter()
            .map(|measured| measured.worker)
            .collect(),
        tool: format!("assay-{name}"),
        series: Vec::new(),
    }
}

/// Converts the result of a load to the outcome of its sample. A sample with failed operations counts as failed,
/// because failures change how much work the successful operations do.
fn to_outcome(measured: &LoadResult) -> Outcome {
    match (measured.cancelled, measured.errors.first()) {
        (true, _) => Outcome::Interrupted,
        (false, None) => Outcome::Completed,
        (false, Some(failures)) => Outcome::Failed {
            error: format!(
                "{} of {} failed: {}",
                failures.count,
                failures.count + measured.succeeded(),
                failures.first
            ),
        },
    }
}

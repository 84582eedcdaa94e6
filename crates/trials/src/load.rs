//! A trial's load on one of its places, as a sample.

pub(crate) use assay_engine::Place;

use crate::TrialError;
use assay_engine::{Asked, Meter, Slot};
use assay_host::Host;
use assay_instruments::Cancel;
use assay_instruments::counters::Sources;
use assay_instruments::fio::Fio;
use assay_instruments::imap;
use assay_model::sample::Sample;
use assay_model::trial::TrialPlan;
use assay_model::workload::Engine;
use assay_model::{Load, Workload};
use std::path::PathBuf;

/// What does the load.
pub(crate) struct Loader<'a> {
    pub host: &'a dyn Host,
    pub cancel: &'a Cancel,
    pub now: &'a dyn Fn() -> jiff::Timestamp,
    pub fio: Option<Fio>,
    /// What `Engine::Auto` becomes on a file.
    pub engine: Engine,
    pub work: PathBuf,
    pub sources: Sources,
    /// Read once; it reaches no report.
    pub password: Option<imap::Secret>,
}

impl Loader<'_> {
    /// Does the load once.
    pub(crate) fn run(
        &self,
        plan: &TrialPlan,
        place: &Place,
        pair: u32,
        slot: u32,
    ) -> Result<Sample, TrialError> {
        let meter = Meter {
            host: self.host,
            cancel: self.cancel,
            now: self.now,
            work: &self.work,
            fio: self.fio.as_ref(),
            password: self.password.as_ref(),
        };
        let settled;
        let asked = match &plan.load {
            Load::Fio { workload, size } => {
                settled = settle(plan, workload, self.engine);
                Asked::Fio {
                    workload: &settled,
                    size: *size,
                    // The same seed for both sides of a pair: the same offsets and data.
                    seed: plan.seed ^ u64::from(pair),
                }
            }
            load => Asked::Operations {
                load,
                washout: plan.washout,
                runtime: plan.slot,
            },
        };
        Ok(meter.take(&Slot {
            asked,
            place,
            sources: &self.sources,
            target: &plan.target,
            round: pair,
            number: slot,
        })?)
    }
}

/// The workload as fio does it on a file: times from the plan, and an engine.
fn settle(plan: &TrialPlan, workload: &Workload, engine: Engine) -> Workload {
    let engine = match workload.engine {
        Engine::Auto if workload.queue_depth == 1 && !workload.direct => Engine::Psync,
        Engine::Auto => engine,
        other => other,
    };
    Workload {
        engine,
        runtime: Some(plan.slot),
        ramp: Some(plan.washout),
        ..workload.clone()
    }
}

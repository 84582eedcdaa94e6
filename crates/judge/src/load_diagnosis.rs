//! Finds what limits a load that is measured outside of a run. Also returns the times from which tuning computes how
//! much a change can gain.

use crate::doubts::SampleContext;
use crate::limit::{LimitEvidence, find_limit};
use crate::sample_figures::FiguresByDirection;
use crate::trial::build_sample_context;
use crate::workload_groups::{SampleWithFigures, judge_sample};
use assay_model::doubt::Validity;
use assay_model::result::Limit;
use assay_model::trial::Trial;
use assay_model::{Planned, Sample};

/// The limit of a load, and the times and utilisations that it was derived from.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadDiagnosis {
    /// What limits the load, with the evidence.
    pub limit: Limit,
    /// Mean time of the flush per write, and of a write with its flush, in nanoseconds.
    pub flush: Option<(f64, f64)>,
    /// Mean time of an operation in nanoseconds.
    pub latency: Option<f64>,
    /// Busy fraction of all CPUs, 0 to 1, by all processes of the machine.
    pub machine_busy: Option<f64>,
    /// Mean number of operations in flight.
    pub in_flight: f64,
}

/// Finds what limits the load of a trial, from samples without the change. `None` if all samples are void.
#[must_use]
pub fn diagnose_load(trial: &Trial, samples: &[Sample]) -> Option<LoadDiagnosis> {
    let context: SampleContext<'_> = build_sample_context(trial);
    let judged: Vec<SampleWithFigures<'_>> = samples
        .iter()
        .map(|sample| judge_sample(context, sample))
        .filter(|judged| judged.validity != Validity::Void && !judged.sides.is_empty())
        .collect();
    let valid: Vec<(&Sample, &FiguresByDirection)> =
        judged.iter().map(|one| (one.sample, &one.sides)).collect();
    let planned = Planned {
        name: trial.plan.load.name().to_owned(),
        load: trial.plan.load.clone(),
        runtime: trial.plan.slot,
        ramp: trial.plan.washout,
    };
    let target = trial.target.as_ref();
    let evidence = LimitEvidence::collect(Some(&planned), target, &trial.facts, &valid);
    if evidence.rounds == 0 {
        return None;
    }
    let counted: Vec<&Sample> = valid.iter().map(|(sample, _)| *sample).collect();
    Some(LoadDiagnosis {
        limit: crate::web::limit_of(&counted).unwrap_or_else(|| find_limit(&evidence)),
        flush: evidence.flush,
        latency: evidence.latency,
        machine_busy: evidence.machine_busy,
        in_flight: evidence
            .latency
            .map_or(1.0, |latency| (latency / 1e9 * evidence.iops).max(1.0)),
    })
}

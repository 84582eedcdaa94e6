//! Slots to pairs: the same figures and doubts as everywhere else, then one log ratio a pair.

use crate::doubts::{ABOUT_CACHED_READS, Around, Origin, clean};
use crate::figures::figures;
use crate::group;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Severity;
use assay_model::result::{Figures, JudgedSample};
use assay_model::sample::Outcome;
use assay_model::trial::{PairOutcome, Slot};
use assay_model::{Sample, Trial};
use std::collections::BTreeMap;

/// What each pair of a trial says, in order. The pair that is being measured is not in it.
#[must_use]
pub fn pairs(trial: &Trial, slots: &[Slot]) -> Vec<PairOutcome> {
    let with_figures = with_figures(trial, slots).into_iter();
    with_figures.map(|(outcome, _)| outcome).collect()
}

/// The same with the figures of A and of B, for the pairs that count.
pub(super) fn with_figures(
    trial: &Trial,
    slots: &[Slot],
) -> Vec<(PairOutcome, Option<[Figures; 2]>)> {
    let around = around(trial);
    let mut measured: BTreeMap<u32, [Option<&Slot>; 2]> = BTreeMap::new();
    for slot in slots {
        // What was measured again after an interruption replaces what it interrupted.
        measured.entry(slot.pair).or_default()[slot.side as usize] = Some(slot);
    }
    let last = measured.keys().next_back().copied().unwrap_or(0);
    let mut out = Vec::with_capacity(last as usize);
    for number in 1..=last {
        out.push(match measured.get(&number) {
            Some([Some(now), Some(changed)]) => {
                let seen = |slot| seen(around, slot, trial.plan.cached);
                pair(trial, seen(now), seen(changed))
            }
            _ if number == last => break,
            _ => (void("it was not measured to its end".to_owned()), None),
        });
    }
    out
}

/// What one slot says.
enum Seen {
    Figures(Figures),
    Void(String),
    Failed(String),
}

fn seen(around: Around<'_>, slot: &Slot, cached: bool) -> Seen {
    let worst = slot.doubts.iter().find(|d| d.severity == Severity::Void);
    if let Some(doubt) = worst {
        return Seen::Void(said(&doubt.code, &doubt.evidence));
    }
    let sample = &slot.sample;
    match &sample.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => return Seen::Void("it was interrupted".to_owned()),
        Outcome::Failed { error } => return Seen::Failed(clean(error)),
        Outcome::TimedOut { after } => {
            return Seen::Failed(format!(
                "the load did not end and was stopped after {after}"
            ));
        }
    }
    if let Some(job) = sample.workers.iter().find(|job| job.fio.error != 0) {
        return Seen::Failed(format!(
            "job `{}` ended with error {} after {}",
            clean(&job.name),
            job.fio.error,
            job.runtime
        ));
    }
    let judged = judged(around, sample, cached);
    let worst = judged.doubts.iter().find(|d| d.severity == Severity::Void);
    match worst {
        Some(doubt) if doubt.code == group::NOT_COMPLETED => Seen::Failed(doubt.evidence.clone()),
        Some(doubt) => Seen::Void(said(&doubt.code, &doubt.evidence)),
        None => Seen::Figures(figures(&judged.sides)),
    }
}

/// A sample as judged; `cached`: reads from a cache are meant.
pub(super) fn judged<'a>(
    around: Around<'_>,
    sample: &'a Sample,
    cached: bool,
) -> group::Judged<'a> {
    let judged = group::judge(around, sample);
    match cached {
        true => judged.without(&ABOUT_CACHED_READS),
        false => judged,
    }
}

/// Each slot as judged by itself, in the order of the slots.
#[must_use]
pub fn judged_slots(trial: &Trial, slots: &[Slot]) -> Vec<JudgedSample> {
    let around = around(trial);
    let one = |slot: &Slot| judged(around, &slot.sample, trial.plan.cached).to_result();
    slots.iter().map(one).collect()
}

fn said(code: &str, evidence: &str) -> String {
    format!("{code}: {evidence}")
}

fn void(reason: String) -> PairOutcome {
    PairOutcome::Void { reason }
}

fn pair(trial: &Trial, now: Seen, changed: Seen) -> (PairOutcome, Option<[Figures; 2]>) {
    match both(now, changed) {
        Ok(figures) => match measured(trial, &figures) {
            Ok(measured) => (measured, Some(figures)),
            Err(void) => (void, None),
        },
        Err(left_out) => (left_out, None),
    }
}

/// The figures of both sides, or why there are none.
fn both(now: Seen, changed: Seen) -> Result<[Figures; 2], PairOutcome> {
    Err(match (now, changed) {
        (Seen::Void(why), _) => void(format!("as it is: {why}")),
        (_, Seen::Void(why)) => void(format!("with the change: {why}")),
        (Seen::Failed(error), Seen::Failed(_)) => PairOutcome::Failed {
            error: format!("on both sides: {error}"),
        },
        (Seen::Failed(error), _) => PairOutcome::Failed {
            error: format!("without the change: {error}"),
        },
        (_, Seen::Failed(error)) => PairOutcome::FailedChanged { error },
        (Seen::Figures(now), Seen::Figures(changed)) => return Ok([now, changed]),
    })
}

fn measured(trial: &Trial, [now, changed]: &[Figures; 2]) -> Result<PairOutcome, PairOutcome> {
    // ln of the improvement of B over A.
    let better = |metric: Metric| -> Result<f64, PairOutcome> {
        let ratio = match (now.get(&metric), changed.get(&metric)) {
            (Some(now), Some(changed)) => (changed / now).ln(),
            _ => return Err(void(format!("{metric} was not measured"))),
        };
        let oriented = if metric.quantity.is_latency() {
            -ratio
        } else {
            ratio
        };
        match oriented.is_finite() {
            true => Ok(oriented),
            false => Err(void(format!("{metric} has no ratio"))),
        }
    };
    let plan = &trial.plan;
    let guards = plan
        .guards
        .iter()
        .map(|guard| better(guard.metric).map(|ln| -ln));
    // What was done in all: a percentile does not see what is rare.
    let whole = match plan.metric.quantity.is_latency() {
        true => Metric {
            quantity: Quantity::Iops,
            ..plan.metric
        },
        false => plan.metric,
    };
    let work = |figures: &Figures| figures.get(&whole).copied().unwrap_or(f64::NAN);
    Ok(PairOutcome::Measured {
        effect: better(plan.metric)?,
        guards: guards.collect::<Result<_, _>>()?,
        work: [work(now), work(changed)],
    })
}

/// What the rules about samples know from a trial.
pub(super) fn around(trial: &Trial) -> Around<'_> {
    Around {
        source: Origin::Measured,
        target: trial.target.as_ref(),
        facts: Some(&trial.facts),
    }
}

//! Judges each slot by the same rules as all samples, then computes one log ratio per pair. The verdict over all pairs
//! is in `verdict`.

use crate::doubts::{ABOUT_CACHED_READS, EvidenceOrigin, SampleContext, clean_text};
use crate::sample_figures::compute_figures;
use crate::workload_groups;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Severity;
use assay_model::result::{Figures, JudgedSample};
use assay_model::sample::Outcome;
use assay_model::trial::{PairOutcome, Slot};
use assay_model::{Sample, Trial};
use std::collections::BTreeMap;

/// Judges each pair of a trial, in order. The pair in progress is not included.
#[must_use]
pub fn judge_pairs(trial: &Trial, slots: &[Slot]) -> Vec<PairOutcome> {
    let with_figures = judge_pairs_with_figures(trial, slots).into_iter();
    with_figures.map(|(outcome, _)| outcome).collect()
}

/// Judges each pair and returns the figures of A and of B for the pairs that count for the verdict.
pub(super) fn judge_pairs_with_figures(
    trial: &Trial,
    slots: &[Slot],
) -> Vec<(PairOutcome, Option<[Figures; 2]>)> {
    let around = build_sample_context(trial);
    let mut measured: BTreeMap<u32, [Option<&Slot>; 2]> = BTreeMap::new();
    for slot in slots {
        // A slot that was measured again after an interruption replaces the interrupted one.
        measured.entry(slot.pair).or_default()[slot.side as usize] = Some(slot);
    }
    let last = measured.keys().next_back().copied().unwrap_or(0);
    let mut out = Vec::with_capacity(last as usize);
    for number in 1..=last {
        out.push(match measured.get(&number) {
            Some([Some(now), Some(changed)]) => {
                let seen = |slot| classify_slot(around, slot, trial.plan.cached);
                judge_pair(trial, seen(now), seen(changed))
            }
            _ if number == last => break,
            _ => (void_pair("it was not measured to its end".to_owned()), None),
        });
    }
    out
}

/// What one slot contributes to its pair: figures, or the reason why it has none.
enum SlotReading {
    Figures(Figures),
    Void(String),
    Failed(String),
}

fn classify_slot(around: SampleContext<'_>, slot: &Slot, cached: bool) -> SlotReading {
    let worst = slot.doubts.iter().find(|d| d.severity == Severity::Void);
    if let Some(doubt) = worst {
        return SlotReading::Void(describe_doubt(&doubt.code, &doubt.evidence));
    }
    let sample = &slot.sample;
    match &sample.outcome {
        Outcome::Completed => {}
        Outcome::Interrupted => return SlotReading::Void("it was interrupted".to_owned()),
        Outcome::Failed { error } => return SlotReading::Failed(clean_text(error)),
        Outcome::TimedOut { after } => {
            return SlotReading::Failed(format!(
                "the load did not end and was stopped after {after}"
            ));
        }
    }
    if let Some(job) = sample.workers.iter().find(|job| job.fio.error != 0) {
        return SlotReading::Failed(format!(
            "job `{}` ended with error {} after {}",
            clean_text(&job.name),
            job.fio.error,
            job.runtime
        ));
    }
    let judged = judge_slot(around, sample, cached);
    let worst = judged.doubts.iter().find(|d| d.severity == Severity::Void);
    match worst {
        Some(doubt) if doubt.code == workload_groups::NOT_COMPLETED => {
            SlotReading::Failed(doubt.evidence.clone())
        }
        Some(doubt) => SlotReading::Void(describe_doubt(&doubt.code, &doubt.evidence)),
        None => SlotReading::Figures(compute_figures(&judged.sides)),
    }
}

/// Judges the sample of a slot. `cached` means that reads are intended to come from a cache.
pub(super) fn judge_slot<'a>(
    around: SampleContext<'_>,
    sample: &'a Sample,
    cached: bool,
) -> workload_groups::SampleWithFigures<'a> {
    let judged = workload_groups::judge_sample(around, sample);
    match cached {
        true => judged.without_codes(&ABOUT_CACHED_READS),
        false => judged,
    }
}

/// Judges each slot by itself, in the order of the slots.
#[must_use]
pub fn judge_slots(trial: &Trial, slots: &[Slot]) -> Vec<JudgedSample> {
    let around = build_sample_context(trial);
    let one = |slot: &Slot| judge_slot(around, &slot.sample, trial.plan.cached).to_judged_sample();
    slots.iter().map(one).collect()
}

fn describe_doubt(code: &str, evidence: &str) -> String {
    format!("{code}: {evidence}")
}

fn void_pair(reason: String) -> PairOutcome {
    PairOutcome::Void { reason }
}

fn judge_pair(
    trial: &Trial,
    now: SlotReading,
    changed: SlotReading,
) -> (PairOutcome, Option<[Figures; 2]>) {
    match read_figures_of_both(now, changed) {
        Ok(figures) => match compare_sides(trial, &figures) {
            Ok(measured) => (measured, Some(figures)),
            Err(void) => (void, None),
        },
        Err(left_out) => (left_out, None),
    }
}

/// Returns the figures of both sides of a pair, or the outcome of a pair that has no figures.
fn read_figures_of_both(
    now: SlotReading,
    changed: SlotReading,
) -> Result<[Figures; 2], PairOutcome> {
    Err(match (now, changed) {
        (SlotReading::Void(why), _) => void_pair(format!("as it is: {why}")),
        (_, SlotReading::Void(why)) => void_pair(format!("with the change: {why}")),
        (SlotReading::Failed(error), SlotReading::Failed(_)) => PairOutcome::Failed {
            error: format!("on both sides: {error}"),
        },
        (SlotReading::Failed(error), _) => PairOutcome::Failed {
            error: format!("without the change: {error}"),
        },
        (_, SlotReading::Failed(error)) => PairOutcome::FailedChanged { error },
        (SlotReading::Figures(now), SlotReading::Figures(changed)) => return Ok([now, changed]),
    })
}

fn compare_sides(trial: &Trial, [now, changed]: &[Figures; 2]) -> Result<PairOutcome, PairOutcome> {
    // ln of the improvement of B over A.
    let better = |metric: Metric| -> Result<f64, PairOutcome> {
        let ratio = match (now.get(&metric), changed.get(&metric)) {
            (Some(now), Some(changed)) => (changed / now).ln(),
            _ => return Err(void_pair(format!("{metric} was not measured"))),
        };
        let oriented = if metric.quantity.is_lower_better() {
            -ratio
        } else {
            ratio
        };
        match oriented.is_finite() {
            true => Ok(oriented),
            false => Err(void_pair(format!("{metric} has no ratio"))),
        }
    };
    let plan = &trial.plan;
    let guards = plan
        .guards
        .iter()
        .map(|guard| better(guard.metric).map(|ln| -ln));
    // The total work is compared too, because a percentile hides rare events.
    let whole = match plan.metric.quantity.is_lower_better() {
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

/// Returns the context in which the rules about samples judge the samples of a trial.
pub(crate) fn build_sample_context(trial: &Trial) -> SampleContext<'_> {
    SampleContext {
        source: EvidenceOrigin::Measured,
        target: trial.target.as_ref(),
        facts: Some(&trial.facts),
    }
}

//! Collects the details that a report shows in addition to the pairs: the evaluation of every slot, and the latencies
//! of both sides. The pairs are judged in `pair_outcomes`.

use super::pair_outcomes::{build_sample_context, judge_slot};
use crate::estimate;
use crate::sample_figures::FiguresByDirection;
use crate::workload_groups;
use assay_model::result::JudgedSample;
use assay_model::trial::{PairOutcome, Side, Slot};
use assay_model::{Histogram, Trial};
use std::collections::BTreeMap;

/// The slots of a trial as a report shows them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JudgedSlots {
    /// The sample of each slot, in the order of the slots.
    pub samples: Vec<JudgedSample>,
    /// Latencies of all operations of A and of B, over the pairs that count for the verdict.
    pub latency: [Histogram; 2],
}

/// Judges each slot separately, by the same rules that produced `pairs`.
#[must_use]
pub fn judge_slots_for_display(
    trial: &Trial,
    slots: &[Slot],
    pairs: &[PairOutcome],
) -> JudgedSlots {
    let all: Vec<workload_groups::SampleWithFigures> = slots
        .iter()
        .map(|slot| judge_slot(build_sample_context(trial), &slot.sample, trial.plan.cached))
        .collect();
    let counts = |pair: u32| {
        let outcome = pairs.get((pair as usize).wrapping_sub(1));
        matches!(outcome, Some(PairOutcome::Measured { .. }))
    };
    // A slot that was measured again after an interruption replaces the interrupted one.
    let mut last: BTreeMap<(u32, Side), &FiguresByDirection> = BTreeMap::new();
    for (slot, judged) in slots.iter().zip(&all).filter(|(slot, _)| counts(slot.pair)) {
        last.insert((slot.pair, slot.side), &judged.sides);
    }
    let latency = |side: Side| {
        let mine = last.iter().filter(|((_, of), _)| *of == side);
        estimate::merge_latencies(&mine.map(|(_, sides)| *sides).collect::<Vec<_>>()).histogram
    };
    JudgedSlots {
        latency: [latency(Side::Now), latency(Side::Changed)],
        samples: all
            .iter()
            .map(workload_groups::SampleWithFigures::to_judged_sample)
            .collect(),
    }
}

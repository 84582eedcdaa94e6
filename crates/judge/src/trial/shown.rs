//! What a report shows beside the pairs: every measurement as judged, and the latency of both
//! sides.

use super::pairs::{around, judged};
use crate::estimate;
use crate::figures::Sides;
use crate::group;
use assay_model::result::JudgedSample;
use assay_model::trial::{PairOutcome, Side, Slot};
use assay_model::{Histogram, Trial};
use std::collections::BTreeMap;

/// The slots of a trial as judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shown {
    /// The sample of each slot, in the order of the slots.
    pub samples: Vec<JudgedSample>,
    /// Latencies of all operations of A and of B, over the pairs that count.
    pub latency: [Histogram; 2],
}

/// Judges each slot for itself by the same rules that made `pairs` of them.
#[must_use]
pub fn shown(trial: &Trial, slots: &[Slot], pairs: &[PairOutcome]) -> Shown {
    let all: Vec<group::Judged> = slots
        .iter()
        .map(|slot| judged(around(trial), &slot.sample, trial.plan.cached))
        .collect();
    let counts = |pair: u32| {
        let outcome = pairs.get((pair as usize).wrapping_sub(1));
        matches!(outcome, Some(PairOutcome::Measured { .. }))
    };
    // What was measured again replaces what it interrupted.
    let mut last: BTreeMap<(u32, Side), &Sides> = BTreeMap::new();
    for (slot, judged) in slots.iter().zip(&all).filter(|(slot, _)| counts(slot.pair)) {
        last.insert((slot.pair, slot.side), &judged.sides);
    }
    let latency = |side: Side| {
        let mine = last.iter().filter(|((_, of), _)| *of == side);
        estimate::latency(&mine.map(|(_, sides)| *sides).collect::<Vec<_>>()).histogram
    };
    Shown {
        latency: [latency(Side::Now), latency(Side::Changed)],
        samples: all.iter().map(group::Judged::to_result).collect(),
    }
}

//! What views show of a trial's slots: figures and doubts of each, latencies of both sides.

use super::pairs::{as_run, own};
use crate::estimate;
use crate::figures::{Sides, figures, sides};
use crate::group;
use assay_model::doubt::Validity;
use assay_model::result::JudgedSample;
use assay_model::sample::Outcome;
use assay_model::trial::{PairOutcome, Side, Slot};
use assay_model::{Histogram, Trial};

/// The sample of each slot as judged, in the order of the slots; the trial's own doubts come last.
#[must_use]
pub fn samples(trial: &Trial, slots: &[Slot]) -> Vec<JudgedSample> {
    let run = as_run(trial);
    let one = |slot: &Slot| {
        let mut judged = match own(&slot.sample) {
            true => operations(slot),
            false => group::judge(&run, &slot.sample).to_result(),
        };
        judged.doubts.extend(slot.doubts.iter().cloned());
        judged.validity = Validity::of(&judged.doubts).max(judged.validity);
        judged
    };
    slots.iter().map(one).collect()
}

/// A sample of a load generator of our own.
fn operations(slot: &Slot) -> JudgedSample {
    let sample = &slot.sample;
    let completed = sample.outcome == Outcome::Completed;
    JudgedSample {
        workload: sample.workload.clone(),
        target: sample.target.clone(),
        round: sample.round,
        slot: sample.slot,
        validity: match completed {
            true => Validity::Valid,
            false => Validity::Void,
        },
        doubts: Vec::new(),
        figures: match completed {
            true => figures(&sides(&sample.jobs)),
            false => Default::default(),
        },
    }
}

/// Latencies of all operations of A and of B, over the pairs that count.
#[must_use]
pub fn latency(slots: &[Slot], pairs: &[PairOutcome]) -> [Histogram; 2] {
    let counts = |slot: &&Slot| {
        let outcome = pairs.get((slot.pair as usize).wrapping_sub(1));
        matches!(outcome, Some(PairOutcome::Measured { .. }))
    };
    [Side::Now, Side::Changed].map(|side| {
        let of_side = slots.iter().filter(|slot| slot.side == side);
        let each: Vec<Sides> = of_side
            .filter(counts)
            .map(|slot| sides(&slot.sample.jobs))
            .collect();
        let each: Vec<&Sides> = each.iter().collect();
        estimate::latency(&each).histogram
    })
}

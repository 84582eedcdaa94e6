//! Measures the noise of the baseline before any change, and chooses the length of slots from this noise.

use crate::engine::{MeasureEvent, Tell};
use crate::trials::TrialError;
use crate::trials::bench::TrialBench;
use crate::trials::pairs::one_slot;
use assay_host::Host;
use assay_judge::trial::judge_pairs;
use assay_judge::trial::slot_length::{SlotBounds, choose_slot_length, count_short_slots};
use assay_loads::Cancel;
use assay_model::Nanos;
use assay_model::sample::Outcome;
use assay_model::trial::{PairOutcome, Side, Slot, Trial};

/// Number of neighbouring pairs that are measured to estimate the noise, if the slot length is fixed.
pub(crate) const NOISE_PAIRS: u32 = 3;

/// Noise of the baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of the natural logarithm of the ratio between two neighbouring slots.
    pub pair_sd: f64,
    /// Slot length that was chosen from the noise; `None` if the plan fixes the length.
    pub slot: Option<Nanos>,
}

/// Measures neighbouring slots of the baseline. If the plan permits shorter slots, measures slots of the shortest
/// length and chooses the slot length from their noise. Stores nothing. Returns `None` if the measurement was
/// interrupted or gave no figure.
///
/// # Errors
/// See [`crate::trials::pairs::measure`].
pub fn measure_noise(
    trial: &Trial,
    bench: &mut dyn TrialBench,
    host: Option<&dyn Host>,
    cancel: &Cancel,
    tell: &mut Tell<'_>,
) -> Result<Option<Noise>, TrialError> {
    let plan = &trial.plan;
    let least = plan.slot_min.filter(|least| *least < plan.slot);
    let many = match least {
        Some(least) => count_short_slots(least, plan.slot, plan.washout),
        None => 2 * NOISE_PAIRS,
    };
    bench.slots_last(least.unwrap_or(plan.slot));
    let began = bench.clocks();
    let mut slots = Vec::new();
    for number in 0..many {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let side = Side::Now;
        tell(MeasureEvent::Side { pair: 0, side });
        let of = (number, side, side, number);
        let slot = one_slot(of, String::new(), bench.clocks(), bench, host)?;
        if let Outcome::Failed { error } = slot.sample.outcome {
            return Err(TrialError::LoadFails { error });
        }
        slots.push(slot);
    }
    if cancel.is_cancelled() {
        return Ok(None);
    }
    let took = Nanos::from((bench.clocks().monotonic - began.monotonic) / many);
    let Some(seen) = (match least {
        Some(least) => noise_at_best_length(trial, &slots, least, took),
        None => noise_side_by_side(trial, &slots),
    }) else {
        bench.slots_last(plan.slot);
        return Ok(None);
    };
    bench.slots_last(seen.slot.unwrap_or(plan.slot));
    tell(MeasureEvent::Noise {
        pair_sd: seen.pair_sd,
        pairs: many / 2,
        slot: seen.slot,
    });
    Ok(Some(seen))
}

/// Returns the noise that results from pairs of two consecutive slots.
fn noise_side_by_side(trial: &Trial, slots: &[Slot]) -> Option<Noise> {
    let (firsts, seconds) = (slots.iter().step_by(2), slots.iter().skip(1).step_by(2));
    let effects: Vec<f64> = neighbour_effects(trial, firsts.zip(seconds))
        .flatten()
        .collect();
    // The mean is known to be zero, because both sides are the same.
    let squares = effects.iter().map(|x| x * x).sum::<f64>();
    (!effects.is_empty()).then(|| Noise {
        pair_sd: (squares / effects.len() as f64).sqrt(),
        slot: None,
    })
}

/// Returns the noise at the best slot length. The slots for the computation have the length `least`; each of them took
/// the time `took` in total.
fn noise_at_best_length(trial: &Trial, slots: &[Slot], least: Nanos, took: Nanos) -> Option<Noise> {
    let plan = &trial.plan;
    // Each slot relative to the previous one: ln of the figure, up to a constant.
    let mut log = 0.0;
    let neighbours = slots.iter().zip(&slots[1..]);
    let mut logs = vec![log];
    for effect in neighbour_effects(trial, neighbours) {
        log += effect?;
        logs.push(log);
    }
    let bounds = SlotBounds {
        least,
        most: plan.slot,
        besides: Nanos(took.0.saturating_sub(least.0)).max(plan.washout),
        margin: plan.margin,
        max_pairs: plan.max_pairs,
    };
    choose_slot_length(&logs, &bounds).map(|choice| Noise {
        pair_sd: choice.noise,
        slot: Some(choice.slot),
    })
}

/// Returns the log ratio of each two neighbouring slots. Both slots are baseline; only the judge needs the labels A and
/// B.
fn neighbour_effects<'a>(
    trial: &Trial,
    all: impl Iterator<Item = (&'a Slot, &'a Slot)>,
) -> impl Iterator<Item = Option<f64>> {
    let labelled = all.zip(1..).flat_map(|((first, second), pair)| {
        [(first, Side::Now), (second, Side::Changed)].map(|(slot, side)| Slot {
            pair,
            side,
            ..slot.clone()
        })
    });
    let labelled: Vec<Slot> = labelled.collect();
    judge_pairs(trial, &labelled)
        .into_iter()
        .map(|outcome| match outcome {
            PairOutcome::Measured { effect, .. } => Some(effect),
            _ => None,
        })
}

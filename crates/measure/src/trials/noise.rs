//! The machine as it is, before anything is changed: how noisy it is, and how long slots are best.

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

/// Neighbours measured to see the noise, where slots have a length already.
pub(crate) const NOISE_PAIRS: u32 = 3;

/// What was seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of the log ratio of neighbouring slots.
    pub pair_sd: f64,
    /// The length of slots that was chosen, where the plan leaves it open.
    pub slot: Option<Nanos>,
}

/// Measures neighbours of the side as it is now. Where the plan lets slots be shorter, these are the shortest,
/// and their noise decides. Nothing is stored. None when nothing can be said: interrupted, or no figure.
///
/// # Errors
/// As [`crate::trials::pairs::measure`].
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

/// Of pairs side by side.
fn noise_side_by_side(trial: &Trial, slots: &[Slot]) -> Option<Noise> {
    let (firsts, seconds) = (slots.iter().step_by(2), slots.iter().skip(1).step_by(2));
    let effects: Vec<f64> = neighbour_effects(trial, firsts.zip(seconds))
        .flatten()
        .collect();
    // The mean is known: both sides are the same.
    let squares = effects.iter().map(|x| x * x).sum::<f64>();
    (!effects.is_empty()).then(|| Noise {
        pair_sd: (squares / effects.len() as f64).sqrt(),
        slot: None,
    })
}

/// Returns the noise at the best slot length, from short slots that took so long each.
fn noise_at_best_length(trial: &Trial, slots: &[Slot], least: Nanos, took: Nanos) -> Option<Noise> {
    let plan = &trial.plan;
    // Each slot against the one before: ln of the figure, but for a constant.
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

/// The log ratio of each two slots; both are the machine as it is, labelled so that the judge pairs them.
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

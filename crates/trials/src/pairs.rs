//! The pairs: a coin's order, both sides, judged, again; until the judge, the budget or the user
//! says stop. What is measured is stored before the next slot begins.

use crate::bench::{Bench, Clocks, Disagreement};
use crate::event::Event;
use crate::{TrialError, doubt, stopped};
use assay_host::Host;
use assay_instruments::Cancel;
use assay_judge::trial::{judge_trial, pairs, shown};
use assay_model::sample::Outcome;
use assay_model::trial::{Judgement, PairOutcome, Side, Slot, Trial};
use assay_model::{Doubt, Nanos};
use std::time::Duration;

/// Pairs in a row without a figure after which going on is pointless.
const FRUITLESS: usize = 3;
/// Neighbours measured to see the noise before anything is changed.
pub(crate) const NOISE_PAIRS: u32 = 3;

/// Why the pairs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The judge has its answer, or all pairs are measured.
    Verdict,
    /// The user interrupted.
    Cancelled,
    /// The time the user gave is over.
    Budget,
    /// No pair gave a figure.
    Fruitless(String),
}

/// Where slots are kept.
pub type Keep<'a> = dyn FnMut(&Slot) -> Result<(), TrialError> + 'a;
/// Who is told.
pub type Tell<'a> = dyn FnMut(Event<'_>) + 'a;

/// Measures the pairs that `slots` does not hold yet and adds them to it. On a `host` it looks
/// whether anything was stopped meanwhile.
///
/// # Errors
/// A change that cannot be made, a load generator that cannot be started, a store that refuses.
/// What was measured until then is stored.
pub fn measure(
    trial: &Trial,
    slots: &mut Vec<Slot>,
    bench: &mut dyn Bench,
    host: Option<&dyn Host>,
    cancel: &Cancel,
    keep: &mut Keep<'_>,
    tell: &mut Tell<'_>,
) -> Result<(Judgement, Stop), TrialError> {
    let began = bench.clocks().monotonic;
    drop_halves(slots);
    let (_, mut judgement) = judge_trial(trial, slots);
    let mut next = slots.last().map_or(1, |slot| slot.pair + 1);
    // Before any was seen, a pair takes what its slots take.
    let slot = Duration::from(trial.plan.slot.and(trial.plan.washout));
    let mut longest = slot.saturating_mul(2);
    while next <= trial.plan.max_pairs && (slots.is_empty() || !judgement.done) {
        let at = bench.clocks().monotonic;
        let over = |budget: Nanos| at - began + longest > Duration::from(budget);
        if cancel.is_cancelled() {
            return Ok((judgement, Stop::Cancelled));
        }
        if trial.plan.budget.is_some_and(over) {
            return Ok((judgement, Stop::Budget));
        }
        let Some(pair) = one_pair(trial, next, bench, host, cancel, keep, tell)? else {
            return Ok((judgement, Stop::Cancelled));
        };
        slots.extend(pair);
        let (outcomes, judged) = judge_trial(trial, slots);
        judgement = judged;
        if let Some(outcome) = outcomes.last() {
            tell(Event::Judged {
                pair: next,
                first: trial.plan.first[next as usize - 1],
                figures: deciding(trial, &slots[slots.len() - 2..]),
                outcome,
                judgement: &judgement,
            });
        }
        if let Some(why) = fruitless(&outcomes) {
            return Ok((judgement, Stop::Fruitless(why)));
        }
        longest = longest.max(bench.clocks().monotonic - at);
        next += 1;
    }
    Ok((judgement, Stop::Verdict))
}

/// The deciding figure of A and of B.
fn deciding(trial: &Trial, pair: &[Slot]) -> [Option<f64>; 2] {
    let judged = shown(trial, pair, &[]).samples;
    [Side::Now, Side::Changed].map(|side| {
        let at = pair.iter().position(|slot| slot.side == side)?;
        judged[at].figures.get(&trial.plan.metric).copied()
    })
}

/// A pair of which only one side was measured is measured again as a whole: its two sides must be
/// neighbours.
fn drop_halves(slots: &mut Vec<Slot>) {
    let whole: Vec<u32> = slots
        .windows(2)
        .filter(|two| two[0].pair == two[1].pair && two[0].side != two[1].side)
        .map(|two| two[0].pair)
        .collect();
    slots.retain(|slot| whole.contains(&slot.pair));
}

/// None when the user interrupted.
#[allow(clippy::too_many_arguments, reason = "what `measure` has, once")]
fn one_pair(
    trial: &Trial,
    pair: u32,
    bench: &mut dyn Bench,
    host: Option<&dyn Host>,
    cancel: &Cancel,
    keep: &mut Keep<'_>,
    tell: &mut Tell<'_>,
) -> Result<Option<[Slot; 2]>, TrialError> {
    let first = trial.plan.first[pair as usize - 1];
    let sides = match first {
        Side::Now => [Side::Now, Side::Changed],
        Side::Changed => [Side::Changed, Side::Now],
    };
    let mut measured = Vec::with_capacity(2);
    let before = bench.clocks();
    for (number, side) in (2 * (pair - 1)..).zip(sides) {
        tell(Event::Begin {
            pair,
            side,
            lasts: Nanos(trial.plan.washout.0 + trial.plan.slot.0),
        });
        let slot = one_slot(pair, side, number, before, bench, host)?;
        // Interrupted in the middle: the slot says nothing.
        if cancel.is_cancelled() {
            return Ok(None);
        }
        keep(&slot)?;
        tell(Event::Stored(&slot));
        measured.push(slot);
    }
    Ok(<[Slot; 2]>::try_from(measured).ok())
}

/// `since` is when the pair began: what the clocks did between its two slots matters too.
fn one_slot(
    pair: u32,
    side: Side,
    number: u32,
    since: Clocks,
    bench: &mut dyn Bench,
    host: Option<&dyn Host>,
) -> Result<Slot, TrialError> {
    let read_back = bench.enter(side)?;
    let (sample, stop) = stopped::watching(host, || bench.load(side, pair, number));
    let sample = sample?;
    let clocks = since.disagree(&bench.clocks()).map(clock_doubt);
    Ok(Slot {
        pair,
        side,
        read_back,
        sample,
        doubts: clocks.into_iter().chain(stop).collect(),
    })
}

fn clock_doubt(what: Disagreement) -> Doubt {
    match what {
        Disagreement::Suspended(slept) => doubt(
            "machine-suspended",
            format!(
                "the machine was suspended for {} during the pair",
                Nanos::from(slept)
            ),
            "the pair is left out; keep the machine awake while a trial runs",
        ),
        Disagreement::Jumped(jump) => doubt(
            "clock-jumped",
            format!("the clock was set by {jump:#} during the pair"),
            "the pair is left out; let the clock settle (NTP) before a trial",
        ),
    }
}

/// Why going on is pointless: the last pairs gave no figure, and it was not the change alone.
fn fruitless(outcomes: &[PairOutcome]) -> Option<String> {
    let last = outcomes.len().checked_sub(FRUITLESS)?;
    let mut why = None;
    for outcome in &outcomes[last..] {
        why = match outcome {
            PairOutcome::Measured { .. } | PairOutcome::FailedChanged { .. } => return None,
            PairOutcome::Failed { error } => Some(error.clone()),
            PairOutcome::Void { reason } => Some(reason.clone()),
        };
    }
    why
}

/// Measures neighbours of the side as it is now, to see how noisy the machine is. Nothing is stored.
/// None when that cannot be said: interrupted, or a sample failed.
///
/// # Errors
/// As [`measure`].
pub fn noise(
    trial: &Trial,
    bench: &mut dyn Bench,
    host: Option<&dyn Host>,
    cancel: &Cancel,
    tell: &mut Tell<'_>,
) -> Result<Option<f64>, TrialError> {
    let mut slots = Vec::new();
    for pair in 1..=NOISE_PAIRS {
        for (number, side) in [(0, Side::Now), (1, Side::Changed)] {
            if cancel.is_cancelled() {
                return Ok(None);
            }
            tell(Event::Begin {
                pair: 0,
                side: Side::Now,
                lasts: Nanos(trial.plan.washout.0 + trial.plan.slot.0),
            });
            let since = bench.clocks();
            // Labelled as both sides, so that the judge pairs them; both are the machine as it is.
            let (sample, stop) = stopped::watching(host, || {
                bench.load(Side::Now, pair, 2 * (pair - 1) + number)
            });
            let sample = sample?;
            if let Outcome::Failed { error } = &sample.outcome {
                return Err(TrialError::LoadFails {
                    error: error.clone(),
                });
            }
            let doubts = since.disagree(&bench.clocks()).map(clock_doubt);
            slots.push(Slot {
                pair,
                side,
                read_back: String::new(),
                sample,
                doubts: doubts.into_iter().chain(stop).collect(),
            });
        }
    }
    let effects: Vec<f64> = pairs(trial, &slots)
        .into_iter()
        .filter_map(|outcome| match outcome {
            PairOutcome::Measured { effect, .. } => Some(effect),
            _ => None,
        })
        .collect();
    if effects.is_empty() {
        return Ok(None);
    }
    // The mean is known: both sides are the same.
    let sd = (effects.iter().map(|x| x * x).sum::<f64>() / effects.len() as f64).sqrt();
    tell(Event::Noise {
        pair_sd: sd,
        pairs: effects.len() as u32,
    });
    Ok(Some(sd))
}

#[cfg(test)]
pub(crate) mod tests;

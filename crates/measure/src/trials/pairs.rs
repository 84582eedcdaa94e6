//! Measures pairs until the judge has a verdict, the time is over or the user stops. Each pair measures both sides in
//! randomised order and is followed by a judgement. Each slot is stored before the next one begins.

use crate::engine::{Carried, MeasureEvent, Steps, Tell, carry_out};
use crate::trials::bench::{Clocks, Disagreement, TrialBench};
use crate::trials::{TrialError, stopped, void_doubt};
use assay_host::Host;
use assay_judge::trial::{find_reason_to_give_up, judge_slots_for_display, judge_trial};
use assay_loads::Cancel;
use assay_model::trial::{Judgement, Side, Slot, Trial};
use assay_model::{Doubt, Nanos};
use std::time::Duration;

/// Reason why the measuring of pairs ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The judge has a final verdict, or all pairs were measured.
    Verdict,
    /// The user interrupted the trial.
    Cancelled,
    /// The user's time budget is used up.
    Budget,
    /// No pair gave a figure. Contains the reason.
    Fruitless(String),
}

/// Callback that stores a slot durably.
pub type Keep<'a> = dyn FnMut(&Slot) -> Result<(), TrialError> + 'a;

/// Measures the pairs that are missing in `slots`, and adds their slots. If `host` is given, also detects whether assay
/// or its load was stopped during a slot.
///
/// # Errors
/// A change cannot be applied, a load generator cannot be started, or the store fails. Measured slots are stored.
pub fn measure(
    trial: &Trial,
    slots: &mut Vec<Slot>,
    bench: &mut dyn TrialBench,
    host: Option<&dyn Host>,
    cancel: &Cancel,
    keep: &mut Keep<'_>,
    tell: &mut Tell<'_>,
) -> Result<(Judgement, Stop), TrialError> {
    drop_halves(slots);
    let now = bench.clocks();
    // Before the first pair, its time is that of its slots.
    let slot = Duration::from(trial.plan.slot.and(trial.plan.washout));
    let mut pairs = Pairs {
        trial,
        judgement: judge_trial(trial, slots).1,
        slots,
        bench,
        host,
        cancel,
        keep,
        began: now.monotonic,
        pair_began: now,
        longest: slot.saturating_mul(2),
        stop: Stop::Verdict,
    };
    let ended = carry_out(&mut pairs, cancel, tell)?;
    let (judgement, stop) = (pairs.judgement, pairs.stop);
    drop_halves(slots);
    Ok(match ended {
        Carried::Complete => (judgement, stop),
        Carried::Interrupted => (judgement, Stop::Cancelled),
    })
}

/// State of measuring the pairs of a trial.
struct Pairs<'a> {
    trial: &'a Trial,
    slots: &'a mut Vec<Slot>,
    bench: &'a mut dyn TrialBench,
    host: Option<&'a dyn Host>,
    cancel: &'a Cancel,
    keep: &'a mut Keep<'a>,
    judgement: Judgement,
    /// Start of the measurement, by the monotonic clock.
    began: Duration,
    /// Readings of the clocks at the start of the current pair. An event between the two slots of a pair also makes the
    /// pair void.
    pair_began: Clocks,
    /// Duration of the longest pair until now.
    longest: Duration,
    /// Reason why the measurement ends, as far as it is known.
    stop: Stop,
}

impl Pairs<'_> {
    /// Returns whether the measurement is over: the verdict is final, or the time is used up.
    fn is_over(&mut self) -> bool {
        let plan = &self.trial.plan;
        let measured = self.slots.last().map_or(0, |slot| slot.pair);
        let judged = !self.slots.is_empty() && self.judgement.done;
        if self.stop != Stop::Verdict || measured >= plan.max_pairs || judged {
            return true;
        }
        let spent = self.pair_began.monotonic - self.began;
        let over = |budget: Nanos| spent + self.longest > Duration::from(budget);
        if plan.budget.is_some_and(over) {
            self.stop = Stop::Budget;
            return true;
        }
        false
    }

    /// Judges all pairs, including the pair that is now complete.
    fn judge(&mut self, tell: &mut Tell<'_>) {
        let (outcomes, judgement) = judge_trial(self.trial, self.slots);
        self.judgement = judgement;
        let pair = &self.slots[self.slots.len() - 2..];
        if let Some(outcome) = outcomes.last() {
            tell(MeasureEvent::Judged {
                pair: pair[0].pair,
                first: pair[0].side,
                figures: deciding_figures(self.trial, pair),
                outcome,
                judgement: &self.judgement,
            });
        }
        if let Some(why) = find_reason_to_give_up(&outcomes) {
            self.stop = Stop::Fruitless(why);
        }
        let took = self.bench.clocks().monotonic - self.pair_began.monotonic;
        self.longest = self.longest.max(took);
    }
}

impl Steps<TrialError> for Pairs<'_> {
    /// Number of the pair (from 1), side, and position among all slots.
    type Step = (u32, Side, u32);
    type Taken = Slot;

    fn next(&mut self, tell: &mut Tell<'_>) -> Result<Option<Self::Step>, TrialError> {
        let (pair, side, number) = match self.slots.last() {
            Some(half) if self.slots.len() % 2 == 1 => {
                (half.pair, half.side.other(), 2 * half.pair - 1)
            }
            last => {
                let pair = last.map_or(1, |slot| slot.pair + 1);
                self.pair_began = self.bench.clocks();
                if self.is_over() {
                    return Ok(None);
                }
                (
                    pair,
                    self.trial.plan.first[pair as usize - 1],
                    2 * (pair - 1),
                )
            }
        };
        tell(MeasureEvent::Side { pair, side });
        Ok(Some((pair, side, number)))
    }

    fn take(&mut self, (pair, side, number): &Self::Step) -> Result<Option<Slot>, TrialError> {
        let read_back = self.bench.enter(*side)?;
        let of = (*pair, *side, *side, *number);
        let slot = one_slot(of, read_back, self.pair_began, self.bench, self.host)?;
        // Interrupted within the slot: its sample is invalid.
        Ok((!self.cancel.is_cancelled()).then_some(slot))
    }

    fn keep(&mut self, _: Self::Step, slot: Slot, tell: &mut Tell<'_>) -> Result<(), TrialError> {
        (self.keep)(&slot)?;
        tell(MeasureEvent::Stored(&slot.sample));
        self.slots.push(slot);
        if self.slots.len().is_multiple_of(2) {
            self.judge(tell);
        }
        Ok(())
    }
}

/// Returns the deciding figures of A and of B in a pair; `None` for a side without a figure.
fn deciding_figures(trial: &Trial, pair: &[Slot]) -> [Option<f64>; 2] {
    let judged = judge_slots_for_display(trial, pair, &[]).samples;
    [Side::Now, Side::Changed].map(|side| {
        let at = pair.iter().position(|slot| slot.side == side)?;
        judged[at].figures.get(&trial.plan.metric).copied()
    })
}

/// Removes a pair with only one measured side. Both sides are measured again, because the slots of a pair must be
/// neighbours.
fn drop_halves(slots: &mut Vec<Slot>) {
    let whole: Vec<u32> = slots
        .windows(2)
        .filter(|two| two[0].pair == two[1].pair && two[0].side != two[1].side)
        .map(|two| two[0].pair)
        .collect();
    slots.retain(|slot| whole.contains(&slot.pair));
}

/// Measures one slot of a pair. `real` is the side that is in effect; `side` is the side for which the slot counts.
/// `since` contains the clocks at the start of the pair.
pub(crate) fn one_slot(
    (pair, real, side, number): (u32, Side, Side, u32),
    read_back: String,
    since: Clocks,
    bench: &mut dyn TrialBench,
    host: Option<&dyn Host>,
) -> Result<Slot, TrialError> {
    let (sample, stop) = stopped::watch_for_stops(host, || bench.load(real, pair, number));
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
        Disagreement::Suspended(slept) => void_doubt(
            "machine-suspended",
            format!(
                "the machine was suspended for {} during the pair",
                Nanos::from(slept)
            ),
            "the pair is left out; keep the machine awake while a trial runs",
        ),
        Disagreement::Jumped(jump) => void_doubt(
            "clock-jumped",
            format!("the clock was set by {jump:#} during the pair"),
            "the pair is left out; let the clock settle (NTP) before a trial",
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests;

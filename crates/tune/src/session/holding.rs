//! Holds the proved changes before they are kept. `hold.rs` judges what the hold shows.

use super::sizes::fit;
use super::{SessionPhase, TuneSession};
use crate::hold::{Hold, HoldEnd};
use crate::outcome::Ending;
use assay_model::Nanos;
use assay_model::trial::PairOutcome;

/// Minimum and maximum number of pairs. Three pairs can decide at the error level of a hold.
const PAIRS: (u64, u64) = (3, 5);
/// Time of a pair, if there is enough time for more than the minimum number of pairs.
const LONG: Nanos = Nanos(120_000_000_000);
/// Minimum number of slots of a pair. With fewer slots, a hold shows hardly more than a proof.
const LEAST_SLOTS: u32 = 6;
/// Divisor of the slots of a pair: the part that is measured on each side.
const MEASURED_SHARE: u32 = 6;
/// Maximum number of measured slots on each side. The slots of the two sides must be close to each other.
const MOST_MEASURED: u32 = 8;

impl TuneSession {
    /// Returns the hold of the proved changes after it has ended; `None` if they were not held.
    #[must_use]
    pub fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }

    /// Returns whether a candidate was accepted, but is one of the changes whose gain wears off.
    #[must_use]
    pub fn wears_off(&self, candidate: usize) -> bool {
        let end = self.hold().and_then(|hold| hold.end.as_ref());
        end == Some(&HoldEnd::WearsOff) && self.accepted.contains(&candidate)
    }

    /// Begins the hold of the proved changes, or keeps the changes if there is no time for a hold.
    pub(super) fn start_hold(&mut self) {
        match self.size_hold() {
            Some(hold) => self.phase = SessionPhase::Holding { hold },
            None => self.accept_whole(),
        }
    }

    fn size_hold(&self) -> Option<Hold> {
        let row = self.accepted_row();
        let costs = &self.plan.costs;
        let time = self.plan.hold.min(self.clock.left(costs.set_back));
        let planned = (time.0 / LONG.0).clamp(PAIRS.0, PAIRS.1);
        let switches = costs.hold(&self.plan.candidates, &row, 0);
        let each = Nanos((time.0 / planned).saturating_sub(switches.0));
        let slots = fit(each, costs.slot());
        let alternations = (slots / MEASURED_SHARE).clamp(1, MOST_MEASURED);
        (slots >= LEAST_SLOTS).then(|| Hold {
            row,
            slots: slots - 2 * alternations,
            alternations,
            planned: planned as u32,
            pairs: Vec::new(),
            lasted: Nanos(0),
            end: None,
        })
    }

    /// Handles the outcome of a pair of the hold.
    pub(super) fn note_held(&mut self, mut hold: Hold, outcome: PairOutcome, took: Nanos) {
        hold.add(outcome, took);
        let costs = &self.plan.costs;
        let slots = hold.slots + 2 * hold.alternations;
        let is_late =
            self.clock.left(costs.set_back) < costs.hold(&self.plan.candidates, &hold.row, slots);
        let margin = self.plan.goal.margin;
        hold.end = match self.wholes.last() {
            Some(whole) => hold.examine(whole, margin, is_late),
            None => Some(HoldEnd::Open),
        };
        match hold.end.clone() {
            None => self.phase = SessionPhase::Holding { hold },
            Some(end @ (HoldEnd::WearsOff | HoldEnd::Fails { .. })) => {
                let row = hold.row.clone();
                self.hold = Some(hold);
                self.end(Ending::DoesNotLast { row, end });
            }
            Some(_) => {
                self.hold = Some(hold);
                self.accept_whole();
            }
        }
    }
}

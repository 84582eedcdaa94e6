//! Determines the size of a screen or a proof before its first pair, and the time reserved for the end.

use super::TuneSession;
use crate::budget::{Row, add, times};
use crate::plan::RESERVED;
use crate::proof::{MOST_ALTERNATIONS, Proof};
use crate::screen::matrix_order;
use assay_judge::trial::forecast;
use assay_model::Nanos;
use assay_model::trial::MAX_PAIRS;

/// Maximum probability that a session accepts a useless change, over all rounds.
pub(super) const LEVEL: f64 = 0.05;
/// Fraction of the remaining error level that each round may spend. The last round may spend all of it.
const ROUNDS: [f64; 3] = [0.8, 0.7, 1.0];
/// Minimum fraction of the round's remaining level that the next proof after a screen gets. The first candidates get
/// more than an equal part, because the screen orders the candidates by the probability of a gain.
const FIRST: f64 = 0.5;
/// Error level of each attempt to prove all accepted changes. The sum of these levels is the maximum probability that a
/// session keeps changes although none of them helps.
pub(super) const WHOLE_LEVELS: [f64; 2] = [0.035, 0.015];
/// Maximum fraction of the budget for one screen.
const SCREEN_SHARE: f64 = 0.35;
/// Maximum fraction of the budget that is reserved for the proof of all accepted changes.
const WHOLE_SHARE: f64 = 0.25;
/// Standard error (log ratio) of an effect at which a screen ends.
pub(super) const SCREEN_ERROR: f64 = 0.03;
/// Minimum noise (log ratio) that is assumed, because a smaller estimate is chance.
const LEAST_NOISE: f64 = 0.005;
/// Maximum number of pairs of a screen.
const SCREEN_MOST: u32 = 96;
/// Factor for gains between two proofs. A proof that found a gain overestimates this gain (winner's curse).
pub(super) const SHRINK: f64 = 0.7;
/// Total gain that is expected from changes that were proved elsewhere, if nothing was measured here; 0.08 for 8 %.
const TOGETHER: f64 = 0.08;
/// Factor by which the forecast number of pairs of the last proof is multiplied, if the time permits. The factor is
/// generous, because a failure of this proof makes all earlier work useless.
const WHOLE_FACTOR: f64 = 2.5;
/// Minimum number of pairs of the last proof, if the time permits.
const WHOLE_PAIRS: u32 = 42;
/// Minimum number of pairs of the proof of all accepted changes. A level of 2.5 % needs at least six pairs; with fewer
/// than this constant, the total gain would remain undecided.
const LEAST_WHOLE: u32 = 12;

/// Size of a proof: number of pairs, and number of alternations of each pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub pairs: u32,
    pub alternations: u32,
}

impl Size {
    fn slots(self) -> u32 {
        self.pairs * self.alternations
    }
}

impl TuneSession {
    /// Returns the error level of the next round; `None` after the last round.
    pub(super) fn round_level(&self) -> Option<f64> {
        let share = ROUNDS.get(self.round as usize)?;
        Some(self.level_left * share)
    }

    /// Returns the noise (standard deviation of a pair's log ratio): from the proofs, else from the screen, else from
    /// neighbouring rounds of the baseline.
    pub(super) fn noise(&self) -> f64 {
        let mut of_proofs: Vec<f64> = self.proofs.iter().map(Proof::noise).collect();
        of_proofs.retain(|noise| *noise > 0.0);
        if !of_proofs.is_empty() {
            of_proofs.sort_by(f64::total_cmp);
            return of_proofs[of_proofs.len() / 2];
        }
        if let Some(screen) = self.screens.last() {
            return screen.fit().noise.max(LEAST_NOISE);
        }
        let rounds = self
            .visits
            .iter()
            .filter_map(|visit| visit.figures.get(self.objective));
        let steps: Vec<f64> = rounds
            .flat_map(|rounds| rounds.windows(2).map(|pair| (pair[1] / pair[0]).ln()))
            .filter(|step| step.is_finite())
            .collect();
        forecast::estimate_noise(&steps).max(LEAST_NOISE)
    }

    /// Returns the number of pairs for a screen of these candidates. Returns `None` if the screen does not fit into the
    /// time or would show nothing.
    pub(super) fn screen_pairs(&self, candidates: &Row) -> Option<u32> {
        let order = matrix_order(candidates.len())?;
        let pair = self.plan.costs.pair(&self.plan.candidates, candidates, 1);
        let share = Nanos((self.plan.budget.0 as f64 * SCREEN_SHARE) as u64);
        let time = self.clock.left(self.reserve()).min(share);
        let fits = fit(time, pair).min(SCREEN_MOST);
        let pairs = fits / 8 * 8;
        (pairs >= order + 8).then_some(pairs)
    }

    /// Returns the time reserved for the end: the proof of all accepted changes, their hold, and reverting.
    pub(super) fn reserve(&self) -> Nanos {
        let row = self.accepted_row();
        let whole = match row.is_empty() {
            true => {
                let likely: Row = self.order.iter().take(2).copied().collect();
                add(
                    self.plan.costs.creation(&self.plan.candidates, &likely),
                    times(
                        self.plan.costs.pair(&self.plan.candidates, &likely, 1),
                        RESERVED,
                    ),
                )
            }
            false => {
                let share = Nanos((self.plan.budget.0 as f64 * WHOLE_SHARE) as u64);
                let size = self.whole_size(share, (1.0, RESERVED));
                let created = self.plan.costs.creation(&self.plan.candidates, &row);
                let pair = (self.plan.costs).pair(&self.plan.candidates, &row, size.alternations);
                // The first proof of a candidate is worth more than the hold, and a second one is not.
                let hold = match self.round {
                    0 => Nanos(0),
                    _ => self.plan.hold,
                };
                add(hold, add(created, times(pair, size.pairs)))
            }
        };
        add(whole, self.plan.costs.set_back)
    }

    /// Returns the size of the proof of all accepted changes that fits into `time`. The number of pairs is the forecast
    /// from the noise and gains of the proofs, multiplied by `factor`; it is at least `least`.
    fn whole_size(&self, time: Nanos, (factor, least): (f64, u32)) -> Size {
        let margin = self.plan.goal.margin.ln_1p();
        let seen = match self.plan.together {
            true => TOGETHER.ln_1p(),
            false => SHRINK * self.proved_one_by_one(),
        };
        let effect = seen.max(margin / 2.0);
        let mut slots = forecast::forecast_pairs_for_difference(self.noise(), effect, margin);
        for (at, guard) in self.guards.iter().enumerate() {
            let (noise, worse) = self.guard_noise(at);
            let room = (guard.margin.ln_1p() - worse.max(0.0)).max(0.01);
            slots = slots.max(forecast::forecast_pairs_for_difference(noise, -room, 0.0));
        }
        let slots = (f64::from(slots) * factor) as u32;
        let slots = slots.clamp(least, MAX_PAIRS * MOST_ALTERNATIONS);
        let row = self.accepted_row();
        let one = self.plan.costs.pair(&self.plan.candidates, &row, 1);
        let created = self.plan.costs.creation(&self.plan.candidates, &row);
        let time = Nanos(time.0.saturating_sub(created.0));
        let slots = slots.min(fit(time, one));
        let alternations = slots.div_ceil(MAX_PAIRS).clamp(1, MOST_ALTERNATIONS);
        Size {
            pairs: (slots / alternations).min(MAX_PAIRS),
            alternations,
        }
    }

    /// Returns the size of an attempt to prove all accepted changes; `None` if the time is too short.
    pub(super) fn size_attempt(&self) -> Option<Size> {
        let time = self.clock.left(self.plan.costs.set_back);
        let generous = (WHOLE_FACTOR, WHOLE_PAIRS);
        let needed = self.whole_size(time, (1.0, RESERVED));
        let beside_hold = self.whole_size(Nanos(time.0.saturating_sub(self.plan.hold.0)), generous);
        // Without this proof there is nothing to hold.
        let size = match beside_hold.slots() >= needed.slots() {
            true => beside_hold,
            false => self.whole_size(time, generous),
        };
        (size.pairs >= LEAST_WHOLE).then_some(size)
    }

    /// Returns the noise of one alternation of a guardrail and its measured worsening, from the accepted proofs.
    fn guard_noise(&self, at: usize) -> (f64, f64) {
        let (mut noise, mut worse) = match self.plan.together {
            true => (self.noise(), 0.0),
            false => (0.0f64, 0.0),
        };
        for proof in self.accepted_proofs() {
            let values = proof.worsening(at);
            let factor = f64::from(proof.alternations.max(1)).sqrt();
            noise = noise.max(forecast::estimate_noise(&values) * factor);
            worse += assay_judge::trial::compute_centre(&values).unwrap_or_default();
        }
        (noise, worse)
    }
}

/// Returns the error level of the next proof. `left` is the remaining level of the round, `waiting` the number of
/// proofs that have not begun.
pub(super) fn next_level(left: f64, waiting: usize, screened: bool) -> f64 {
    let even = 1.0 / waiting.max(1) as f64;
    left * if screened { even.max(FIRST) } else { even }
}

/// Returns how many pairs of the duration `pair` fit into `time`.
pub(super) fn fit(time: Nanos, pair: Nanos) -> u32 {
    u32::try_from(time.0 / pair.0.max(1)).unwrap_or(u32::MAX)
}

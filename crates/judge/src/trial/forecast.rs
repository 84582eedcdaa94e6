//! How many pairs, and minutes, an answer will probably take.

use super::centre::spread;
use super::looks::LOOKS;
use super::total::pairs_to_stand;
use assay_model::{Nanos, TrialPlan};

/// Pairs a "better" or "worse" takes: so many and (noise ÷ effect)² times so many. Fitted to
/// simulated trials (normal theory: with a number fixed beforehand, 8.6 times for nine trials of ten
/// to decide at 5 %).
const DIFFERENT: (f64, f64) = (5.0, 7.0);
/// Pairs a "no practical difference" takes: (noise ÷ distance to the margin)² times so many; two
/// margins have to be ruled out.
const EQUAL: f64 = 13.0;

/// A forecast. It is rough: twice as many or half as many pairs are no surprise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forecast {
    /// Pairs.
    pub pairs: u32,
    /// Measuring and washing out; making the change is not in it.
    pub time: Nanos,
}

/// Pairs until an effect (log ratio) is told from none and, where it is a gain, its total stands one
/// slow slot more; `margin` is a log ratio as well.
#[must_use]
pub fn pairs_for_difference(noise: f64, effect: f64, margin: f64) -> u32 {
    let told = pairs_for_effect(noise, effect);
    match effect > 0.0 {
        true => told.max(at_look(pairs_to_stand(effect, margin))),
        false => told,
    }
}

/// Pairs until an effect (log ratio) is told from none.
pub(super) fn pairs_for_effect(noise: f64, effect: f64) -> u32 {
    at_look(DIFFERENT.0 + DIFFERENT.1 * (noise / effect).powi(2))
}

/// Pairs until "no practical difference", when the effect (log ratio) lies within the margin
/// (log ratio). `u32::MAX` when it does not.
#[must_use]
pub fn pairs_for_equality(noise: f64, effect: f64, margin: f64) -> u32 {
    if effect.abs() >= margin {
        return u32::MAX;
    }
    at_look(EQUAL * (noise / (margin - effect.abs())).powi(2))
}

/// Smallest effect (log ratio) that this many pairs probably tell from none.
#[must_use]
pub fn smallest_effect(noise: f64, pairs: u32) -> f64 {
    let spare = (f64::from(pairs) - DIFFERENT.0).max(1.0);
    noise * (DIFFERENT.1 / spare).sqrt()
}

/// What a plan takes at this noise (standard deviation of a pair's log ratio), for an effect (log
/// ratio) that is expected or 0.
#[must_use]
pub fn forecast(plan: &TrialPlan, noise: f64, effect: f64) -> Forecast {
    let margin = plan.margin.max(0.0).ln_1p();
    let pairs =
        pairs_for_difference(noise, effect, margin).min(pairs_for_equality(noise, effect, margin));
    time(plan, pairs.min(plan.max_pairs))
}

/// The time of this many pairs.
#[must_use]
pub fn time(plan: &TrialPlan, pairs: u32) -> Forecast {
    Forecast {
        pairs,
        time: Nanos(pair(plan).saturating_mul(u64::from(pairs))),
    }
}

/// Pairs that fit into this time. Planned so from the start, the last look is at the last of them;
/// a trial that is cut off has none.
#[must_use]
pub fn pairs_within(plan: &TrialPlan, budget: Nanos) -> u32 {
    u32::try_from(budget.0 / pair(plan).max(1)).unwrap_or(u32::MAX)
}

/// Fewest pairs with which any verdict is possible at this level: with fewer, chance alone does the same
/// too often (each pair is a coin).
#[must_use]
pub fn least_pairs(alpha: f64) -> u32 {
    let by_chance = (1.0 / alpha.clamp(1e-9, 0.5)).log2().ceil() as u32;
    by_chance.max(LOOKS[0])
}

/// The noise of some pairs: their standard deviation, not moved by a wild one. At least five pairs
/// are needed for it to be of any use.
#[must_use]
pub fn noise(effects: &[f64]) -> f64 {
    spread(effects)
}

/// Nanoseconds of a pair.
fn pair(plan: &TrialPlan) -> u64 {
    plan.slot.0.saturating_add(plan.washout.0).saturating_mul(2)
}

/// The look at which so many pairs are there; beyond the last one, two digits of the number.
fn at_look(pairs: f64) -> u32 {
    if !pairs.is_finite() {
        return u32::MAX;
    }
    let look = LOOKS.into_iter().find(|look| f64::from(*look) >= pairs);
    look.unwrap_or_else(|| {
        let step = 10f64.powf(pairs.log10().floor() - 1.0);
        ((pairs / step).ceil() * step).min(f64::from(u32::MAX)) as u32
    })
}

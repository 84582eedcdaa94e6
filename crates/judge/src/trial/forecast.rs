//! Forecasts how many pairs, and how much time, a verdict will probably take. The length of a slot
//! is chosen in `slot_length`.

use super::look_schedule::LOOKS;
use super::robust_statistics::compute_robust_deviation;
use super::work_total::forecast_pairs_to_withstand;
use assay_model::{Nanos, TrialPlan};

/// Pairs needed for a "better" or "worse": a constant, plus a factor times (noise ÷ effect)². Fitted to simulated
/// trials. (Normal theory with a fixed number of pairs gives the factor 8.6, if nine of ten trials must decide at 5 %.)
const DIFFERENT: (f64, f64) = (5.0, 7.0);
/// Pairs needed for "no practical difference", divided by (noise ÷ distance to the margin)². It is larger than the
/// factor for "better", because the effect must be shown to lie within both margins.
const EQUAL: f64 = 13.0;

/// A forecast of a trial's length. It is rough: twice or half as many pairs are common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialForecast {
    /// Expected number of pairs until a verdict.
    pub pairs: u32,
    /// Time to measure and wash out; the time to apply the change is not included.
    pub time: Nanos,
}

/// Forecasts how many pairs distinguish an effect (log ratio) from none. If the effect is a gain, its total must also
/// stay better after one more slow slot. `margin` is a log ratio too.
#[must_use]
pub fn forecast_pairs_for_difference(noise: f64, effect: f64, margin: f64) -> u32 {
    let detected = forecast_pairs_for_effect(noise, effect);
    match effect > 0.0 {
        true => detected.max(round_up_to_look(forecast_pairs_to_withstand(
            effect, margin,
        ))),
        false => detected,
    }
}

/// Computes the pairs until an effect (log ratio) is distinguished from none.
pub(super) fn forecast_pairs_for_effect(noise: f64, effect: f64) -> u32 {
    round_up_to_look(DIFFERENT.0 + DIFFERENT.1 * (noise / effect).powi(2))
}

/// Computes the number of pairs until "no practical difference", if the effect (log ratio) lies within the margin (log
/// ratio); else `u32::MAX`.
#[must_use]
pub fn forecast_pairs_for_equality(noise: f64, effect: f64, margin: f64) -> u32 {
    if effect.abs() >= margin {
        return u32::MAX;
    }
    round_up_to_look(EQUAL * (noise / (margin - effect.abs())).powi(2))
}

/// Computes the smallest effect (log ratio) that this many pairs probably distinguish from none.
#[must_use]
pub fn forecast_smallest_effect(noise: f64, pairs: u32) -> f64 {
    let spare = (f64::from(pairs) - DIFFERENT.0).max(1.0);
    noise * (DIFFERENT.1 / spare).sqrt()
}

/// Forecasts the pairs and the time of a plan. `noise` is the standard deviation of a pair's log ratio, `effect` the
/// expected log ratio (0 for none).
#[must_use]
pub fn forecast_trial(plan: &TrialPlan, noise: f64, effect: f64) -> TrialForecast {
    let margin = plan.margin.max(0.0).ln_1p();
    let pairs = forecast_pairs_for_difference(noise, effect, margin)
        .min(forecast_pairs_for_equality(noise, effect, margin));
    forecast_time(plan, pairs.min(plan.max_pairs))
}

/// Computes the time to measure this many pairs.
#[must_use]
pub fn forecast_time(plan: &TrialPlan, pairs: u32) -> TrialForecast {
    TrialForecast {
        pairs,
        time: Nanos(compute_time_per_pair(plan).saturating_mul(u64::from(pairs))),
    }
}

/// Computes how many pairs can be measured within a time budget. The budget must be given before the trial starts, so
/// that a last look is planned at the last of these pairs; a trial that is cut off later has no last look.
#[must_use]
pub fn count_pairs_within(plan: &TrialPlan, budget: Nanos) -> u32 {
    u32::try_from(budget.0 / compute_time_per_pair(plan).max(1)).unwrap_or(u32::MAX)
}

/// Computes the minimum number of pairs for any verdict at this error level. With fewer, even pairs that all have the
/// same sign occur by chance too often.
#[must_use]
pub fn count_least_pairs(alpha: f64) -> u32 {
    let by_chance = (1.0 / alpha.clamp(1e-9, 0.5)).log2().ceil() as u32;
    by_chance.max(LOOKS[0])
}

/// Estimates the noise (standard deviation) of some pairs, robust against outliers. At least five pairs are needed for
/// a useful value.
#[must_use]
pub fn estimate_noise(effects: &[f64]) -> f64 {
    compute_robust_deviation(effects)
}

/// Returns the time per pair in nanoseconds.
fn compute_time_per_pair(plan: &TrialPlan) -> u64 {
    plan.slot.0.saturating_add(plan.washout.0).saturating_mul(2)
}

/// Rounds a number of pairs up to the next look; beyond the last look, to two digits.
fn round_up_to_look(pairs: f64) -> u32 {
    if !pairs.is_finite() {
        return u32::MAX;
    }
    let look = LOOKS.into_iter().find(|look| f64::from(*look) >= pairs);
    look.unwrap_or_else(|| {
        let step = 10f64.powf(pairs.log10().floor() - 1.0);
        ((pairs / step).ceil() * step).min(f64::from(u32::MAX)) as u32
    })
}

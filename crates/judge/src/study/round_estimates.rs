//! Estimates a figure from a few rounds. Estimates of storage samples are in `estimate`.

use crate::estimate::{compute_mean_and_error, interval_around_mean, interval_on_log_scale};
use assay_model::result::{Estimate, Interval};

/// Estimates the mean of a figure over its rounds. If all values are above 0, the interval is on the log scale, so that
/// it stays above 0 (delta method: standard error of the mean ÷ mean).
pub(super) fn estimate_mean(values: &[f64], exact: bool) -> Option<Estimate> {
    let rounds = values.len();
    let (mean, error) = compute_mean_and_error(values)?;
    let positive = values.iter().all(|value| *value > 0.0);
    let freedom = rounds as f64 - 1.0;
    let interval = match (exact, positive) {
        (true, _) => Some(find_range(values)),
        (false, true) => error.and_then(|error| interval_on_log_scale(mean, error / mean, freedom)),
        (false, false) => error.and_then(|error| interval_around_mean(mean, error, freedom)),
    };
    Some(Estimate {
        value: mean,
        interval,
        rounds: rounds as u32,
    })
}

/// Estimates the ratio of two figures over the rounds that have both. `None` if a value is not above 0.
pub(super) fn estimate_ratio(pairs: &[(f64, f64)], exact: bool) -> Option<Estimate> {
    let logs: Option<Vec<f64>> = pairs
        .iter()
        .map(|(of, to)| (*of > 0.0 && *to > 0.0).then(|| (of / to).ln()))
        .collect();
    let logs = logs?;
    let (mean, error) = compute_mean_and_error(&logs)?;
    let mut value = mean.exp();
    let interval = match exact {
        true => {
            // Dividing is exact; logarithms would make 3 ÷ 1 slightly more than 3.
            let quotients: Vec<f64> = pairs.iter().map(|(of, to)| of / to).collect();
            let span = find_range(&quotients);
            value = value.clamp(span.low, span.high);
            Some(span)
        }
        false => {
            error.and_then(|error| interval_on_log_scale(value, error, logs.len() as f64 - 1.0))
        }
    };
    Some(Estimate {
        value,
        interval,
        rounds: logs.len() as u32,
    })
}

fn find_range(values: &[f64]) -> Interval {
    Interval {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        confidence: 1.0,
    }
}

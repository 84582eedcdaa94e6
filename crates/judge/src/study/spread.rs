//! A few rounds as one estimate.

use crate::estimate::{around, beside, moments};
use assay_model::result::{Estimate, Interval};

/// The mean of a figure over its rounds. Above 0 its interval is on the log scale, by the delta
/// method (standard error of the mean ÷ mean), so that it cannot reach below 0.
pub(super) fn mean(values: &[f64], exact: bool) -> Option<Estimate> {
    let rounds = values.len();
    let (mean, error) = moments(values)?;
    let positive = values.iter().all(|value| *value > 0.0);
    let freedom = rounds as f64 - 1.0;
    let interval = match (exact, positive) {
        (true, _) => Some(range(values)),
        (false, true) => error.and_then(|error| around(mean, error / mean, freedom)),
        (false, false) => error.and_then(|error| beside(mean, error, freedom)),
    };
    Some(Estimate {
        value: mean,
        interval,
        rounds: rounds as u32,
    })
}

/// The ratio of two figures over the rounds that have both. None where a value is not above 0.
pub(super) fn ratio(pairs: &[(f64, f64)], exact: bool) -> Option<Estimate> {
    let logs: Option<Vec<f64>> = pairs
        .iter()
        .map(|(of, to)| (*of > 0.0 && *to > 0.0).then(|| (of / to).ln()))
        .collect();
    let logs = logs?;
    let (mean, error) = moments(&logs)?;
    let mut value = mean.exp();
    let interval = match exact {
        true => {
            // Not by way of logarithms, which would make 3 ÷ 1 a little more than 3.
            let quotients: Vec<f64> = pairs.iter().map(|(of, to)| of / to).collect();
            let span = range(&quotients);
            value = value.clamp(span.low, span.high);
            Some(span)
        }
        false => error.and_then(|error| around(value, error, logs.len() as f64 - 1.0)),
    };
    Some(Estimate {
        value,
        interval,
        rounds: logs.len() as u32,
    })
}

fn range(values: &[f64]) -> Interval {
    Interval {
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        confidence: 1.0,
    }
}

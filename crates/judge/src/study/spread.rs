//! A few rounds as one estimate.

use crate::estimate::{CONFIDENCE, around};
use assay_model::result::{Estimate, Interval};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// Mean and standard error of the mean.
fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0) / n).sqrt())
}

/// The mean of a figure over its rounds. Above 0 its interval is on the log scale, by the delta
/// method (standard error of the mean ÷ mean), so that it cannot reach below 0.
pub(super) fn mean(values: &[f64], exact: bool) -> Option<Estimate> {
    let rounds = values.len();
    if rounds == 0 {
        return None;
    }
    let (mean, error) = moments(values);
    let interval = match (exact, rounds) {
        (true, _) => Some(range(values)),
        (false, 1) => None,
        (false, _) if values.iter().all(|value| *value > 0.0) => {
            around(mean, error / mean, rounds as f64 - 1.0)
        }
        (false, _) => linear(mean, error, rounds as f64 - 1.0),
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
    let logs = logs.filter(|logs| !logs.is_empty())?;
    let (mean, error) = moments(&logs);
    let mut value = mean.exp();
    let interval = match (exact, logs.len()) {
        (true, _) => {
            // Not by way of logarithms, which would make 3 ÷ 1 a little more than 3.
            let quotients: Vec<f64> = pairs.iter().map(|(of, to)| of / to).collect();
            let span = range(&quotients);
            value = value.clamp(span.low, span.high);
            Some(span)
        }
        (false, 1) => None,
        (false, rounds) => around(value, error, rounds as f64 - 1.0),
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

fn linear(mean: f64, error: f64, freedom: f64) -> Option<Interval> {
    let t = StudentsT::new(0.0, 1.0, freedom).ok()?;
    let reach = t.inverse_cdf(0.5 + CONFIDENCE / 2.0) * error;
    reach.is_finite().then_some(Interval {
        low: mean - reach,
        high: mean + reach,
        confidence: CONFIDENCE,
    })
}

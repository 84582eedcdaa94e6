//! Estimates over paired rounds: Student's t on the differences, and on the logarithms for ratios.

use crate::estimate::{CONFIDENCE, around};
use assay_model::result::{Estimate, Interval};
use statrs::distribution::{ContinuousCDF as _, StudentsT};
use std::collections::BTreeMap;

/// A figure by round.
pub(super) type Rounds = BTreeMap<u32, f64>;

/// `a − b` in the rounds that both have.
pub(super) fn difference(a: &Rounds, b: &Rounds) -> Rounds {
    a.iter()
        .filter_map(|(round, a)| Some((*round, a - b.get(round)?)))
        .collect()
}

/// Mean over the rounds and its standard error; none of the latter with fewer than two.
fn mean(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let error = (values.len() > 1).then(|| {
        let spread: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (spread / (n - 1.0) / n).sqrt()
    });
    Some((mean, error))
}

/// The arithmetic mean with its interval.
pub(super) fn linear(rounds: &Rounds) -> Option<Estimate> {
    let values: Vec<f64> = rounds.values().copied().collect();
    let (value, error) = mean(&values)?;
    let freedom = values.len() as f64 - 1.0;
    let interval = error.and_then(|error| {
        let t = StudentsT::new(0.0, 1.0, freedom)
            .ok()?
            .inverse_cdf(0.5 + CONFIDENCE / 2.0);
        let reach = t * error;
        reach.is_finite().then_some(Interval {
            low: value - reach,
            high: value + reach,
            confidence: CONFIDENCE,
        })
    });
    Some(Estimate {
        value,
        interval,
        rounds: values.len() as u32,
    })
}

/// The geometric mean of `to ÷ from` over the rounds that both have.
pub(super) fn geometric(from: &Rounds, to: &Rounds) -> Option<Estimate> {
    let logs: Vec<f64> = to
        .iter()
        .filter_map(|(round, to)| Some((to / from.get(round)?).ln()))
        .filter(|log| log.is_finite())
        .collect();
    let (log, error) = mean(&logs)?;
    Some(Estimate {
        value: log.exp(),
        interval: error.and_then(|error| around(log.exp(), error, logs.len() as f64 - 1.0)),
        rounds: logs.len() as u32,
    })
}

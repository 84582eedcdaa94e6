//! Estimates over paired rounds: Student's t on the differences, and on the logarithms for ratios.

use crate::estimate::{around, beside, moments};
use assay_model::result::Estimate;
use std::collections::BTreeMap;

/// A figure by round.
pub(super) type Rounds = BTreeMap<u32, f64>;

/// `a − b` in the rounds that both have.
pub(super) fn difference(a: &Rounds, b: &Rounds) -> Rounds {
    a.iter()
        .filter_map(|(round, a)| Some((*round, a - b.get(round)?)))
        .collect()
}

/// The arithmetic mean with its interval.
pub(super) fn linear(rounds: &Rounds) -> Option<Estimate> {
    let values: Vec<f64> = rounds.values().copied().collect();
    let (value, error) = moments(&values)?;
    let interval = error.and_then(|error| beside(value, error, values.len() as f64 - 1.0));
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
    let (log, error) = moments(&logs)?;
    Some(Estimate {
        value: log.exp(),
        interval: error.and_then(|error| around(log.exp(), error, logs.len() as f64 - 1.0)),
        rounds: logs.len() as u32,
    })
}

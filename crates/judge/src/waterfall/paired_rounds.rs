//! Estimates over paired rounds: Student's t on the differences, and on the logarithms for ratios.
//! Estimates over unpaired rounds are in `estimate`.

use crate::estimate::{compute_mean_and_error, interval_around_mean, interval_on_log_scale};
use assay_model::result::Estimate;
use std::collections::BTreeMap;

/// A figure by round.
pub(super) type FigureByRound = BTreeMap<u32, f64>;

/// Computes `a − b` in the rounds that both have.
pub(super) fn subtract_rounds(a: &FigureByRound, b: &FigureByRound) -> FigureByRound {
    a.iter()
        .filter_map(|(round, a)| Some((*round, a - b.get(round)?)))
        .collect()
}

/// Estimates the arithmetic mean with its interval.
pub(super) fn estimate_mean(rounds: &FigureByRound) -> Option<Estimate> {
    let values: Vec<f64> = rounds.values().copied().collect();
    let (value, error) = compute_mean_and_error(&values)?;
    let interval =
        error.and_then(|error| interval_around_mean(value, error, values.len() as f64 - 1.0));
    Some(Estimate {
        value,
        interval,
        rounds: values.len() as u32,
    })
}

/// Estimates the geometric mean of `to ÷ from` over the rounds that both have, with its interval.
pub(super) fn estimate_ratio(from: &FigureByRound, to: &FigureByRound) -> Option<Estimate> {
    let logs: Vec<f64> = to
        .iter()
        .filter_map(|(round, to)| Some((to / from.get(round)?).ln()))
        .filter(|log| log.is_finite())
        .collect();
    let (log, error) = compute_mean_and_error(&logs)?;
    Some(Estimate {
        value: log.exp(),
        interval: error
            .and_then(|error| interval_on_log_scale(log.exp(), error, logs.len() as f64 - 1.0)),
        rounds: logs.len() as u32,
    })
}

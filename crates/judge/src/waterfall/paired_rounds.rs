//! Computes estimates over paired rounds: Student's t on the differences, or for ratios on the logarithms. Estimates
//! over unpaired rounds are in `estimate`.

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

/// Estimates `to ÷ from` over the rounds that have both: the ratio of the two means, so that it agrees with the printed
/// times. The interval comes from the ratios of the rounds, on the log scale.
pub(super) fn estimate_ratio(from: &FigureByRound, to: &FigureByRound) -> Option<Estimate> {
    let both: Vec<(f64, f64)> = to
        .iter()
        .filter_map(|(round, to)| Some((*from.get(round)?, *to)))
        .filter(|(from, to)| (to / from).ln().is_finite())
        .collect();
    let logs: Vec<f64> = both.iter().map(|(from, to)| (to / from).ln()).collect();
    let (_, error) = compute_mean_and_error(&logs)?;
    let [all_from, all_to] = both
        .iter()
        .fold([0.0, 0.0], |[a, b], (from, to)| [a + from, b + to]);
    let value = all_to / all_from;
    Some(Estimate {
        value,
        interval: error
            .and_then(|error| interval_on_log_scale(value, error, logs.len() as f64 - 1.0)),
        rounds: logs.len() as u32,
    })
}

/// Removes rounds that are missing in at least one of the figures, so that figures printed side by side come from the
/// same rounds. Removes nothing if fewer than two rounds, or less than half of the rounds of any figure, would remain.
pub(super) fn keep_common_rounds(figures: &mut [FigureByRound]) {
    let measured = figures.iter().filter(|rounds| !rounds.is_empty());
    let most = measured.clone().map(BTreeMap::len).max().unwrap_or(0);
    let mut common: Vec<u32> = measured.clone().flat_map(BTreeMap::keys).copied().collect();
    common.sort_unstable();
    common.dedup();
    common.retain(|round| measured.clone().all(|rounds| rounds.contains_key(round)));
    if common.len() >= 2 && common.len() * 2 >= most {
        for rounds in figures {
            rounds.retain(|round, _| common.contains(round));
        }
    }
}

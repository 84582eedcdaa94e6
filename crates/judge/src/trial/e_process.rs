//! Sequential evidence for trials without a planned end: an e-process for symmetry. For trials with a planned end,
//! `sign_flips` needs fewer pairs.
//!
//! The e-process is the capital of a gambler who bets on each pair that its sign is "better". The odds are fair if the
//! change has no effect, and the stake depends only on the sizes of earlier pairs. If the change has no effect, the
//! capital ever exceeds 20 times its start in at most one of 20 trials, however long they run (Ville's inequality).

use super::look_schedule::PlannedLook;

/// Three gamblers, as (stake, growth of the stake with the size of a pair, initial fraction of the capital).
const GAMBLERS: [(f64, f64, f64); 3] = [(0.3, 1.0, 0.25), (0.6, 1.0, 0.25), (0.97, 3.0, 0.5)];

/// Computes the capital after each value, in order, as evidence against "not above 0". It starts at 1.
#[must_use]
pub fn compute_wealth(x: &[f64]) -> Vec<f64> {
    let mut purses = GAMBLERS.map(|(_, _, share)| share);
    let mut sizes: Vec<f64> = Vec::with_capacity(x.len());
    let mut out = Vec::with_capacity(x.len());
    for &value in x {
        let size = value.abs();
        sizes.insert(sizes.partition_point(|other| *other < size), size);
        let scale = compute_sorted_median(&sizes);
        for (purse, (stake, growth, _)) in purses.iter_mut().zip(GAMBLERS) {
            let bet = match value {
                0.0 => 0.0,
                _ if scale > 0.0 => (growth * value / scale).tanh(),
                _ => value.signum(),
            };
            *purse *= 1.0 + stake * bet;
        }
        out.push(purses.iter().sum());
    }
    out
}

/// Returns the median of sorted values.
fn compute_sorted_median(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
}

/// Returns the first look up to which the capital has once reached 1/α; `None` if it has not.
pub(super) fn find_rejection(x: &[f64], looks: &[PlannedLook], alpha: f64) -> Option<usize> {
    let reached = compute_wealth(x).iter().position(|e| *e >= 1.0 / alpha)?;
    looks.iter().position(|look| look.pairs > reached)
}

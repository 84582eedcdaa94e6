//! Evidence that may be looked at after every pair, for ever: an e-process for symmetry.
//!
//! It is the fortune of a gambler who bets on each pair's sign being "better", at fair odds if the
//! change does nothing, with a stake that depends only on sizes seen so far. A fortune of 20 or more
//! at any time happens in at most one of 20 such trials, however long they go on (Ville's
//! inequality). It is for trials without a planned end; with one, sign flips need fewer pairs.

use super::looks::At;

/// Three gamblers with a share of the fortune each: how much they stake, how fast the stake grows
/// with a pair's size, and their share.
const GAMBLERS: [(f64, f64, f64); 3] = [(0.3, 1.0, 0.25), (0.6, 1.0, 0.25), (0.97, 3.0, 0.5)];

/// The fortune after each value, in order, against "not above 0". Starts from 1.
#[must_use]
pub fn fortunes(x: &[f64]) -> Vec<f64> {
    let mut purses = GAMBLERS.map(|(_, _, share)| share);
    let mut sizes: Vec<f64> = Vec::with_capacity(x.len());
    let mut out = Vec::with_capacity(x.len());
    for &value in x {
        let size = value.abs();
        sizes.insert(sizes.partition_point(|other| *other < size), size);
        let scale = middle(&sizes);
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

/// Median of sorted values.
fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2])
}

/// The first look by which the fortune once reached 1/α.
pub(super) fn rejects(x: &[f64], looks: &[At], alpha: f64) -> Option<usize> {
    let reached = fortunes(x).iter().position(|e| *e >= 1.0 / alpha)?;
    looks.iter().position(|look| look.pairs > reached)
}

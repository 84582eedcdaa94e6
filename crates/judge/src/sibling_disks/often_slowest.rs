//! Tests how often a disk was the slowest of its siblings.
//!
//! Each of `k` equal disks is the slowest in one window of `k`, so the number of such windows is
//! binomial. Consecutive windows are correlated and count less, by the correlation `r` of each
//! window's ratio with the next (`n (1 - r) / (1 + r)` for a first-order process). `r` is taken
//! [`DOUBT`] standard errors above its estimate, because a short series underestimates it (the bias
//! is `(1 + 4 r) / n`; Marriott and Pope, Biometrika 41, 1954).

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// Standard errors added to the estimated correlation of windows.
const DOUBT: f64 = 1.5;

/// Computes the probability that one of `siblings` equal disks is the slowest in at least `slowest` windows. `ratios`
/// contains, for each window, the logarithm of the disk's time ÷ that of its siblings.
pub fn compute_chance_of_slowest(ratios: &[f64], slowest: usize, siblings: usize) -> f64 {
    let all = count_independent_windows(compute_correlation(ratios), ratios.len());
    let slowest = slowest.saturating_mul(all) / ratios.len().max(1);
    match (
        Binomial::new(1.0 / siblings.max(2) as f64, all as u64),
        slowest,
    ) {
        (_, 0) | (Err(_), _) => 1.0,
        // sf(x) is P(X > x).
        (Ok(equal), slowest) => equal.sf(slowest as u64 - 1),
    }
}

/// Computes the correlation of each value with the next.
fn compute_correlation(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let off: Vec<f64> = logs.iter().map(|log| log - mean).collect();
    let square: f64 = off.iter().map(|off| off * off).sum();
    let next: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    match square > 0.0 {
        true => next / square,
        false => 0.0,
    }
}

/// Computes how many independent windows contain as much information as `windows` windows with this correlation.
fn count_independent_windows(correlation: f64, windows: usize) -> usize {
    let n = windows.max(1) as f64;
    let bias = (1.0 + 4.0 * correlation.max(0.0)) / n;
    let least = (correlation + bias + DOUBT / n.sqrt()).clamp(0.0, 0.99);
    (n * (1.0 - least) / (1.0 + least)) as usize
}

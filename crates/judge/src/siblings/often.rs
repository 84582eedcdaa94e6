//! How often a disk was the slowest.
//!
//! If disks are equal, each of `k` that work is the slowest in one window of `k`, so the number is
//! binomial. Windows that follow each other are not independent, so they count for fewer, by the
//! correlation of each window's ratio with the next one's (`n (1 - r) / (1 + r)` for a first-order
//! process), with `r` taken [`DOUBT`] standard errors higher than it seems, because a short series shows
//! less than there is (its bias is `(1 + 4 r) / n`; Marriott and Pope, Biometrika 41, 1954).

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// Standard errors by which the correlation of windows is taken to be higher than it seems.
const DOUBT: f64 = 1.5;

/// Chance that one of `siblings` equal disks is the slowest in so many windows; `ratios` are logarithms.
pub fn chance(ratios: &[f64], slowest: usize, siblings: usize) -> f64 {
    let all = independent(correlation(ratios), ratios.len());
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

/// Correlation of each with the next one.
fn correlation(logs: &[f64]) -> f64 {
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let off: Vec<f64> = logs.iter().map(|log| log - mean).collect();
    let square: f64 = off.iter().map(|off| off * off).sum();
    let next: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    match square > 0.0 {
        true => next / square,
        false => 0.0,
    }
}

/// How many independent windows `windows` with such a correlation are worth.
fn independent(correlation: f64, windows: usize) -> usize {
    let n = windows.max(1) as f64;
    let bias = (1.0 + 4.0 * correlation.max(0.0)) / n;
    let least = (correlation + bias + DOUBT / n.sqrt()).clamp(0.0, 0.99);
    (n * (1.0 - least) / (1.0 + least)) as usize
}

//! Estimates the ratio between two series of runs without assuming a distribution. Shifts are
//! found in the parent module.

use crate::estimate::CONFIDENCE;
use assay_model::result::Interval;
use statrs::distribution::{ContinuousCDF as _, Normal};

/// Number of runs up to which the exact distribution is computed; for more, the normal approximation is precise enough.
const COUNTED: usize = 40;

/// Estimates the ratio (Hodges and Lehmann 1963) and its interval from logarithms.
pub(super) fn estimate_ratio(before: &[f64], after: &[f64]) -> (f64, Option<Interval>) {
    let mut differences: Vec<f64> = after
        .iter()
        .flat_map(|new| before.iter().map(move |old| new - old))
        .collect();
    differences.sort_by(f64::total_cmp);
    let count = differences.len();
    if count == 0 {
        return (1.0, None);
    }
    let middle = f64::midpoint(differences[(count - 1) / 2], differences[count / 2]);
    let interval = count_differences_to_drop(before.len(), after.len()).map(|out| Interval {
        low: differences[out].exp(),
        high: differences[count - 1 - out].exp(),
        confidence: CONFIDENCE,
    });
    (middle.exp(), interval)
}

/// Computes how many differences to drop at each end; `None` if even the full range does not reach the confidence
/// level.
fn count_differences_to_drop(m: usize, n: usize) -> Option<usize> {
    let allowed = (1.0 - CONFIDENCE) / 2.0;
    if m + n > COUNTED {
        let (m, n) = (m as f64, n as f64);
        let normal = Normal::new(m * n / 2.0, (m * n * (m + n + 1.0) / 12.0).sqrt()).ok()?;
        return Some((normal.inverse_cdf(allowed) - 0.5).floor().max(0.0) as usize);
    }
    let counts = count_mann_whitney(m, n);
    let all: f64 = counts.iter().sum();
    let mut below = 0.0;
    // Finds the largest number whose cumulative probability stays within the allowed error.
    let mut out = None;
    for (value, count) in counts.iter().enumerate() {
        below += count / all;
        if below > allowed {
            break;
        }
        out = Some(value);
    }
    out
}

/// Counts, for each value of the Mann-Whitney statistic U, the possible orders of m and n runs. These are the
/// coefficients of the Gaussian binomial.
fn count_mann_whitney(m: usize, n: usize) -> Vec<f64> {
    let size = m * n + 1;
    let mut counts = vec![0.0; size];
    counts[0] = 1.0;
    for i in 1..=m {
        // × (1 − q^(n+i)) ÷ (1 − q^i)
        for at in (n + i..size).rev() {
            counts[at] -= counts[at - n - i];
        }
        for at in i..size {
            counts[at] += counts[at - i];
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_mann_and_whitney() {
        assert_eq!(count_mann_whitney(2, 2), [1.0, 1.0, 2.0, 1.0, 1.0]);
        let all: f64 = count_mann_whitney(12, 9).iter().sum();
        assert!((all - 293_930.0).abs() < 1e-6, "21 over 9");
        // Tabulated critical values of U, two-sided 5 %.
        for (m, n, critical) in [(4, 4, 0), (5, 5, 2), (5, 8, 6), (10, 10, 23), (20, 20, 127)] {
            assert_eq!(count_differences_to_drop(m, n), Some(critical), "{m} {n}");
        }
        assert_eq!(count_differences_to_drop(3, 3), None);
        assert_eq!(count_differences_to_drop(20, 21).unwrap() / 10, 13);
    }

    #[test]
    fn a_ratio_and_nothing_to_compare() {
        let before: Vec<f64> = (0..9).map(|at| f64::from(at) / 100.0).collect();
        let after: Vec<f64> = before.iter().map(|log| log + 2f64.ln()).collect();
        let (ratio, interval) = estimate_ratio(&before, &after);
        assert!((ratio - 2.0).abs() < 1e-9);
        let interval = interval.unwrap();
        assert!(interval.low > 1.8 && interval.low < 2.0 && interval.high > 2.0);
        assert_eq!(estimate_ratio(&before, &[]), (1.0, None));
    }
}

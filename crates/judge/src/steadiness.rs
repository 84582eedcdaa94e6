//! Judges whether the rate was steady over the rounds.
//!
//! SNIA Solid State Storage Performance Test Specification 2.0.2, "Steady State": over a window of
//! five rounds, the range of the values is at most 20 % of the mean, and the rise of the best
//! linear fit is at most 10 % of the mean.

use assay_model::result::Steadiness;
use assay_model::sample::RatePoint;

/// Number of rounds in the window.
const WINDOW: usize = 5;
/// Maximum range of the rates, as a fraction of the mean.
const RANGE: f64 = 0.20;
/// Maximum rise of the fitted line over the window, as a fraction of the mean.
const SLOPE: f64 = 0.10;
/// Minimum relative change from the first to the second half of the samples that is reported.
const DRIFT: f64 = 0.10;

/// Returns whether the last five rounds are in SNIA's steady state; false for fewer than five.
#[must_use]
pub fn is_steady(rates: &[f64]) -> bool {
    judge_steadiness(rates, &[]).steady
}

/// Judges the rates of the rounds, in the order in which they were measured.
pub(crate) fn judge_steadiness(rates: &[f64], series: &[&[RatePoint]]) -> Steadiness {
    let drift = find_drift(series).map_or_else(String::new, |drift| format!("; {drift}"));
    let unsteady = |reason: String| Steadiness {
        steady: false,
        range: None,
        slope: None,
        reason: format!("{reason}{drift}"),
    };
    if rates.len() < WINDOW {
        return unsteady(match rates.len() {
            0 => "no round counts".to_owned(),
            1 => format!("1 round; {WINDOW} are needed to tell"),
            n => format!("{n} rounds; {WINDOW} are needed to tell"),
        });
    }
    let window = &rates[rates.len() - WINDOW..];
    let mean = window.iter().sum::<f64>() / WINDOW as f64;
    if !(mean.is_finite() && mean > 0.0) {
        return unsteady("nothing was moved".to_owned());
    }
    let most = window.iter().copied().fold(f64::MIN, f64::max);
    let least = window.iter().copied().fold(f64::MAX, f64::min);
    let range = (most - least) / mean;
    let slope = (fit_slope(window) * (WINDOW - 1) as f64 / mean).abs();
    let steady = range <= RANGE && slope <= SLOPE;
    let seen = format!(
        "range {:.0} % of the mean (at most {:.0} %), slope {:.0} % (at most {:.0} %) over the last {WINDOW} rounds",
        range * 100.0,
        RANGE * 100.0,
        slope * 100.0,
        SLOPE * 100.0
    );
    Steadiness {
        steady,
        range: Some(range),
        slope: Some(slope),
        reason: format!("{seen}{drift}"),
    }
}

/// Computes the slope of the least-squares line through the values at 0, 1, 2, …
fn fit_slope(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n;
    let (mut up, mut across) = (0.0, 0.0);
    for (x, y) in values.iter().enumerate() {
        let x = x as f64 - middle;
        up += x * (y - mean);
        across += x * x;
    }
    up / across
}

/// Describes how the rate changed within the samples, if it changed the same way in all of them.
fn find_drift(series: &[&[RatePoint]]) -> Option<String> {
    let halves: Vec<(f64, f64)> = series
        .iter()
        .filter(|points| points.len() >= 4)
        .map(|points| {
            let rates: Vec<f64> = points.iter().map(RatePoint::per_s).collect();
            let half = rates.len() / 2;
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            (mean(&rates[..half]), mean(&rates[rates.len() - half..]))
        })
        .filter(|(first, _)| *first > 0.0)
        .collect();
    let falls = halves
        .iter()
        .all(|(first, second)| second / first < 1.0 - DRIFT);
    let rises = halves
        .iter()
        .all(|(first, second)| second / first > 1.0 + DRIFT);
    if halves.is_empty() || !(falls || rises) {
        return None;
    }
    // The mean of the ratios would be that of the sample with the slowest beginning.
    let (first, second) = halves
        .iter()
        .fold((0.0, 0.0), |all, half| (all.0 + half.0, all.1 + half.1));
    Some(format!(
        "within the samples the rate {} to {:.0} % from the first to the second half",
        if falls { "fell" } else { "rose" },
        second / first * 100.0
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::sample::{Operation, Rate};
    use proptest::prelude::*;

    fn points(rates: &[f64]) -> Vec<RatePoint> {
        let point = |(i, &per_s): (usize, &f64)| RatePoint {
            at_ms: i as u64 * 100,
            rates: [(
                Operation::Read,
                Rate {
                    per_s,
                    bytes_per_s: 0.0,
                },
            )]
            .into(),
        };
        rates.iter().enumerate().map(point).collect()
    }

    #[test]
    fn both_criteria_must_hold() {
        assert!(judge_steadiness(&[100.0, 105.0, 95.0, 102.0, 98.0], &[]).steady);
        let wide = judge_steadiness(&[100.0, 125.0, 100.0, 75.0, 100.0], &[]);
        assert!(!wide.steady && wide.range == Some(0.5), "{wide:?}");
        // The range is 16 %, all of it a steady rise.
        let rising = judge_steadiness(&[92.0, 96.0, 100.0, 104.0, 108.0], &[]);
        assert!(!rising.steady, "{rising:?}");
        assert!((rising.slope.unwrap() - 0.16).abs() < 1e-9);
        assert!((rising.range.unwrap() - 0.16).abs() < 1e-9);
    }

    #[test]
    fn only_the_last_five_rounds_are_looked_at() {
        assert!(judge_steadiness(&[900.0, 500.0, 100.0, 101.0, 99.0, 100.0, 100.0], &[]).steady);
    }

    #[test]
    fn the_limits_themselves_are_allowed() {
        assert!(judge_steadiness(&[90.0, 110.0, 100.0, 110.0, 90.0], &[]).steady);
        assert!(!judge_steadiness(&[89.0, 110.0, 100.0, 110.0, 90.0], &[]).steady);
    }

    #[test]
    fn fewer_rounds_are_a_burst_and_say_why() {
        let judged = judge_steadiness(&[100.0; 4], &[]);
        assert!(!judged.steady && judged.range.is_none());
        assert!(judged.reason.contains("4 rounds"), "{}", judged.reason);
        assert!(!judge_steadiness(&[], &[]).steady);
        assert!(!judge_steadiness(&[0.0; 5], &[]).steady);
    }

    #[test]
    fn a_fall_within_the_samples_is_said_when_all_show_it() {
        let falling = points(&[100.0, 100.0, 60.0, 60.0]);
        let level = points(&[100.0, 99.0, 100.0, 101.0]);
        let reason = judge_steadiness(&[100.0], &[&falling, &falling]).reason;
        insta::assert_snapshot!(reason, @"1 round; 5 are needed to tell; within the samples the rate fell to 60 % from the first to the second half");
        let reason = judge_steadiness(&[100.0], &[&falling, &level]).reason;
        assert!(!reason.contains("fell"), "{reason}");
        // A sample that began at a hundredth of the rate does not make it 33 times.
        let usual = points(&[100.0, 100.0, 120.0, 120.0]);
        let late = points(&[1.0, 1.0, 100.0, 100.0]);
        let reason = judge_steadiness(&[100.0], &[&usual, &usual, &late]).reason;
        assert!(reason.contains("rose to 169 %"), "{reason}");
    }

    proptest! {
        #[test]
        fn scale_does_not_matter_and_nothing_is_lost(
            rates in prop::collection::vec(1.0f64..1e6, 5..12),
            scale in 0.001f64..1000.0,
        ) {
            let scaled: Vec<f64> = rates.iter().map(|rate| rate * scale).collect();
            let (a, b) = (judge_steadiness(&rates, &[]), judge_steadiness(&scaled, &[]));
            prop_assert!((a.range.unwrap() - b.range.unwrap()).abs() < 1e-6);
            prop_assert!((a.slope.unwrap() - b.slope.unwrap()).abs() < 1e-6);
            // The line rises by at most the range, times 6/5 for five points.
            prop_assert!(a.slope.unwrap() <= a.range.unwrap() * 1.2 + 1e-9);
        }
    }
}

//! Intervals by inverting the test: an interval contains the effects that no look so far has ruled out.
//!
//! The test is valid at every look, so the interval is too. An effect that was ruled out at one look stays ruled out,
//! so an interval never grows.

use super::robust_statistics::compute_robust_deviation;
use super::sequential_test::SequentialTest;

/// Interval of log ratios. An end that is `None` is infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct IntervalEnds {
    /// Lower end; `None` if infinite.
    pub low: Option<f64>,
    /// Upper end; `None` if infinite.
    pub high: Option<f64>,
}

/// Computes the interval at each look.
pub(super) fn compute_intervals(test: &SequentialTest, x: &[f64]) -> Vec<IntervalEnds> {
    let negated: Vec<f64> = x.iter().map(|x| -x).collect();
    let mut ends = IntervalEnds::default();
    let mut out = Vec::with_capacity(test.looks.len());
    for looks in 1..=test.looks.len() {
        let next = IntervalEnds {
            low: find_lower_end(test, x, looks, ends.low),
            high: find_lower_end(test, &negated, looks, ends.high.map(|high| -high))
                .map(|low| -low),
        };
        // Drifting noise can rule out every effect; then the last interval stands.
        match (next.low, next.high) {
            (Some(low), Some(high)) if low > high => {}
            _ => ends = next,
        }
        out.push(ends);
    }
    out
}

/// Computes the interval at the last look alone.
pub(super) fn compute_last_interval(test: &SequentialTest, x: &[f64]) -> IntervalEnds {
    let negated: Vec<f64> = x.iter().map(|x| -x).collect();
    let looks = test.looks.len();
    let ends = IntervalEnds {
        low: find_lower_end(test, x, looks, None),
        high: find_lower_end(test, &negated, looks, None).map(|low| -low),
    };
    match (ends.low, ends.high) {
        (Some(low), Some(high)) if low > high => IntervalEnds::default(),
        _ => ends,
    }
}

/// Finds the largest effect that is proved to be smaller than the true effect, with a precision of 2 % of the noise.
/// `known` is an effect that an earlier look ruled out. `None` if nothing is ruled out.
fn find_lower_end(
    test: &SequentialTest,
    x: &[f64],
    looks: usize,
    known: Option<f64>,
) -> Option<f64> {
    let pairs = test.looks[looks - 1].pairs.min(x.len());
    let x = &x[..pairs];
    let ruled_out = |effect: f64| {
        let shifted: Vec<f64> = x.iter().map(|x| x - effect).collect();
        test.find_rejection_by(&shifted, looks).is_some()
    };
    let step = (compute_robust_deviation(x) / 50.0).clamp(1e-5, 2.5e-3);
    let least = x.iter().copied().reduce(f64::min)?;
    let mut high = x.iter().copied().reduce(f64::max)?;
    let mut low = match known {
        Some(known) => known,
        // If even an effect below every pair is not ruled out, no effect is.
        None => Some(least - step).filter(|effect| ruled_out(*effect))?,
    };
    while high - low > step {
        let middle = f64::midpoint(low, high);
        if ruled_out(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

//! Intervals by inversion: the effects that the test has not ruled out at any look so far.
//!
//! Because the test may be looked at whenever it likes, so may the interval. What one look ruled
//! out stays ruled out, so an interval never grows.

use super::centre::spread;
use super::test::Test;

/// Ends of an interval of log ratios; none is infinite.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ends {
    /// Lower.
    pub low: Option<f64>,
    /// Upper.
    pub high: Option<f64>,
}

/// The interval at each look.
pub(super) fn at_each_look(test: &Test, x: &[f64]) -> Vec<Ends> {
    let negated: Vec<f64> = x.iter().map(|x| -x).collect();
    let mut ends = Ends::default();
    let mut out = Vec::with_capacity(test.looks.len());
    for looks in 1..=test.looks.len() {
        let next = Ends {
            low: low(test, x, looks, ends.low),
            high: low(test, &negated, looks, ends.high.map(|high| -high)).map(|low| -low),
        };
        // Noise that changes its mind can rule out everything; then the last interval stands.
        match (next.low, next.high) {
            (Some(low), Some(high)) if low > high => {}
            _ => ends = next,
        }
        out.push(ends);
    }
    out
}

/// The interval at the last look alone.
pub(super) fn at_last_look(test: &Test, x: &[f64]) -> Ends {
    let negated: Vec<f64> = x.iter().map(|x| -x).collect();
    let looks = test.looks.len();
    let ends = Ends {
        low: low(test, x, looks, None),
        high: low(test, &negated, looks, None).map(|low| -low),
    };
    match (ends.low, ends.high) {
        (Some(low), Some(high)) if low > high => Ends::default(),
        _ => ends,
    }
}

/// The largest effect that is known to be too small, to 2 % of the noise. `known` is one that an
/// earlier look ruled out. None when nothing is ruled out.
fn low(test: &Test, x: &[f64], looks: usize, known: Option<f64>) -> Option<f64> {
    let pairs = test.looks[looks - 1].pairs.min(x.len());
    let x = &x[..pairs];
    let ruled_out = |effect: f64| {
        let shifted: Vec<f64> = x.iter().map(|x| x - effect).collect();
        test.rejects_by(&shifted, looks).is_some()
    };
    let step = (spread(x) / 50.0).clamp(1e-5, 2.5e-3);
    let least = x.iter().copied().reduce(f64::min)?;
    let mut high = x.iter().copied().reduce(f64::max)?;
    let mut low = match known {
        Some(known) => known,
        // With every pair above it: if that is not proof, nothing is.
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

//! Computes rate and latency of a load over time, from the intervals of the measured window.

use super::Measured;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Minimum number of latencies from which a 99th percentile is computed.
const FEW: u64 = 100;

/// Rate and latency in one interval of a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Point {
    /// Middle of the interval, measured from the start of the window.
    pub at: Nanos,
    /// Successful responses per second that ended in the interval.
    pub rate: f64,
    /// Failed requests per second in the interval.
    pub failures: f64,
    /// Median latency of the requests that were due in the interval; `None` with fewer than two.
    pub p50: Option<Nanos>,
    /// 90th percentile of the same latencies; `None` with fewer than ten.
    pub p90: Option<Nanos>,
    /// 99th percentile of the same latencies; `None` with fewer than a hundred.
    pub p99: Option<Nanos>,
}

impl Measured {
    /// Returns rate and latency over time. The result is empty for runs stored before 0.3.
    #[must_use]
    pub fn over_time(&self) -> Vec<Point> {
        let length = self.stretch.0;
        let starts = (0u64..).map(|at| at.saturating_mul(length));
        let points = starts.zip(&self.stretches).filter_map(|(from, stretch)| {
            // The last interval ends with the window.
            let lasted = length.min(self.window.0.saturating_sub(from));
            let per_s = |count: u64| count as f64 * 1e9 / lasted as f64;
            let percentile = |percent: f64, fewest: u64| {
                let enough = stretch.latency.count() >= fewest;
                enough
                    .then(|| stretch.latency.percentile(percent))
                    .flatten()
                    .map(Nanos)
            };
            (lasted > length / 2 && lasted > 0).then(|| Point {
                at: Nanos(from + lasted / 2),
                rate: per_s(stretch.answers),
                failures: per_s(stretch.failures),
                p50: percentile(50.0, 2),
                p90: percentile(90.0, 10),
                p99: percentile(99.0, FEW),
            })
        });
        points.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Stretch;

    #[test]
    fn a_rest_that_is_too_short_is_no_point_and_few_answers_have_no_tail() {
        let stretch = |count: u64| Stretch {
            answers: count,
            failures: 1,
            latency: [(1_000, count)].into_iter().collect(),
        };
        let measured = Measured {
            window: Nanos(2_300_000_000),
            stretch: Nanos(1_000_000_000),
            stretches: vec![stretch(200), stretch(20), stretch(3)],
            ..Measured::default()
        };
        let points = measured.over_time();
        assert_eq!(points.len(), 2);
        assert_eq!((points[0].rate, points[0].failures), (200.0, 1.0));
        assert_eq!(points[1].at, Nanos(1_500_000_000));
        assert!(points[0].p99.is_some() && points[1].p99.is_none() && points[1].p90.is_some());
        assert!(Measured::default().over_time().is_empty());
    }
}

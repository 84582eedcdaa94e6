//! How a history goes on, and when it meets a limit.

use super::futures::{Coverage, Futures};
use super::history::UsagePoint;
use crate::error::PlannerError;
use serde::Serialize;

/// Equal steps into which a history is cut at most: finer ones show how values jump about, not how they
/// grow.
const MOST_STEPS: usize = 48;
const DAY: f64 = 86_400.0;

/// Growth in bytes a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Trend {
    /// In the middle of the futures, over as long as the history is.
    pub per_day: f64,
    /// 95 % interval of it.
    pub interval: (f64, f64),
    /// Bytes at the last point.
    pub now: f64,
    /// Time of the last point, seconds since 1970.
    pub at: i64,
    /// Points used.
    pub points: usize,
    /// Days between the first and the last.
    pub days: f64,
    /// Dates that would have been said earlier in this history, and how many of them held.
    pub coverage: Coverage,
    /// How far the futures were spread out for it.
    pub spread: f64,
}

/// What becomes of a history.
pub struct Outlook {
    /// Its growth.
    pub trend: Trend,
    futures: Futures,
    /// Seconds.
    step: f64,
}

/// When a share of the space is reached. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Forecast {
    /// Share, 0 to 1.
    pub share: f64,
    /// Whether it is reached at the last point.
    pub already: bool,
    /// In the middle of the futures; none when it is not reached within ten times the history.
    pub when: Option<i64>,
    /// 95 % interval.
    pub earliest: Option<i64>,
    /// None: perhaps never.
    pub latest: Option<i64>,
}

/// Looks ahead from a history: the last point counts as it is, and nothing is smoothed but single points
/// that are taken back by the next.
///
/// # Errors
/// Fewer than three points at different times, or all within the same hour.
pub fn compute_outlook(points: &[UsagePoint]) -> Result<Outlook, PlannerError> {
    let wrong = |reason: &str| Err(PlannerError::value("history", reason.to_owned()));
    let mut taken: Vec<(f64, f64)> = Vec::new();
    for point in points {
        let one = (point.time as f64, point.used as f64);
        match taken.last_mut() {
            Some(last) if last.0 >= one.0 => last.1 = one.1,
            _ => taken.push(one),
        }
    }
    let &[first, .., last] = taken.as_slice() else {
        return wrong("a trend needs at least three points");
    };
    if taken.len() < 3 {
        return wrong("a trend needs at least three points");
    }
    let seconds = last.0 - first.0;
    if seconds < DAY / 24.0 {
        return wrong("all points lie within an hour");
    }
    let without = without_spikes(&taken);
    let steps = (taken.len() - 1).clamp(3, MOST_STEPS);
    let step = seconds / steps as f64;
    let values: Vec<f64> = (0..=steps)
        .map(|at| interpolate(&without, first.0 + step * at as f64))
        .collect();
    let futures = Futures::of(&values);
    let [low, middle, high] = futures.change(steps).map(|change| change / (seconds / DAY));
    Ok(Outlook {
        trend: Trend {
            per_day: middle,
            interval: (low, high),
            now: last.1,
            at: points.last().map_or(0, |point| point.time),
            points: taken.len(),
            days: seconds / DAY,
            coverage: futures.coverage,
            spread: futures.spread,
        },
        futures,
        step,
    })
}

/// Each inner point is the middle one of itself and its neighbours.
fn without_spikes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut without = points.to_vec();
    for (at, three) in points.windows(3).enumerate() {
        let mut values = [three[0].1, three[1].1, three[2].1];
        values.sort_by(f64::total_cmp);
        without[at + 1].1 = values[1];
    }
    without
}

/// On the straight line between the two points around a time.
fn interpolate(points: &[(f64, f64)], time: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < time);
    let after = after.clamp(1, points.len() - 1);
    let (a, b) = (points[after - 1], points[after]);
    a.1 + (b.1 - a.1) * ((time - a.0) / (b.0 - a.0)).clamp(0.0, 1.0)
}

impl Outlook {
    /// When `share` of `size` is in use.
    #[must_use]
    pub fn forecast(&self, size: u64, share: f64) -> Forecast {
        let level = size as f64 * share;
        let already = self.trend.now >= level;
        let passage = self.futures.passage(level);
        let date = |steps: f64| {
            let seconds = steps * self.step;
            // Nobody plans for a later century.
            (seconds < 36_525.0 * DAY).then(|| self.trend.at.saturating_add(seconds as i64))
        };
        let now = Some(self.trend.at);
        Forecast {
            share,
            already,
            when: if already { now } else { date(passage.middle) },
            earliest: if already { now } else { date(passage.earliest) },
            latest: if already { now } else { date(passage.latest) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn daily(values: impl IntoIterator<Item = u64>) -> Vec<UsagePoint> {
        let point = |(day, used)| UsagePoint {
            time: day as i64 * 86_400,
            used,
        };
        values.into_iter().enumerate().map(point).collect()
    }

    #[test]
    fn a_line_is_found_through_an_accident() {
        let mut points = daily((0..100).map(|day| 1_000_000 + 1_000 * day));
        points[50].used = 9_000_000;
        let found = compute_outlook(&points).unwrap();
        assert!(
            (found.trend.per_day - 1000.0).abs() < 1.0,
            "{:?}",
            found.trend
        );
        let full = found.forecast(2_000_000, 0.8);
        assert!(
            (599..=601).contains(&(full.when.unwrap() / 86_400)),
            "{full:?}"
        );
        assert!(full.earliest.unwrap() <= full.when.unwrap() && !full.already);
    }

    #[test]
    fn the_last_line_counts_after_a_step() {
        // A year of 3 TB, then an import: 83 % of 5.4 TB now, which a line through all says for next year.
        let points = daily((0..360).map(|day| {
            if day < 350 {
                3_000_000 + 100 * day
            } else {
                4_500_000
            }
        }));
        let found = compute_outlook(&points).unwrap();
        assert!((found.trend.now - 4_500_000.0).abs() < 1.0);
        let [eighty, ninety] = [0.8, 0.9].map(|share| found.forecast(5_400_000, share));
        assert!(
            eighty.already && eighty.when == Some(points[359].time),
            "{eighty:?}"
        );
        assert!(!ninety.already && ninety.earliest.unwrap() > points[359].time - 86_400);
    }

    #[test]
    fn flat_or_short_histories_say_so() {
        let flat = daily([5; 10]);
        let found = compute_outlook(&flat).unwrap();
        assert_eq!(found.forecast(100, 0.8).when, None);
        assert!(compute_outlook(&flat[..2]).is_err());
        assert!(compute_outlook(&[flat[0]; 5]).is_err());
        assert!(compute_outlook(&[]).is_err());
        let absurd = [
            UsagePoint {
                time: i64::MIN,
                used: 0,
            },
            UsagePoint {
                time: 0,
                used: u64::MAX,
            },
            UsagePoint {
                time: i64::MAX,
                used: 1,
            },
        ];
        let found = compute_outlook(&absurd).unwrap();
        assert_eq!(found.forecast(u64::MAX, 0.9).latest, None);
    }
}

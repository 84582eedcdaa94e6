//! Forecasts the growth of a history, and when the growth reaches a limit.

use super::futures::{Coverage, Futures};
use super::history::UsagePoint;
use crate::error::PlannerError;
use serde::Serialize;

/// Maximum number of equal time steps into which a history is divided. Shorter steps show noise instead of growth.
const MOST_STEPS: usize = 48;
const DAY: f64 = 86_400.0;

/// Measured growth of a history, with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Trend {
    /// Median growth in bytes per day, over a period as long as the history.
    pub per_day: f64,
    /// 95 % interval of the growth in bytes per day.
    pub interval: (f64, f64),
    /// Number of used bytes at the last point.
    pub now: f64,
    /// Time of the last point of the history, in seconds since 1970.
    pub at: i64,
    /// Number of points that were used.
    pub points: usize,
    /// Days between the first and the last point.
    pub days: f64,
    /// How many earlier forecasts on this history would have held.
    pub coverage: Coverage,
    /// Factor by which the futures were widened.
    pub spread: f64,
}

/// Growth and simulated futures of a history.
pub struct Outlook {
    /// Growth of the history, in numbers.
    pub trend: Trend,
    futures: Futures,
    /// Length of a time step in seconds.
    step: f64,
}

/// Forecast of the date at which a fraction of the space is used. Times are in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Forecast {
    /// The fraction of the space, 0 to 1.
    pub share: f64,
    /// Whether this fraction was already used at the last point of the history.
    pub already: bool,
    /// Median date; `None` if the fraction is not reached within ten times the length of the history.
    pub when: Option<i64>,
    /// Lower end of the 95 % interval; `None` if this end is not reached either.
    pub earliest: Option<i64>,
    /// Upper end of the 95 % interval; `None` means that the fraction may never be reached.
    pub latest: Option<i64>,
}

/// Forecasts a history. Single spikes are smoothed, except at the last point.
///
/// # Errors
/// The history has fewer than three points at different times, or all points are within one hour.
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

/// Replaces each point, except the first and the last, by the median of itself and its two neighbours.
fn without_spikes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut without = points.to_vec();
    for (at, three) in points.windows(3).enumerate() {
        let mut values = [three[0].1, three[1].1, three[2].1];
        values.sort_by(f64::total_cmp);
        without[at + 1].1 = values[1];
    }
    without
}

/// Interpolates linearly between the points before and after a time.
fn interpolate(points: &[(f64, f64)], time: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < time);
    let after = after.clamp(1, points.len() - 1);
    let (a, b) = (points[after - 1], points[after]);
    a.1 + (b.1 - a.1) * ((time - a.0) / (b.0 - a.0)).clamp(0.0, 1.0)
}

impl Outlook {
    /// Forecasts when the fraction `share` of `size` bytes will be used.
    #[must_use]
    pub fn forecast(&self, size: u64, share: f64) -> Forecast {
        let level = size as f64 * share;
        let already = self.trend.now >= level;
        let passage = self.futures.passage(level);
        let date = |steps: f64| {
            let seconds = steps * self.step;
            // Dates more than a century ahead are irrelevant.
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
        // A year at 3 TB, then an import to 83 % of 5.4 TB. A line through all points would predict next year.
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

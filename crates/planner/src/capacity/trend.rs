//! A line through a history, and when it meets a limit.

use super::history::Point;
use crate::error::PlanError;
use serde::Serialize;

/// Points that are compared with one another; of longer histories every k-th is taken.
const MOST_POINTS: usize = 800;

/// Growth in bytes a day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Median of the slopes between all pairs of points.
    pub per_day: f64,
    /// 95 % interval of it.
    pub interval: (f64, f64),
    /// Bytes on the line at the last point.
    pub now: f64,
    /// Time of the last point, seconds since 1970.
    pub at: i64,
    /// Points used.
    pub points: usize,
    /// Days between the first and the last.
    pub days: f64,
}

/// Theil–Sen slope with Sen's interval (P. K. Sen, J. Am. Stat. Assoc. 63, 1968): a big delete or
/// import in between does not bend it.
///
/// # Errors
/// Fewer than three points, or all within the same hour.
pub fn trend(points: &[Point]) -> Result<Trend, PlanError> {
    let wrong = |reason: &str| Err(PlanError::value("history", reason.to_owned()));
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    // Counted from the newest, so that it is always among them.
    let mut taken: Vec<Point> = points.iter().rev().step_by(step).copied().collect();
    taken.reverse();
    let n = taken.len();
    if n < 3 {
        return wrong("a trend needs at least three points");
    }
    let (first, last) = (taken[0], taken[n - 1]);
    let day = |point: Point| (point.time - first.time) as f64 / 86_400.0;
    if day(last) < 1.0 / 24.0 {
        return wrong("all points lie within an hour");
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for i in 0..n {
        for j in i + 1..n {
            let apart = day(taken[j]) - day(taken[i]);
            if apart > 0.0 {
                slopes.push((taken[j].used as f64 - taken[i].used as f64) / apart);
            }
        }
    }
    slopes.sort_by(f64::total_cmp);
    let count = slopes.len() as f64;
    let nf = n as f64;
    let spread = 1.96 * (nf * (nf - 1.0) * (2.0 * nf + 5.0) / 18.0).sqrt();
    let at = |rank: f64| slopes[(rank.max(0.0) as usize).min(slopes.len() - 1)];
    let per_day = median(&slopes);
    let mut intercepts: Vec<f64> = taken
        .iter()
        .map(|&point| point.used as f64 - per_day * day(point))
        .collect();
    intercepts.sort_by(f64::total_cmp);
    Ok(Trend {
        per_day,
        interval: (at((count - spread) / 2.0), at((count + spread) / 2.0)),
        now: median(&intercepts) + per_day * day(last),
        at: last.time,
        points: n,
        days: day(last),
    })
}

fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// When a share of the space is reached. Times are seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Forecast {
    /// Share, 0 to 1.
    pub share: f64,
    /// On the line; none when it does not grow, or only beyond 100 years.
    pub when: Option<i64>,
    /// With the steeper end of the interval.
    pub earliest: Option<i64>,
    /// With the flatter end; none: perhaps never.
    pub latest: Option<i64>,
}

/// When `used` reaches `share` of `size`, on the trend.
#[must_use]
pub fn forecast(trend: &Trend, size: u64, share: f64) -> Forecast {
    let left = size as f64 * share - trend.now;
    let at = |slope: f64| {
        if left <= 0.0 {
            return Some(trend.at);
        }
        let days = left / slope;
        (slope > 0.0 && days < 36_525.0).then(|| trend.at + (days * 86_400.0) as i64)
    };
    Forecast {
        share,
        when: at(trend.per_day),
        earliest: at(trend.interval.1),
        latest: at(trend.interval.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_through_an_accident() {
        let mut points: Vec<Point> = (0..100)
            .map(|day| Point {
                time: day * 86_400,
                used: 1_000_000 + 1_000 * day as u64,
            })
            .collect();
        points[50].used = 9_000_000;
        let found = trend(&points).unwrap();
        assert!((found.per_day - 1000.0).abs() < 1.0, "{found:?}");
        let full = forecast(&found, 2_000_000, 0.8);
        assert_eq!(full.when.unwrap() / 86_400, 600);
        assert!(full.earliest.unwrap() <= full.when.unwrap());
    }

    #[test]
    fn flat_or_short_histories_say_so() {
        let flat: Vec<Point> = (0..10)
            .map(|d| Point {
                time: d * 86_400,
                used: 5,
            })
            .collect();
        assert_eq!(forecast(&trend(&flat).unwrap(), 100, 0.8).when, None);
        assert!(trend(&flat[..2]).is_err());
        assert!(trend(&[flat[0]; 5]).is_err());
    }
}

//! The growth line with its interval and the days when it is full.

use super::sheet::{Row, Section};
use super::shell::escape;
use crate::capacity::{Forecast, Trend};
use crate::size::binary;
use std::fmt::Write as _;

/// A day in seconds.
const DAY: f64 = 86_400.0;

/// The trend from its first point to the last of the dates, at most 20 years on. `date` names a
/// time in seconds since 1970.
#[must_use]
pub fn growth(
    trend: &Trend,
    size: Option<u64>,
    forecasts: &[Forecast],
    date: impl Fn(i64) -> String,
) -> Section {
    let never = || "perhaps never".to_owned();
    let rows = forecasts.iter().map(|forecast| {
        let said = |time: Option<i64>| time.map_or_else(never, &date);
        Row {
            label: format!("{:.0} % full", forecast.share * 100.0),
            cells: vec![
                said(forecast.when),
                said(forecast.earliest),
                said(forecast.latest),
            ],
            ..Row::default()
        }
    });
    let signed = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", binary(value.abs() as u64))
    };
    let mut section = Section {
        heading: "Growth".into(),
        about: format!(
            "{} a day (95 %: {} to {}), from {} points over {:.0} days.",
            signed(trend.per_day),
            signed(trend.interval.0),
            signed(trend.interval.1),
            trend.points,
            trend.days
        ),
        columns: vec!["share", "on the line", "earliest", "latest"],
        rows: rows.collect(),
        ..Section::default()
    };
    section.drawing = Some(drawing(trend, size, forecasts, &date, &section.about));
    section
}

fn drawing(
    trend: &Trend,
    size: Option<u64>,
    forecasts: &[Forecast],
    date: &impl Fn(i64) -> String,
    about: &str,
) -> String {
    const LEFT: f64 = 90.0;
    const RIGHT: f64 = 870.0;
    const TOP: f64 = 24.0;
    const BOTTOM: f64 = 270.0;
    let days_on = |time: i64| (time as f64 - trend.at as f64) / DAY;
    let last = forecasts
        .iter()
        .filter_map(|f| f.when)
        .map(days_on)
        .fold(trend.days, f64::max);
    let ahead = (last * 1.15).clamp(1.0, 7305.0);
    let back = trend.days.clamp(0.0, 36_525.0);
    let value = |slope: f64, days: f64| (trend.now + slope * days).max(0.0);
    let top = size
        .map_or(0.0, |size| size as f64)
        .max(value(trend.per_day, ahead))
        .max(value(trend.per_day, -back))
        .max(1.0);
    let x = |days: f64| LEFT + (days + back) / (ahead + back) * (RIGHT - LEFT);
    let y = |bytes: f64| BOTTOM - (bytes / top).clamp(0.0, 1.0) * (BOTTOM - TOP);
    let mut svg = format!(
        "<svg viewBox=\"0 0 900 310\" role=\"img\"><title>Growth</title><desc>{}</desc>",
        escape(about)
    );
    // Sampled, because each end is cut off at the top and bottom.
    let edge = |slope: f64| (0..=60).map(move |i| (slope, ahead * f64::from(i) / 60.0));
    let mut points = String::new();
    for (slope, days) in edge(trend.interval.1).chain(edge(trend.interval.0).rev()) {
        let _ = write!(points, "{:.1},{:.1} ", x(days), y(value(slope, days)));
    }
    let _ = write!(
        svg,
        "<polygon points=\"{}\" fill=\"var(--data)\" opacity=\"0.2\"><title>95 % interval</title></polygon>",
        points.trim_end()
    );
    for (from, to, dash) in [(-back, 0.0, ""), (0.0, ahead, " stroke-dasharray=\"6 4\"")] {
        let _ = write!(
            svg,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"var(--data)\" \
             stroke-width=\"2\"{dash}/>",
            x(from),
            y(value(trend.per_day, from)),
            x(to),
            y(value(trend.per_day, to))
        );
    }
    for bytes in [0.0, top / 2.0, top] {
        let _ = write!(
            svg,
            "<text x=\"82\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y(bytes) + 4.0,
            binary(bytes as u64)
        );
    }
    for days in [-back, 0.0, ahead] {
        let time = trend.at.saturating_add((days * DAY) as i64);
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"290\" text-anchor=\"middle\">{}</text>",
            x(days).clamp(LEFT, RIGHT - 20.0),
            escape(&date(time))
        );
    }
    if let Some(size) = size {
        for forecast in forecasts {
            let level = y(size as f64 * forecast.share);
            let when = forecast.when.map_or("perhaps never".to_owned(), date);
            let _ = write!(
                svg,
                "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{level:.1}\" y2=\"{level:.1}\" \
                 stroke=\"var(--special)\" stroke-dasharray=\"2 4\"/><text x=\"{}\" y=\"{:.1}\">{:.0} %: \
                 {}</text>",
                LEFT + 6.0,
                level - 5.0,
                forecast.share * 100.0,
                escape(&when)
            );
        }
    }
    svg.push_str("</svg>\n");
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::forecast;
    use crate::picture::{sheet, tests::stands_alone};

    #[test]
    fn growing_shrinking_and_absurd_lines() {
        for (per_day, at, days) in [
            (1e9, 0, 300.0),
            (-1e9, 1_700_000_000, 1.0),
            (1e300, i64::MAX, 1e12),
            (f64::NAN, i64::MIN, 0.0),
        ] {
            let trend = Trend {
                per_day,
                interval: (per_day * 0.5, per_day * 2.0),
                now: 1e12,
                at,
                points: 9,
                days,
            };
            let dates = match at {
                0 => vec![
                    forecast(&trend, 2 << 40, 0.8),
                    forecast(&trend, 2 << 40, 0.9),
                ],
                _ => Vec::new(),
            };
            let section = growth(&trend, Some(2 << 40), &dates, |t| format!("<{t}>"));
            let page = sheet("g", &[], &[section]);
            stands_alone(&page);
            assert!(!page.contains("NaN") && !page.contains("inf"), "{per_day}");
            assert_eq!(page.contains("80 % full"), at == 0);
        }
    }
}

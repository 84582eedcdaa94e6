//! The growth line with its interval and the days when it is full.

use super::sheet::{Line, Section};
use assay_model::size::Convention::Binary;
use assay_planner::capacity::{Forecast, Trend};
use assay_render::svg::draw::{Anchor, Svg};

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
        let said = |time: Option<i64>| match forecast.already {
            true => "already".to_owned(),
            false => time.map_or_else(never, &date),
        };
        Line {
            label: format!("{:.0} % full", forecast.share * 100.0),
            cells: vec![
                said(forecast.when),
                said(forecast.earliest),
                said(forecast.latest),
            ],
            ..Line::default()
        }
    });
    let signed = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", Binary.show(value.abs() as u64))
    };
    let mut section = Section {
        heading: "Growth".into(),
        about: format!(
            "{} a day (95 %: {} to {}), from {} points over {:.0} days. Said earlier in this history, {} of {} \
             such dates held.",
            signed(trend.per_day),
            signed(trend.interval.0),
            signed(trend.interval.1),
            trend.points,
            trend.days,
            trend.coverage.held,
            trend.coverage.tried
        ),
        columns: vec!["share", "in the middle", "earliest", "latest"],
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
    const WIDTH: f64 = 560.0;
    const LEFT: f64 = 66.0;
    const RIGHT: f64 = WIDTH - 6.0;
    const TOP: f64 = 22.0;
    const BOTTOM: f64 = 230.0;
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
    let mut svg = Svg::new(WIDTH, 256.0);
    // Sampled, because each end is cut off at the top and bottom.
    let edge = |slope: f64| (0..=60).map(move |i| (slope, ahead * f64::from(i) / 60.0));
    let both = edge(trend.interval.1).chain(edge(trend.interval.0).rev());
    let area: Vec<(f64, f64)> = both
        .map(|(slope, days)| (x(days), y(value(slope, days))))
        .collect();
    svg.path(&area, "area");
    for (from, to, class) in [(-back, 0.0, "line"), (0.0, ahead, "line dash")] {
        let at = |days: f64| (x(days), y(value(trend.per_day, days)));
        svg.path(&[at(from), at(to)], class);
    }
    for bytes in [0.0, top / 2.0, top] {
        let said = Binary.show(bytes as u64);
        svg.text(LEFT - 6.0, y(bytes) + 4.0, Anchor::End, "ax n", &said);
    }
    for (days, anchor) in [
        (-back, Anchor::Start),
        (0.0, Anchor::Middle),
        (ahead, Anchor::End),
    ] {
        let time = trend.at.saturating_add((days * DAY) as i64);
        // Where the past or the future is short, their dates would lie on each other.
        let near = |other: f64| (x(days) - x(other)).abs() < 70.0;
        if days == 0.0 && (near(-back) || near(ahead)) {
            continue;
        }
        svg.text(x(days), BOTTOM + 16.0, anchor, "ax n", &date(time));
    }
    for forecast in forecasts.iter().take(if size.is_some() { 9 } else { 0 }) {
        let level = y(size.unwrap_or(0) as f64 * forecast.share);
        let when = match forecast.already {
            true => "already".to_owned(),
            false => forecast.when.map_or("perhaps never".to_owned(), date),
        };
        svg.line((LEFT, level), (RIGHT, level), "level");
        let said = format!("{:.0} %: {when}", forecast.share * 100.0);
        svg.text(LEFT + 6.0, level - 4.0, Anchor::Start, "", &said);
    }
    svg.finish("growth", "Growth", about)
}

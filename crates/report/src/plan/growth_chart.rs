//! The growth chart: the trend with its interval, and the days on which the pool reaches each fill level of the
//! forecast. The trend is fitted in `assay-planner`.

use super::planner_page::{BarLine, PlanSection};
use assay_model::size::Convention::Binary;
use assay_planner::capacity::{Forecast, Trend};
use assay_render::svg::canvas::{Svg, TextAnchor};

/// Seconds in a day.
const DAY: f64 = 86_400.0;

/// Builds the section of a trend, from its first point to the last forecast date or at most 20 years ahead. `date`
/// formats a time in seconds since 1970.
#[must_use]
pub fn build_growth_section(
    trend: &Trend,
    size: Option<u64>,
    forecasts: &[Forecast],
    date: impl Fn(i64) -> String,
) -> PlanSection {
    let never = || "perhaps never".to_owned();
    let rows = forecasts.iter().map(|forecast| {
        let label = |time: Option<i64>| match forecast.already {
            true => "already".to_owned(),
            false => time.map_or_else(never, &date),
        };
        BarLine {
            label: format!("{:.0} % full", forecast.share * 100.0),
            cells: vec![
                label(forecast.when),
                label(forecast.earliest),
                label(forecast.latest),
            ],
            ..BarLine::default()
        }
    });
    let signed = |value: f64| {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", Binary.show(value.abs() as u64))
    };
    let mut section = PlanSection {
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
        ..PlanSection::default()
    };
    section.drawing = Some(build_section(trend, size, forecasts, &date, &section.about));
    section
}

fn build_section(
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
    // The edges are sampled, because each is cut off at the top and bottom of the chart.
    let edge = |slope: f64| (0..=60).map(move |i| (slope, ahead * f64::from(i) / 60.0));
    let both = edge(trend.interval.1).chain(edge(trend.interval.0).rev());
    let area: Vec<(f64, f64)> = both
        .map(|(slope, days)| (x(days), y(value(slope, days))))
        .collect();
    svg.add_path(&area, "area");
    for (from, to, class) in [(-back, 0.0, "line"), (0.0, ahead, "line dash")] {
        let at = |days: f64| (x(days), y(value(trend.per_day, days)));
        svg.add_path(&[at(from), at(to)], class);
    }
    for bytes in [0.0, top / 2.0, top] {
        let label = Binary.show(bytes as u64);
        svg.add_text(LEFT - 6.0, y(bytes) + 4.0, TextAnchor::End, "ax n", &label);
    }
    for (days, anchor) in [
        (-back, TextAnchor::Start),
        (0.0, TextAnchor::Middle),
        (ahead, TextAnchor::End),
    ] {
        let time = trend.at.saturating_add((days * DAY) as i64);
        // If the past or the future is short, the dates would overlap.
        let near = |other: f64| (x(days) - x(other)).abs() < 70.0;
        if days == 0.0 && (near(-back) || near(ahead)) {
            continue;
        }
        svg.add_text(x(days), BOTTOM + 16.0, anchor, "ax n", &date(time));
    }
    for forecast in forecasts.iter().take(if size.is_some() { 9 } else { 0 }) {
        let level = y(size.unwrap_or(0) as f64 * forecast.share);
        let when = match forecast.already {
            true => "already".to_owned(),
            false => forecast.when.map_or("perhaps never".to_owned(), date),
        };
        svg.add_line((LEFT, level), (RIGHT, level), "level");
        let label = format!("{:.0} %: {when}", forecast.share * 100.0);
        svg.add_text(LEFT + 6.0, level - 4.0, TextAnchor::Start, "", &label);
    }
    svg.finish("growth", "Growth", about)
}

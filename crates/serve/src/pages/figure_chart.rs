//! The chart of a figure over time. It has a point with an interval for each run, the levels, and the times at which
//! the level shifted.

use super::figure_views::{describe_shift, metric_name};
use super::short_name;
use crate::figure_series::{Series, SeriesPoint};
use assay_render::html::{Chart, ChartTable};
use assay_render::svg::timeline::{TimelineChart, draw_timeline};
use assay_render::units::{NONE, format_timestamp, format_value, format_value_with_unit};
use jiff::Timestamp;

/// Draws a series as a chart. `number` makes the ids of the chart unique on its page.
pub(super) fn draw_series(series: &Series, width: f64, number: usize) -> Chart {
    let quantity = series.key.figure.metric.quantity;
    let seconds = |at: Timestamp| at.as_second() as f64;
    let title = format!(
        "{}: {}",
        short_name(&series.key.figure.workload),
        metric_name(series.key.figure.metric)
    );
    let shifts: Vec<String> = series
        .shifts
        .iter()
        .map(|shift| describe_shift(series, shift))
        .collect();
    let svg = draw_timeline(&TimelineChart {
        id: format!("figure-{number}"),
        title: title.clone(),
        description: format!(
            "{} runs, each a point with its interval. {}",
            series.points.len(),
            match shifts.is_empty() {
                true => "No shift.".to_owned(),
                false => format!("Shifts: {}.", shifts.join("; ")),
            }
        ),
        width,
        points: series
            .points
            .iter()
            .map(|point| (seconds(point.at), point.value))
            .collect(),
        intervals: series
            .points
            .iter()
            .map(|point| point.interval.map(|[low, high]| (low, high)))
            .collect(),
        doubtful: series
            .points
            .iter()
            .map(|point| point.is_doubtful)
            .collect(),
        levels: find_levels(series, &seconds),
        changed: series
            .shifts
            .iter()
            .filter_map(|shift| {
                let [from, to] = shift.between;
                Some((
                    seconds(series.points.get(from)?.at),
                    seconds(series.points.get(to)?.at),
                ))
            })
            .collect(),
        time: &|second| {
            let time = Timestamp::from_second(second as i64).unwrap_or(Timestamp::UNIX_EPOCH);
            time.strftime(choose_time_format(series)).to_string()
        },
        tick: &|value| match value {
            0.0 => "0".to_owned(),
            value => format_value(quantity, value),
        },
    });
    let range = |point: &SeriesPoint| match point.interval {
        Some([low, high]) => format!(
            "{} to {}",
            format_value_with_unit(quantity, low),
            format_value_with_unit(quantity, high)
        ),
        None => NONE.to_owned(),
    };
    let row = |point: &SeriesPoint| {
        vec![
            point.run.to_string(),
            format_timestamp(point.at),
            format_value_with_unit(quantity, point.value),
            range(point),
            if point.is_doubtful { "doubtful" } else { "" }.to_owned(),
        ]
    };
    Chart {
        title,
        svg,
        table: ChartTable {
            head: ["run", "began", "figure", "interval", "doubt"]
                .map(str::to_owned)
                .to_vec(),
            rows: series.points.iter().rev().map(row).collect(),
        },
    }
}

/// Returns the shortest time format that distinguishes the runs.
fn choose_time_format(series: &Series) -> &'static str {
    let length = match (series.points.first(), series.points.last()) {
        (Some(first), Some(last)) => last.at.duration_since(first.at).as_secs(),
        _ => 0,
    };
    match length {
        ..7_200 => "%H:%M:%S",
        7_200..2_600_000 => "%m-%d %H:%M",
        _ => "%Y-%m-%d",
    }
}

/// Returns start, end and median of each level between two shifts; empty without a shift.
fn find_levels(series: &Series, seconds: &dyn Fn(Timestamp) -> f64) -> Vec<(f64, f64, f64)> {
    let mut cuts: Vec<usize> = series.shifts.iter().map(|shift| shift.at).collect();
    if cuts.is_empty() {
        return Vec::new();
    }
    cuts.insert(0, 0);
    cuts.push(series.points.len());
    let level = |pair: &[usize]| {
        let points = series.points.get(pair[0]..pair[1])?;
        let mut values: Vec<f64> = points.iter().map(|point| point.value).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.get(values.len() / 2)?;
        Some((
            seconds(points.first()?.at),
            seconds(points.last()?.at),
            *middle,
        ))
    };
    cuts.windows(2).filter_map(level).collect()
}

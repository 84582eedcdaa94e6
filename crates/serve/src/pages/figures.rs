//! Figures over time: a list of all figures, and a page for one figure with its runs.

use super::figure_views::{describe_shift, metric_name, series_href};
use super::{LinkView, figure_chart, filter_options, machine_link, short_name};
use crate::answer::{Answer, Refusal};
use crate::figure_series::Series;
use crate::fleet_run::FleetRun;
use crate::fleet_state::short_host;
use crate::routes::PageRequest;
use crate::site::Site;
use crate::site_page::Section;
use assay_render::html::Chart;
use assay_render::svg::timeline::FULL_WIDTH;
use assay_render::units::format_value_with_unit;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Maximum number of series that the list shows.
const MOST_SERIES: usize = 200;
/// Maximum number of charts on the page, if a filter selects several figures.
const MOST_CHARTS: usize = 4;
/// Time limit for reading runs that are not cached.
const READING: Duration = Duration::from_secs(8);

/// A row of the list of figures.
#[derive(Serialize)]
struct SeriesView {
    title: String,
    href: String,
    machine: Option<LinkView>,
    plan: String,
    target: String,
    runs: usize,
    newest: String,
    shift: Option<String>,
}

/// Answers `/figures` with the list of figures, or with the charts that a filter selects.
pub(crate) fn show(site: &Site, request: &PageRequest) -> Result<Answer, Refusal> {
    let state = site.fleet_state()?;
    let query = &request.query;
    let (machine, plan) = (query.get("machine"), query.get("plan"));
    let runs = state
        .runs
        .iter()
        .filter(|run| {
            machine.is_none_or(|name| run.machine_name().map(short_host) == Some(short_host(name)))
        })
        .filter(|run| plan.is_none_or(|plan| &*run.plan == plan));
    let deadline = Instant::now() + READING;
    let found = site
        .store
        .read(|store| site.fleet.series.find_series(store, runs, Some(deadline)))?
        .unwrap_or_default();
    let fits = |series: &Series| {
        query
            .get("workload")
            .is_none_or(|name| series.key.figure.workload == name)
            && query
                .get("target")
                .is_none_or(|name| series.key.figure.target == name)
            && query
                .get("metric")
                .is_none_or(|name| series.key.figure.metric.to_string() == name)
    };
    let mut all: Vec<Series> = found.all.into_iter().filter(fits).collect();
    all.sort_by_key(|series| {
        (
            series.shifts.is_empty(),
            std::cmp::Reverse(series.points.len()),
        )
    });
    let is_chosen = query.get("metric").is_some();
    let window = read_window(query.get("from"), query.get("to"));
    let charts: Vec<ZoomChart> = all
        .iter()
        .take(if is_chosen { MOST_CHARTS } else { 0 })
        .map(|series| cut_window(series, window))
        .enumerate()
        .map(|(number, series)| ZoomChart {
            ends: find_ends(&series),
            left: plot_share(0),
            right: plot_share(1),
            chart: figure_chart::draw_series(&series, FULL_WIDTH, number),
        })
        .collect();
    let shifts: Vec<String> = all
        .iter()
        .take(charts.len())
        .flat_map(|series| series.shifts.iter().map(|shift| tell_shift(series, shift)))
        .collect();
    let views: Vec<SeriesView> = all.iter().take(MOST_SERIES).map(describe_series).collect();
    let title = match (is_chosen, all.first()) {
        (true, Some(series)) => format!(
            "{}: {}",
            short_name(&series.key.figure.workload),
            metric_name(series.key.figure.metric)
        ),
        _ => "Figures over time".to_owned(),
    };
    let page = site.render_page(
        &title,
        Section::Runs,
        include_str!("../templates/figures.html"),
        context! {
            title => &title,
            is_chosen,
            subject => Serde(all.first().map(describe_series)),
            is_empty => state.runs.is_empty(),
            charts => Serde(charts),
            shifts,
            series => Serde(views),
            left_out => all.len().saturating_sub(MOST_SERIES),
            is_partial => found.is_partial,
            plans => Serde(filter_options(state.runs.iter().map(|row| &*row.plan), plan)),
            machines => Serde(filter_options(
                state.runs.iter().filter_map(FleetRun::machine_name).map(short_host),
                machine,
            )),
            from => query.get("from").map(only_day),
            to => query.get("to").map(only_day),
            all_href => format!("/figures?{}", query.with("metric", None)),
            hidden => ["machine", "plan", "workload", "target", "metric"]
                .into_iter()
                .filter_map(|name| Some((name, query.get(name)?.to_owned())))
                .collect::<Vec<_>>(),
        },
    );
    Ok(Answer::page(page))
}

/// A chart in which the user can select a time window with the mouse.
#[derive(Serialize)]
struct ZoomChart {
    chart: Chart,
    /// Times at the ends of the axis, in seconds since 1970; `None` if the chart has no axis.
    ends: Option<[i64; 2]>,
    /// Position of the axis's left end, as a fraction of the chart's width (0 to 1). The next field is its right end.
    left: f64,
    right: f64,
}

fn plot_share(end: usize) -> f64 {
    assay_render::svg::timeline::plot_ends(FULL_WIDTH)[end] / FULL_WIDTH
}

/// Returns the times at the ends of the axis.
fn find_ends(series: &Series) -> Option<[i64; 2]> {
    let [first, last] = [series.points.first()?, series.points.last()?];
    let [first, last] = [first, last].map(|point| point.at.as_second() as f64);
    let [from, to] = assay_render::svg::timeline::axis_ends(first, last);
    Some([from as i64, to as i64])
}

fn describe_series(series: &Series) -> SeriesView {
    let key = &series.key;
    SeriesView {
        title: format!(
            "{}: {}",
            short_name(&key.figure.workload),
            metric_name(key.figure.metric)
        ),
        href: series_href(key),
        machine: key
            .machine
            .as_ref()
            .map(|machine| machine_link(short_host(machine.shown()))),
        plan: short_name(&key.plan),
        target: short_name(&key.figure.target),
        runs: series.points.len(),
        newest: series.points.last().map_or(String::new(), |point| {
            format_value_with_unit(key.figure.metric.quantity, point.value)
        }),
        shift: series
            .shifts
            .last()
            .map(|shift| super::trial_row::format_signed(shift.ratio)),
    }
}

fn tell_shift(series: &Series, shift: &assay_judge::shift::FigureShift) -> String {
    let at = |point: usize| series.points.get(point);
    let when = at(shift.at).map_or(String::new(), |point| {
        format!(
            " from run {} of {}",
            point.run,
            assay_render::units::format_timestamp(point.at)
        )
    });
    let range = shift.interval.map_or(String::new(), |range| {
        format!(
            " (between {} and {})",
            super::trial_row::format_signed(range.low),
            super::trial_row::format_signed(range.high)
        )
    });
    format!("{}{range}{when}", describe_shift(series, shift))
}

/// Returns the date of a timestamp, in the format of the form's date fields.
fn only_day(text: &str) -> String {
    text.chars().take(10).collect()
}

/// Parses the parameters `from` and `to`. An invalid date counts as missing.
fn read_window(from: Option<&str>, to: Option<&str>) -> (Option<Timestamp>, Option<Timestamp>) {
    let start = |date: Date| Some(date.to_zoned(TimeZone::UTC).ok()?.timestamp());
    let day = |text: &str| text.parse::<Date>().ok();
    // A marked time is exact; a day is that of UTC, whole.
    let exact = |text: &str| text.parse::<Timestamp>().ok();
    (
        from.and_then(|text| exact(text).or_else(|| day(text).and_then(start))),
        to.and_then(|text| exact(text).or_else(|| day(text)?.tomorrow().ok().and_then(start))),
    )
}

/// Restricts a series to the runs in a time window. Its shifts are still computed from all runs.
fn cut_window(series: &Series, (from, to): (Option<Timestamp>, Option<Timestamp>)) -> Series {
    let is_inside =
        |at: Timestamp| from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to);
    let first = series.points.iter().position(|point| is_inside(point.at));
    let Some(first) = first else {
        return Series {
            points: Vec::new(),
            shifts: Vec::new(),
            ..series.clone()
        };
    };
    let points: Vec<_> = series
        .points
        .iter()
        .filter(|point| is_inside(point.at))
        .cloned()
        .collect();
    let last = first + points.len();
    let shifts = series
        .shifts
        .iter()
        .filter(|shift| (first..last).contains(&shift.at));
    let shifts = shifts.copied().map(|mut shift| {
        shift.at -= first;
        shift.between = shift.between.map(|at| at.clamp(first, last - 1) - first);
        shift.noticed = shift.noticed.saturating_sub(first);
        shift
    });
    Series {
        shifts: shifts.collect(),
        points,
        key: series.key.clone(),
    }
}

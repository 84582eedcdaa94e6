//! Charts of rate and latency over time. Consecutive rounds of a step follow each other on the axis.

use super::super::{format_nanos, step_name};
use crate::plan::{BarLine, PlanSection};
use assay_model::Nanos;
use assay_model::units::format_significant;
use assay_model::web::Point;
use assay_model::web::result::StepResult;
use assay_render::svg::line_chart::{self, LineChart};
use assay_render::text::escape_line;
use assay_render::units::format_latency;

/// Maximum number of points of a line. More points could not be distinguished.
const POINTS: usize = 120;

/// Function that returns a figure of a time interval.
type Figure = fn(&Point) -> Option<f64>;

/// A figure with its name and the function that formats it.
type NamedFigure = (&'static str, Figure, fn(f64) -> String);

/// Builds the charts of one kind of load, with the lowest and the highest figure of each step. Returns `None` for a run
/// that was stored without time intervals.
pub(super) fn build_section(
    url: &str,
    id: &str,
    open: bool,
    steps: &[&StepResult],
) -> Option<PlanSection> {
    let has = |step: &&&StepResult| step.over_time.iter().any(|round| !round.points.is_empty());
    let steps: Vec<&StepResult> = steps.iter().filter(has).copied().collect();
    if steps.is_empty() {
        return None;
    }
    let figures: [NamedFigure; 3] = [
        (
            "answers per second",
            |point| Some(point.rate),
            format_significant,
        ),
        (
            "p50",
            |point| point.p50.map(|time| time.0 as f64),
            format_latency,
        ),
        (
            "p99",
            |point| point.p99.map(|time| time.0 as f64),
            format_latency,
        ),
    ];
    let drawings = figures
        .iter()
        .enumerate()
        .filter_map(|(at, (figure, of, tick))| {
            let lines: Vec<line_chart::ChartLine> = steps
                .iter()
                .map(|step| line_chart::ChartLine {
                    label: super::name_line(step),
                    points: thin_out(&list_points(step, *of)),
                })
                .filter(|line| !line.points.is_empty())
                .collect();
            let chart = LineChart {
                id: format!("over-time-{id}-{at}"),
                title: format!("{figure} of {} over time", escape_line(url)),
                description: "One line for each step; its rounds follow each other.".to_owned(),
                over: format!("{figure}, by seconds that were counted, round after round"),
                lines,
                tick,
            };
            let scale = line_chart::build_value_scale(chart.lines.iter());
            (!chart.lines.is_empty()).then(|| line_chart::draw_lines(&chart, &scale))
        });
    let rows = steps.iter().map(|step| {
        let ends = |of: Figure| {
            let values = list_points(step, of).into_iter().map(|(_, value, _)| value);
            values.fold(None, |ends: Option<(f64, f64)>, value| {
                let (low, high) = ends.unwrap_or((value, value));
                Some((low.min(value), high.max(value)))
            })
        };
        let time = |value: f64| format_nanos(Some(Nanos(value as u64)));
        let mut cells = Vec::new();
        for (of, show) in [
            (figures[0].1, &format_significant as &dyn Fn(f64) -> String),
            (figures[1].1, &time),
            (figures[2].1, &time),
        ] {
            cells.extend(match ends(of) {
                Some((low, high)) => [show(low), show(high)],
                None => [format_nanos(None), format_nanos(None)],
            });
        }
        BarLine {
            label: step_name(step),
            cells,
            ..BarLine::default()
        }
    });
    Some(PlanSection {
        heading: match open {
            true => format!("What users of {} wait, over time", escape_line(url)),
            false => format!("What {} does in a closed loop, over time", escape_line(url)),
        },
        about: "Each step is divided into about forty stretches; a server that changes while it is measured shows here."
            .to_owned(),
        columns: vec![
            "step", "lowest /s", "highest /s", "lowest p50", "highest p50", "lowest p99", "highest p99",
        ],
        rows: rows.collect(),
        drawing: Some(drawings.collect()),
        ..PlanSection::default()
    })
}

/// Returns a figure over time, for the seconds of all rounds in sequence.
fn list_points(step: &StepResult, of: Figure) -> Vec<line_chart::LinePoint> {
    let mut begin = 0.0;
    let mut all = Vec::new();
    for round in &step.over_time {
        let seconds = |point: &Point| point.at.as_secs_f64();
        let figures = round
            .points
            .iter()
            .filter_map(|point| Some((seconds(point), of(point)?)));
        let figures = figures.filter(|(_, value)| *value > 0.0);
        all.extend(figures.map(|(at, value)| (begin + at, value, None)));
        let half = round.points.first().map_or(0.0, seconds);
        begin += round.points.last().map_or(0.0, seconds) + half;
    }
    all
}

/// Reduces the number of points. Keeps the lowest and the highest point of each part of the time, so that stalls stay
/// visible.
fn thin_out(points: &[line_chart::LinePoint]) -> Vec<line_chart::LinePoint> {
    if points.len() <= POINTS {
        return points.to_vec();
    }
    let parts = points.chunks(points.len().div_ceil(POINTS / 2));
    let ends = parts.flat_map(|part| {
        let low = part.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        let high = part.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let mut pair: Vec<line_chart::LinePoint> = low.into_iter().chain(high).copied().collect();
        pair.sort_by(|a, b| a.0.total_cmp(&b.0));
        pair.dedup();
        pair
    });
    ends.collect()
}

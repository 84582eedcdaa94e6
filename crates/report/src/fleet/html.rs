//! Renders changes as one page: first figures with their runs over time, then each machine.

use super::{Changed, describe_change, figures, format_interval};
use crate::trial::trial_tables::compute_median;
use assay_model::drift::FigureChange;
use assay_model::result;
use assay_render::html::{Chart, ChartTable, render_page};
use assay_render::svg::timeline::{HALF_WIDTH, TimelineChart, draw_timeline};
use assay_render::text::escape_line;
use assay_render::units::{format_timestamp, format_value, format_value_with_unit};
use jiff::Timestamp;
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("changed.html");
const STYLE: &str = "
svg .band { fill: var(--bar); opacity: .16 }
article.change { border-left: .3rem solid var(--rule); padding: 0 0 0 1rem; margin: 0 0 2rem }
article.worse { border-color: var(--bad) }
article.better { border-color: var(--good) }
ul.changes { list-style: none; padding: 0; max-width: 60rem }
ul.changes li { margin: 0 0 .7rem; overflow-wrap: anywhere }
";

#[derive(Serialize)]
struct Figure {
    machine: Option<String>,
    plan: String,
    verdict: &'static str,
    said: String,
    runs: String,
    causes: Vec<String>,
    chart: Chart,
}

#[derive(Serialize)]
struct Machine {
    name: String,
    from: String,
    to: String,
    changes: Vec<Line>,
}

#[derive(Serialize)]
struct Line {
    sign: char,
    text: String,
    cause: String,
    when: Option<String>,
}

/// Renders the page of changes.
#[must_use]
pub fn html(all: &[Changed<'_>], figures: &[FigureChange]) -> String {
    let machines = all.iter().filter(|one| !one.changes.is_empty());
    let machines: Vec<Machine> = machines.map(view_machine).collect();
    let level = figures.first().map_or(1.0, |one| one.level);
    let figures: Vec<Figure> = figures.iter().enumerate().map(view_figure).collect();
    render_page(
        "What changed",
        STYLE,
        TEMPLATE,
        context! {
            once => (1.0 / level).round() as u64,
            figures => Serde(figures),
            machines => Serde(machines),
        },
    )
}

fn view_machine(one: &Changed<'_>) -> Machine {
    let line = |change: &assay_model::drift::Change| {
        let (sign, text) = describe_change(change);
        let cause = change.cause.as_deref().unwrap_or("the cause is not known");
        Line {
            sign,
            text: escape_line(&text),
            cause: escape_line(cause),
            when: one
                .when
                .get(&change.what)
                .map(|when| format_interval(*when)),
        }
    };
    Machine {
        name: escape_line(one.name),
        from: format_timestamp(one.from),
        to: format_timestamp(one.to),
        changes: one.changes.iter().map(line).collect(),
    }
}

fn view_figure((number, one): (usize, &FigureChange)) -> Figure {
    let name = |machine: &assay_model::Machine| {
        escape_line(machine.name.as_deref().unwrap_or(&machine.id))
    };
    Figure {
        machine: one.machine.as_ref().map(name),
        plan: escape_line(&one.plan),
        verdict: match one.verdict {
            result::Change::Worse => "worse",
            result::Change::Better => "better",
            result::Change::Same | result::Change::Unclear => "other",
        },
        said: escape_line(&figures::describe_shift(one)),
        runs: figures::count_runs(one),
        causes: one
            .causes
            .iter()
            .map(|c| escape_line(&figures::describe_cause(c)))
            .collect(),
        chart: draw_curve(number, one),
    }
}

fn draw_curve(number: usize, one: &FigureChange) -> Chart {
    let title = escape_line(&format!(
        "{} on {}: {}",
        one.workload, one.target, one.metric
    ));
    let at = |time: Timestamp| time.as_second() as f64;
    let first = one.curve.partition_point(|(begun, _)| *begun < one.since);
    let before = &one.curve[first.saturating_sub(one.runs[0])..first];
    let after = &one.curve[first..first.saturating_add(one.runs[1]).min(one.curve.len())];
    let level = |runs: &[(Timestamp, f64)]| {
        let (from, to) = (runs.first()?.0, runs.last()?.0);
        let middle = compute_median(runs.iter().map(|(_, value)| *value).collect())?.value;
        Some((at(from), at(to), middle))
    };
    let quantity = one.metric.quantity;
    let length = match (one.curve.first(), one.curve.last()) {
        (Some(first), Some(last)) => at(last.0) - at(first.0),
        _ => 0.0,
    };
    // Shortens times as far as the runs can still be distinguished, to one width.
    let form = match length {
        ..7_200.0 => "%H:%M:%S",
        ..2_600_000.0 => "%m-%d %H:%M",
        _ => "%Y-%m-%d",
    };
    let svg = draw_timeline(&TimelineChart {
        id: format!("curve-{number}"),
        title: title.clone(),
        description: escape_line(&figures::describe_shift(one)),
        points: one
            .curve
            .iter()
            .map(|(t, value)| (at(*t), *value))
            .collect(),
        levels: [before, after].into_iter().filter_map(level).collect(),
        changed: vec![(at(one.between[0]), at(one.between[1]))],
        width: HALF_WIDTH,
        intervals: Vec::new(),
        doubtful: Vec::new(),
        time: &|second| {
            let time = Timestamp::from_second(second as i64).unwrap_or(Timestamp::UNIX_EPOCH);
            time.strftime(form).to_string()
        },
        tick: &|number| format_value(quantity, number),
    });
    let row = |(at, value): &(Timestamp, f64)| {
        vec![
            format_timestamp(*at),
            format_value_with_unit(quantity, *value),
        ]
    };
    Chart {
        title,
        svg,
        table: ChartTable {
            head: vec!["run of".to_owned(), one.metric.to_string()],
            rows: one.curve.iter().map(row).collect(),
        },
    }
}

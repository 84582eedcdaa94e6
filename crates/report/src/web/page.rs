//! The page of a measurement: a section of charts for each server, and a section that compares the servers.

use super::{
    HEAD, Web, describe_odd_round, describe_results, format_cells, format_percentile, format_rate,
    step_name,
};
mod over_time;

use crate::plan::{BarLine, BarPart, PlanSection, render_page_of_verb};
use assay_model::units::format_significant;
use assay_model::web::Pace;
use assay_model::web::result::{Percentiles, RankedBy, StepResult};
use assay_render::svg::percentile_curves;
use assay_render::text::escape_line;

/// Maximum number of points of a curve. More points could not be distinguished.
const POINTS: usize = 200;

/// Renders a measurement as one self-contained page.
#[must_use]
pub fn page(web: &Web) -> String {
    let mut sections = Vec::new();
    for (target, url) in web.urls.iter().enumerate() {
        let of = |closed: bool| -> Vec<&StepResult> {
            let steps = web.judged.steps.iter();
            steps
                .filter(|step| step.target == target && (step.pace == Pace::Closed) == closed)
                .collect()
        };
        let (closed, open) = (of(true), of(false));
        let remarks = web.remarks.get(target).map_or(&[][..], Vec::as_slice);
        if !closed.is_empty() {
            sections.push(build_throughput_section(url, &closed, remarks));
            sections.push(build_efficiency_section(url, &closed));
        }
        sections.extend(
            [("closed", &closed), ("open", &open)]
                .into_iter()
                .filter_map(|(kind, steps)| {
                    build_latency_section(url, &format!("{kind}-{target}"), kind == "open", steps)
                }),
        );
        if closed.is_empty()
            && !remarks.is_empty()
            && let Some(first) = sections.last_mut()
        {
            // Without a closed loop, the remarks on the server belong to its latency.
            first.notes.splice(0..0, remarks.iter().cloned());
        }
        let all: Vec<&StepResult> = closed.iter().chain(&open).copied().collect();
        sections.extend(
            [("closed", &closed), ("open", &open)]
                .into_iter()
                .filter_map(|(kind, steps)| {
                    over_time::build_section(
                        url,
                        &format!("{kind}-{target}"),
                        kind == "open",
                        steps,
                    )
                }),
        );
        let generators = build_generators_section(url, &all);
        if !generators.rows.is_empty() {
            sections.push(generators);
        }
        sections.push(build_limits_section(url, &all));
        let doubts = build_doubts_section(url, &all);
        if !doubts.rows.is_empty() {
            sections.push(doubts);
        }
    }
    sections.extend(
        web.judged
            .rankings
            .iter()
            .map(|ranking| ranking_section(web, ranking)),
    );
    let title = match web.urls {
        [one] => format!("Load on {one}"),
        urls => format!("Load on {} servers", urls.len()),
    };
    let intro: Vec<String> = describe_results(web)
        .into_iter()
        .chain(web.about.clone())
        .collect();
    render_page_of_verb("assay web", &title, &intro, &sections)
}

/// Returns the name of a step's line in a chart, with a mark if all rounds of the step are void.
fn name_line(step: &StepResult) -> String {
    match step.rounds {
        0 => format!("{} (void)", step_name(step)),
        _ => step_name(step),
    }
}

fn list_columns() -> Vec<&'static str> {
    std::iter::once("step").chain(HEAD).collect()
}

/// Creates a bar of the figure's length with the ends of its interval.
fn build_bar(
    step: &StepResult,
    estimate: Option<assay_model::result::Estimate>,
    says: String,
) -> BarLine {
    BarLine {
        label: step_name(step),
        lanes: vec![vec![BarPart {
            colour: if step.rounds == 0 { "idle" } else { "data" },
            amount: estimate.map_or(0.0, |estimate| estimate.value),
            says,
        }]],
        interval: estimate
            .and_then(|estimate| estimate.interval)
            .map(|interval| (interval.low, interval.high)),
        ..BarLine::default()
    }
}

fn build_throughput_section(url: &str, steps: &[&StepResult], remarks: &[String]) -> PlanSection {
    let rows = steps.iter().map(|step| BarLine {
        cells: format_cells(step),
        ..build_bar(step, step.rate, format!("{} answers/s", format_rate(step)))
    });
    PlanSection {
        heading: format!("How much {} can do", escape_line(url)),
        about: "Good answers per second in a closed loop, by connections. The line is the 95 % interval \
                over rounds."
            .to_owned(),
        columns: list_columns(),
        rows: rows.collect(),
        notes: remarks
            .iter()
            .cloned()
            .chain(steps.iter().filter_map(|step| {
                Some(format!("{}, {}", step_name(step), describe_odd_round(step)?))
            }))
            .collect(),
        ..PlanSection::default()
    }
}

fn build_efficiency_section(url: &str, steps: &[&StepResult]) -> PlanSection {
    let rows = steps
        .iter()
        .filter(|step| step.per_cpu_second.is_some())
        .map(|step| {
            let figure = step.per_cpu_second.map_or(0.0, |estimate| estimate.value);
            BarLine {
                cells: vec![
                    format_significant(figure),
                    step.per_percent
                        .map_or_else(String::new, format_significant),
                    step.server_cpus
                        .map_or_else(String::new, |cpus| format!("{cpus:.2}")),
                ],
                ..build_bar(
                    step,
                    step.per_cpu_second,
                    format!("{} answers", format_significant(figure)),
                )
            }
        });
    PlanSection {
        heading: format!("What an answer of {} costs", escape_line(url)),
        about: "Good answers for each second of the server's CPU time.".to_owned(),
        columns: vec![
            "step",
            "per CPU second",
            "per second and % of all CPUs",
            "CPUs",
        ],
        rows: rows.collect(),
        notes: match steps.iter().any(|step| step.per_cpu_second.is_some()) {
            true => Vec::new(),
            false => vec!["The CPU time of the server is not known.".to_owned()],
        },
        ..PlanSection::default()
    }
}

/// Builds the latency curves, with a table of percentiles from the intended and from the actual
/// start.
fn build_latency_section(
    url: &str,
    id: &str,
    open: bool,
    steps: &[&StepResult],
) -> Option<PlanSection> {
    let drawn: Vec<&&StepResult> = steps
        .iter()
        .filter(|step| !step.histogram.is_empty())
        .collect();
    if drawn.is_empty() {
        return None;
    }
    let of = drawn.iter().map(|step| percentile_curves::LatencyCurve {
        label: name_line(step),
        points: percentile_curves::compute_curve(&step.histogram, POINTS),
    });
    let heading = match open {
        true => format!("What a user of {} waits", escape_line(url)),
        false => format!("Latency of {} in a closed loop", escape_line(url)),
    };
    let about = match open {
        true => {
            "Latency from the time at which a request was due, in an open loop; the horizontal axis is \
                 the share of good answers that took no longer."
        }
        false => {
            "Latency from the first byte out. A closed loop waits with the server, so that nobody \
                  queues: this is not what users wait."
        }
    };
    let panel = percentile_curves::CurvePanel {
        id: id.to_owned(),
        title: heading.clone(),
        description: about.to_owned(),
        curves: of.collect(),
        large: true,
    };
    let ends = panel.curves.iter().filter_map(|curve| curve.points.last());
    let nines = ends.map(|(nines, _)| *nines).fold(1.0, f64::max);
    let drawing = percentile_curves::draw_panel(
        &panel,
        &percentile_curves::build_latency_scale(panel.curves.iter(), true),
        nines,
    );
    let rows = drawn.iter().map(|step| {
        let four =
            |p: Percentiles| [p.p50, p.p90, p.p99, p.p999].map(|one| format_percentile(step, one));
        let mut cells = four(step.latency).to_vec();
        if open {
            cells.extend(four(step.service));
        }
        cells.push(step.failed.to_string());
        BarLine {
            label: step_name(step),
            cells,
            ..BarLine::default()
        }
    });
    let mut columns = vec!["step", "p50", "p90", "p99", "p99.9"];
    if open {
        columns.extend(["service p50", "p90", "p99", "p99.9"]);
    }
    columns.push("failed");
    let void = drawn.iter().any(|step| step.rounds == 0);
    let notes = void.then(|| {
        "Latencies in parentheses do not count: every round of that step is void.".to_owned()
    });
    Some(PlanSection {
        notes: notes.into_iter().collect(),
        heading,
        about: about.to_owned(),
        columns,
        rows: rows.collect(),
        drawing: Some(drawing),
        ..PlanSection::default()
    })
}

fn build_generators_section(url: &str, steps: &[&StepResult]) -> PlanSection {
    let rows = steps.iter().flat_map(|step| {
        step.generators.iter().map(|one| BarLine {
            label: step_name(step),
            cells: vec![
                escape_line(&one.generator),
                format_significant(one.rate),
                format!("{:.1} %", one.share * 100.0),
                format!("{:.2}", one.cpus),
                one.failed.to_string(),
            ],
            ..BarLine::default()
        })
    });
    PlanSection {
        heading: format!("Who gave how much of the load on {}", escape_line(url)),
        about: "What each of the machines that loaded together had of the good answers, and its own CPUs."
            .to_owned(),
        columns: vec!["step", "generator", "answers/s", "share", "own CPU", "failed"],
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}

fn build_limits_section(url: &str, steps: &[&StepResult]) -> PlanSection {
    let rows = steps.iter().map(|step| BarLine {
        label: step_name(step),
        cells: vec![
            step.limit.who.name().to_owned(),
            step.limit.evidence.clone(),
        ],
        ..BarLine::default()
    });
    PlanSection {
        heading: format!("Who limited {}", escape_line(url)),
        about: "What kept each step from going faster, and what shows it.".to_owned(),
        columns: vec!["step", "who", "evidence"],
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}

fn build_doubts_section(url: &str, steps: &[&StepResult]) -> PlanSection {
    let rows = steps.iter().flat_map(|step| {
        step.doubts.iter().map(|doubt| BarLine {
            label: step_name(step),
            cells: vec![
                doubt.code.clone(),
                doubt.evidence.clone(),
                doubt.remedy.clone(),
            ],
            ..BarLine::default()
        })
    });
    PlanSection {
        heading: format!("What speaks against figures of {}", escape_line(url)),
        about: "Each doubt has a section in the book.".to_owned(),
        columns: vec!["step", "doubt", "evidence", "remedy"],
        rows: rows.collect(),
        drawing: Some(String::new()),
        ..PlanSection::default()
    }
}

fn ranking_section(web: &Web, ranking: &assay_model::web::result::Ranking) -> PlanSection {
    let (heading, unit) = match ranking.by {
        RankedBy::Capacity => ("Servers by capacity", "answers/s"),
        RankedBy::Efficiency => ("Servers by efficiency", "answers per CPU second"),
    };
    let rows = ranking.places.iter().map(|place| BarLine {
        label: escape_line(web.urls.get(place.target).map_or("?", String::as_str)),
        lanes: vec![vec![BarPart {
            colour: "data",
            amount: place.value.value,
            says: format!("{} {unit}", format_significant(place.value.value)),
        }]],
        interval: place
            .value
            .interval
            .map(|interval| (interval.low, interval.high)),
        cells: vec![
            format_significant(place.value.value),
            match place.apart {
                Some(true) => "yes".to_owned(),
                Some(false) => "no".to_owned(),
                None => String::new(),
            },
        ],
        ..BarLine::default()
    });
    PlanSection {
        heading: heading.to_owned(),
        about: "At the capacity of each. Ranks are compared round by round; where two are not told apart, \
                their order is chance."
            .to_owned(),
        columns: vec!["server", unit, "apart from the next"],
        rows: rows.collect(),
        ..PlanSection::default()
    }
}

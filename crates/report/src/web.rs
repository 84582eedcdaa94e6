//! Reports of measurements of web servers: terminal, JSON and a page from the same figures.

mod page;

pub use page::page;

use assay_judge::web::by_status;
use assay_model::result::Estimate;
use assay_model::run::RunState;
use assay_model::units::{format_significant, mb_per_s};
use assay_model::web::result::{
    Capacity, Given, Judged, Percentiles, RankedBy, Ranking, StepResult,
};
use assay_model::web::{FailureKind, Measured, Pace, Step};
use assay_model::{Doubt, Nanos, Run, SCHEMA_VERSION};
use assay_render::table::TableColumns;
use assay_render::terminal_style::Style;
use assay_render::text::escape_line;
use assay_render::units::{
    NONE, compute_relative_half_width, format_grouped, format_latency, format_plural,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write as _;

/// A measurement of web servers with its results.
pub struct Web<'a> {
    /// URLs in the order of their indices.
    pub urls: &'a [String],
    /// Remarks on each URL, in the order of the URLs.
    pub remarks: &'a [Vec<String>],
    /// Settings and versions of the measurement.
    pub settings: serde_json::Value,
    /// The steps that were executed, each a round of a load.
    pub steps: &'a [Step],
    /// What was computed from the steps.
    pub judged: &'a Judged,
    /// Time, machine and version of assay, as [`about`] describes them.
    pub about: Vec<String>,
    /// Whether the user interrupted the measurement.
    pub interrupted: bool,
}

/// Describes the time, machine and assay version of a run.
#[must_use]
pub fn about(run: &Run) -> Vec<String> {
    let started = run.started.strftime("%Y-%m-%d %H:%M UTC");
    let name = run
        .facts
        .str("host.name")
        .map(|name| format!(" on {}", escape_line(name)));
    let machine = crate::run_description::describe_machine(&run.facts);
    let mut about = vec![format!(
        "Measured {started}{} with assay {}.",
        name.unwrap_or_default(),
        escape_line(&run.assay_version)
    )];
    about.extend(machine.map(|machine| format!("The machine that loaded: {machine}.")));
    about
}

/// A stored measurement, with everything that a report needs.
pub struct Stored {
    urls: Vec<String>,
    remarks: Vec<Vec<String>>,
    settings: serde_json::Value,
    steps: Vec<Step>,
    judged: Judged,
    about: Vec<String>,
    interrupted: bool,
}

impl Stored {
    /// Creates the view from the steps of a run, in the order of its targets.
    #[must_use]
    pub fn of(run: &Run, steps: Vec<Step>, judged: Judged) -> Self {
        let urls: Vec<String> = run.targets.iter().map(|one| one.name.clone()).collect();
        let remarks_of = |url: &String| {
            let remarks = run.remarks.iter();
            let own =
                remarks.filter_map(|remark| remark.strip_prefix(url.as_str())?.strip_prefix(": "));
            own.map(str::to_owned).collect()
        };
        Self {
            remarks: urls.iter().map(remarks_of).collect(),
            about: about(run),
            urls,
            settings: serde_json::json!({ "plan": run.plan }),
            interrupted: run.state == RunState::Interrupted,
            steps,
            judged,
        }
    }

    /// Returns a view of the stored measurement, with the same fields as for a new measurement.
    #[must_use]
    pub fn web(&self) -> Web<'_> {
        Web {
            urls: &self.urls,
            remarks: &self.remarks,
            settings: self.settings.clone(),
            steps: &self.steps,
            judged: &self.judged,
            about: self.about.clone(),
            interrupted: self.interrupted,
        }
    }
}

/// Web servers under load. Times are in nanoseconds.
#[derive(Serialize, JsonSchema)]
pub struct Document<'a> {
    schema: u32,
    /// Always `web`.
    kind: &'static str,
    /// URLs in the order of their indices.
    urls: &'a [String],
    /// Remarks on each URL, in the order of the URLs.
    remarks: &'a [Vec<String>],
    /// Settings and versions of the measurement.
    settings: &'a serde_json::Value,
    /// Time, machine and assay version of the measurement.
    about: &'a [String],
    /// Whether the user interrupted the measurement.
    interrupted: bool,
    /// What was computed from the steps.
    judged: &'a Judged,
    /// The steps that were executed, each a round of a load.
    steps: &'a [Step],
}

/// Returns one JSON object with the raw steps and their results.
#[must_use]
pub fn json(web: &Web) -> String {
    let value = serde_json::json!(Document {
        schema: SCHEMA_VERSION,
        kind: "web",
        urls: web.urls,
        remarks: web.remarks,
        settings: &web.settings,
        about: &web.about,
        interrupted: web.interrupted,
        judged: web.judged,
        steps: web.steps,
    });
    format!("{value:#}\n")
}

/// Returns the name of a step, such as `4 connections` or `50 %: 5,000/s`.
fn step_name(step: &StepResult) -> String {
    let rate = |per_s: f64| format!("{}/s", format_significant(per_s));
    match (step.pace, step.share) {
        (Pace::Closed, _) => {
            format_plural(u64::from(step.connections), "connection", "connections")
        }
        (Pace::Replay { per_s }, _) => format!("the log: {}", rate(per_s)),
        (Pace::Constant { per_s } | Pace::Poisson { per_s }, Some(share)) => {
            format!("{:.0} %: {}", share * 100.0, rate(per_s))
        }
        (Pace::Constant { per_s } | Pace::Poisson { per_s }, None) => rate(per_s),
    }
}

/// Formats a latency of a step; in parentheses if all rounds are void.
fn format_percentile(step: &StepResult, value: Option<Nanos>) -> String {
    match (value, step.rounds) {
        (Some(_), 0) => format!("({})", format_nanos(value)),
        _ => format_nanos(value),
    }
}

fn format_nanos(value: Option<Nanos>) -> String {
    value.map_or_else(|| NONE.to_owned(), |nanos| format_latency(nanos.0 as f64))
}

/// Formats a rate with the half-width of its interval: `5,000 ±2 %`.
fn format_rate(step: &StepResult) -> String {
    let Some(estimate) = step.rate else {
        return "void".to_owned();
    };
    with_half_width(&estimate)
}

/// Formats a figure with the half-width of its interval: `5,000 ±2 %`.
fn with_half_width(estimate: &Estimate) -> String {
    match compute_relative_half_width(estimate) {
        // Two rounds that disagree give an interval of thousands of percent.
        Some(half) if half > 1.0 => format!("{} ±>100 %", format_significant(estimate.value)),
        Some(half) => format!(
            "{} ±{:.0} %",
            format_significant(estimate.value),
            half * 100.0
        ),
        None => format_significant(estimate.value),
    }
}

/// Headings of the columns after the name of a step.
const HEAD: [&str; 10] = [
    "answers/s",
    "MB/s",
    "p50",
    "p90",
    "p99",
    "p99.9",
    "failed",
    "server CPU",
    "own CPU",
    "per CPU s",
];

fn format_cells(step: &StepResult) -> Vec<String> {
    let Percentiles {
        p50,
        p90,
        p99,
        p999,
    } = step.latency;
    let mut cells = vec![format_rate(step), mb_per_s(step.bytes_per_s)];
    cells.extend([p50, p90, p99, p999].map(|value| format_percentile(step, value)));
    cells.extend([
        match step.failed {
            0 => "0".to_owned(),
            failed => format_grouped(failed),
        },
        step.server_cpus
            .map_or_else(|| NONE.to_owned(), |cpus| format!("{cpus:.2}")),
        format!("{:.2}", step.generator_cpus),
        step.per_cpu_second.map_or_else(
            || NONE.to_owned(),
            |estimate| format_significant(estimate.value),
        ),
    ]);
    cells
}

/// Returns the conclusions as sentences, about capacities and ranks.
fn describe_results(web: &Web) -> Vec<String> {
    let mut out = Vec::new();
    let url = |target: usize| escape_line(web.urls.get(target).map_or("?", String::as_str));
    for (target, capacity) in web.judged.capacity.iter().enumerate() {
        let steps = web.steps.iter();
        let asked = steps.filter(|step| step.target == target && step.pace == Pace::Closed);
        if asked.count() == 0 {
            continue;
        }
        out.push(match capacity {
            Some(capacity) => describe_capacity(&url(target), capacity),
            None => format!(
                "{}: no capacity was found, because no step of the first stage counts.",
                url(target)
            ),
        });
        out.extend(describe_failures(&url(target), web, target));
    }
    out.extend(
        web.judged
            .rankings
            .iter()
            .map(|ranking| format_ranking(ranking, &url)),
    );
    if web.interrupted {
        out.push("Interrupted: this is what was measured until then.".to_owned());
    }
    out
}

/// Describes the capacity of a server with its interval. If the rate was still rising, the capacity is described as a
/// lower bound.
fn describe_capacity(url: &str, capacity: &Capacity) -> String {
    let estimate = Estimate {
        value: capacity.rate,
        interval: capacity.interval,
        rounds: 0,
    };
    let rate = with_half_width(&estimate);
    let connections = format_plural(u64::from(capacity.connections), "connection", "connections");
    let interval = match &capacity.interval {
        Some(interval) => format!(
            " ({:.0} % interval {} to {})",
            interval.confidence * 100.0,
            format_significant(interval.low),
            format_significant(interval.high)
        ),
        None => " (one round, so no interval)".to_owned(),
    };
    match capacity.rising {
        true => format!(
            "{url}: at least {rate} good answers per second with {connections}{interval}, and more connections still \
             brought more. The capacity is higher: name larger numbers with --concurrency."
        ),
        false => format!("{url}: {rate} good answers per second, from {connections} on{interval}."),
    }
}

/// Describes the failed requests to one target: their number and kind, and whether their fraction depends on the load.
/// Empty if fewer than one request in a thousand failed.
fn describe_failures(url: &str, web: &Web, target: usize) -> Option<String> {
    let steps = web.judged.steps.iter();
    let steps: Vec<&StepResult> = steps
        .filter(|step| step.target == target && step.due >= 100)
        .collect();
    let shares: Vec<f64> = steps
        .iter()
        .map(|step| step.failed as f64 / step.due as f64)
        .collect();
    let failed: u64 = steps.iter().map(|step| step.failed).sum();
    let due: u64 = steps.iter().map(|step| step.due).sum();
    if failed * 1000 < due || due == 0 {
        return None;
    }
    let mut all = Measured::default();
    for step in &steps {
        all.add_failures(&step.failures);
        all.add_statuses(&step.statuses);
    }
    let mut kinds: Vec<String> = all
        .failures
        .iter()
        .map(|failures| match failures.kind {
            FailureKind::WrongStatus if !all.statuses.is_empty() => by_status(&all.statuses),
            kind => format!("{} {}", format_grouped(failures.count), kind.describe()),
        })
        .collect();
    let unsent = failed.saturating_sub(all.failures.iter().map(|failures| failures.count).sum());
    if unsent > 0 {
        kinds.push(format!("{} never sent", format_grouped(unsent)));
    }
    let (least, most) = shares
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(least, most), share| {
            (least.min(*share), most.max(*share))
        });
    let percent = |share: f64| assay_render::units::format_percent(share * 100.0);
    // The fraction of a rare failure varies by chance; a factor of two is not an effect of the
    // load.
    let (least_shown, most_shown) = (percent(least), percent(most));
    let range = match least_shown == most_shown {
        true => least_shown,
        false => format!("{least_shown} to {most_shown}"),
    };
    let text = match shares.len() >= 3 && most <= 2.0 * least {
        true => {
            format!("{range} % of the requests failed at every rate, so the load is not the cause")
        }
        false => format!(
            "{} of {} requests failed",
            format_grouped(failed),
            format_grouped(due)
        ),
    };
    Some(format!(
        "{url}: {text}: {}.",
        escape_line(&kinds.join(", "))
    ))
}

fn format_ranking(ranking: &Ranking, url: &dyn Fn(usize) -> String) -> String {
    let (by, unit) = match ranking.by {
        RankedBy::Capacity => ("capacity", "/s"),
        RankedBy::Efficiency => ("efficiency", " per CPU second"),
    };
    let mut text = format!("By {by}: ");
    for place in &ranking.places {
        let _ = write!(
            text,
            "{} {}{unit}",
            url(place.target),
            format_significant(place.value.value)
        );
        match place.apart {
            Some(true) => text.push_str(", then "),
            Some(false) => text.push_str(", not told apart from "),
            None => text.push('.'),
        }
    }
    text
}

/// Renders the report of a measurement for a terminal.
#[must_use]
pub fn terminal(web: &Web, style: Style) -> String {
    let mut out = String::new();
    for (target, url) in web.urls.iter().enumerate() {
        let steps: Vec<&StepResult> = web
            .judged
            .steps
            .iter()
            .filter(|step| step.target == target)
            .collect();
        let _ = writeln!(out, "{}", style.bold(&escape_line(url)));
        for remark in web.remarks.get(target).into_iter().flatten() {
            style.write_paragraph(&mut out, "", 2, &escape_line(remark));
        }
        write_table(&mut out, &steps, style);
        describe_void(&mut out, &steps, style);
        out.push('\n');
        write_generators(&mut out, &steps, style);
        write_limits(&mut out, &steps, style);
        out.push('\n');
    }
    for sentence in describe_results(web) {
        style.write_paragraph(&mut out, "", 0, &sentence);
    }
    out
}

/// Explains the parentheses, if the table contains any.
fn describe_void(out: &mut String, steps: &[&StepResult], style: Style) {
    if steps.iter().any(|step| step.rounds == 0) {
        let text = "Latencies in parentheses do not count: every round of that step is void.";
        style.write_paragraph(out, "", 2, text);
    }
}

/// Describes a round whose rate differs tenfold from the other rounds of the step.
fn describe_odd_round(step: &StepResult) -> Option<String> {
    let counted = step.over_time.iter().filter(|_| step.rounds > 0);
    let rates: Vec<(u32, f64)> = counted.map(|round| (round.round + 1, round.rate)).collect();
    Some(assay_judge::OddRounds::find(&rates)?.describe())
}

fn write_table(out: &mut String, steps: &[&StepResult], style: Style) {
    let mut rows: Vec<Vec<String>> =
        vec![std::iter::once("").chain(HEAD).map(str::to_owned).collect()];
    for step in steps {
        rows.push(
            std::iter::once(step_name(step))
                .chain(format_cells(step))
                .collect(),
        );
    }
    // A narrow terminal shows what matters most.
    let mut left_out = Vec::new();
    for dropped in [
        "own CPU",
        "MB/s",
        "per CPU s",
        "server CPU",
        "p99.9",
        "p90",
        "failed",
    ] {
        if TableColumns::fit(&column_sides(rows[0].len()), &rows).width() + 2 <= style.columns() {
            break;
        }
        if let Some(at) = rows[0].iter().position(|cell| cell == dropped) {
            for row in &mut rows {
                row.remove(at);
            }
            left_out.push(dropped);
        }
    }
    let columns = TableColumns::fit(&column_sides(rows[0].len()), &rows);
    for (at, row) in rows.iter().enumerate() {
        let line = columns.format_row(row);
        let _ = writeln!(out, "  {}", if at == 0 { style.dim(&line) } else { line });
        let step = at.checked_sub(1).and_then(|at| steps.get(at));
        if let Some(odd) = step.and_then(|step| describe_odd_round(step)) {
            style.write_paragraph(out, "", 4, &odd);
        }
    }
    name_left_out(out, &left_out, style);
}

/// Lists the columns for which a narrow terminal has no room.
pub(crate) fn name_left_out(out: &mut String, columns: &[&str], style: Style) {
    if !columns.is_empty() {
        let note = format!("A wider terminal also shows: {}.", columns.join(", "));
        style.write_paragraph(out, "", 2, &note);
    }
}

fn column_sides(columns: usize) -> String {
    format!("l{}", "r".repeat(columns.saturating_sub(1)))
}

/// Formats the contribution of one of several generators: `db1 5,000/s (33 %), 2 failed`.
fn format_contribution(one: &Given) -> String {
    let failed = match one.failed {
        0 => String::new(),
        failed => format!(", {} failed", format_grouped(failed)),
    };
    format!(
        "{} {}/s ({:.0} %){failed}",
        escape_line(&one.generator),
        format_significant(one.rate),
        one.share * 100.0
    )
}

/// Writes how much each of several generators contributed to each step.
fn write_generators(out: &mut String, steps: &[&StepResult], style: Style) {
    let mut any = false;
    for step in steps.iter().filter(|step| !step.generators.is_empty()) {
        any = true;
        let each: Vec<String> = step.generators.iter().map(format_contribution).collect();
        style.write_paragraph(
            out,
            "",
            2,
            &format!("{}: {}", step_name(step), each.join("; ")),
        );
    }
    if any {
        out.push('\n');
    }
}

/// Writes what limited the steps and the doubts. Consecutive steps with the same limit are listed together.
fn write_limits(out: &mut String, steps: &[&StepResult], style: Style) {
    let mut at = 0;
    while at < steps.len() {
        // Closed and open loops answer different questions.
        let kind = |step: &StepResult| (step.limit.who, step.pace == Pace::Closed);
        let who = steps[at].limit.who;
        let mut end = at;
        while end + 1 < steps.len() && kind(steps[end + 1]) == kind(steps[at]) {
            end += 1;
        }
        let which = match end == at {
            true => step_name(steps[at]),
            false => format!("{} to {}", step_name(steps[at]), step_name(steps[end])),
        };
        let text = format!(
            "{which}: limited by {}: {}",
            who.name(),
            escape_line(&steps[end].limit.evidence)
        );
        style.write_paragraph(out, "", 2, &text);
        at = end + 1;
    }
    write_doubts(out, steps, style);
}

/// Writes the doubts without duplicates, with the steps that have them and the evidence of the first of these steps.
fn write_doubts(out: &mut String, steps: &[&StepResult], style: Style) {
    let mut told: Vec<(&Doubt, Vec<String>)> = Vec::new();
    for step in steps {
        for doubt in &step.doubts {
            let same = |own: &&mut (&Doubt, Vec<String>)| {
                (&own.0.code, own.0.severity) == (&doubt.code, doubt.severity)
            };
            match told.iter_mut().find(same) {
                Some((_, names)) => names.push(step_name(step)),
                None => told.push((doubt, vec![step_name(step)])),
            }
        }
    }
    for (doubt, names) in told {
        let severity = doubt.severity.name();
        let which = match &names[..] {
            [one] => format!("{one}: "),
            [first, ..] => format!("{} steps, {first}: ", names.len()),
            [] => String::new(),
        };
        let text = format!(
            "{} ({severity}): {which}{}. {}",
            doubt.code,
            escape_line(&doubt.evidence),
            doubt.remedy
        );
        style.write_paragraph(out, "", 2, &text);
    }
}

#[cfg(test)]
mod tests;

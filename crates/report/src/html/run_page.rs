//! Builds the values for the template of a run's page. Untrusted text is cleaned here and escaped by the template.
//! Charts escape their own text and are passed on as markup.

use super::doubt_view::DoubtView;
use super::line_charts;
use super::run_charts::{self, HeatColumn};
use crate::odd_round::find_odd_round;
use crate::result_grid::{self, ResultGrid};
use crate::run_description;
use crate::terminal::{
    collect_doubts, describe_burst, describe_criterion, format_plain_json, format_some_names,
    group_by_limit, limit_name, list_targets,
};
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::fact::{FactKind, FactValue};
use assay_model::result::{Change, Judged, RunComparison, WorkloadResult};
use assay_model::{Facts, Run, Sample};
use assay_render::html::{self, Chart};
use assay_render::text::{escape_line, escape_lines};
use assay_render::units::{
    NONE, format_count, format_plus_minus, format_range, format_value, quantity_heading,
};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");

/// Heading and description of the run.
#[derive(Serialize)]
struct RunHead {
    title: String,
    name: String,
    when: String,
    uid: String,
    version: String,
    tools: String,
    machine: Option<String>,
    targets: Vec<(String, Vec<String>)>,
    remarks: Vec<String>,
    tiles: Vec<(String, String)>,
}

#[derive(Serialize)]
struct TargetSection {
    /// Name of the target; empty if the run has a single target.
    target: String,
    id: usize,
    heat: Vec<HeatColumn>,
    heads: Vec<String>,
    rows: Vec<ResultRow>,
    intervals: Vec<Chart>,
    curves: Vec<Chart>,
    rates: Vec<Chart>,
    left_out: Option<String>,
}

#[derive(Serialize)]
struct ResultRow {
    workload: String,
    description: String,
    cells: Vec<(String, String)>,
    validity: &'static str,
    rounds: String,
    odd_round: Option<String>,
    steady: &'static str,
    reason: String,
    limit: &'static str,
}

#[derive(Serialize)]
struct CriterionView {
    word: &'static str,
    class: &'static str,
    criterion: String,
    why: String,
}

#[derive(Serialize)]
struct LimitGroup {
    name: &'static str,
    share: String,
    evidence: Vec<(String, String)>,
}

#[derive(Serialize)]
struct ComparisonView {
    a: String,
    b: String,
    when: String,
    environment: Vec<(String, String, String)>,
    cautions: Vec<String>,
    charts: Vec<Chart>,
    only: Vec<String>,
    summary: String,
}

/// A fact as pages list it.
#[derive(Serialize)]
pub struct FactRow {
    key: String,
    value: String,
    unknown: bool,
    kind: &'static str,
    source: String,
}

pub(super) fn render_page(
    run: &Run,
    judged: &Judged,
    samples: &[Sample],
    against: Option<(&Run, &Judged, &RunComparison)>,
    jobs: &[(String, String)],
) -> String {
    let jobs: Vec<(String, String)> = jobs
        .iter()
        .map(|(name, text)| (escape_line(name), escape_lines(text)))
        .collect();
    let head = build_head(run, judged, samples);
    let compared =
        against.map(|(other, _, comparison)| build_comparison_view(other, judged, comparison));
    html::render_page(
        &format!("{} ({})", head.title, head.name),
        "",
        TEMPLATE,
        context! {
                head => Serde(head),
                sections => Serde(build_sections(run, judged)),
                criteria => Serde(build_verdicts(judged)),
                limits => Serde(build_limit_groups(judged)),
                doubts => Serde(build_doubt_views(judged)),
                against => Serde(compared),
                facts => Serde(group_facts(&run.facts)),
                jobs => Serde(jobs),
                seed => run.plan.seed.to_string(),
                rounds => run.plan.rounds,
                confidence => format_confidence(judged),
        },
    )
}

fn format_confidence(judged: &Judged) -> Option<String> {
    let mut estimates = judged
        .results
        .iter()
        .flat_map(|result| result.estimates.values());
    let interval = estimates.find_map(|estimate| estimate.interval)?;
    Some(format!("{:.0} %", interval.confidence * 100.0))
}

fn build_head(run: &Run, judged: &Judged, samples: &[Sample]) -> RunHead {
    let mut tools: Vec<String> = samples
        .iter()
        .map(|sample| escape_line(&sample.tool))
        .collect();
    tools.sort();
    tools.dedup();
    let of = |validity| {
        judged
            .results
            .iter()
            .filter(|result| result.validity == validity)
            .count()
    };
    let all = judged.results.len();
    let (valid, suspect, void) = (
        of(Validity::Valid),
        of(Validity::Suspect),
        of(Validity::Void),
    );
    let mut tiles = vec![(
        all.to_string(),
        if all == 1 { "workload" } else { "workloads" }.to_owned(),
    )];
    tiles.push((judged.samples.len().to_string(), "samples".to_owned()));
    if all > 0 {
        let mut other = Vec::new();
        if suspect > 0 {
            other.push(format!("{suspect} suspect"));
        }
        if void > 0 {
            other.push(format!("{void} void"));
        }
        let label = if other.is_empty() {
            "without doubt".to_owned()
        } else {
            format!("without doubt, {}", other.join(", "))
        };
        tiles.push((format!("{valid} of {all}"), label));
        let counted = all - void;
        let steady = judged
            .results
            .iter()
            .filter(|r| r.validity != Validity::Void && r.steadiness.steady)
            .count();
        tiles.push((
            format!("{steady} of {counted}"),
            "steady, else a burst".to_owned(),
        ));
    }
    if !judged.criteria.is_empty() {
        let met = judged
            .criteria
            .iter()
            .filter(|criterion| criterion.met)
            .count();
        tiles.push((
            format!("{met} of {}", judged.criteria.len()),
            "criteria met".to_owned(),
        ));
    }
    RunHead {
        title: run_description::format_title(run),
        name: run_description::run_name(run),
        when: run_description::format_time_and_progress(run),
        uid: escape_line(&run.uid),
        version: escape_line(&run.assay_version),
        tools: tools.join(", "),
        machine: run_description::describe_machine(&run.facts),
        targets: run
            .targets
            .iter()
            .map(|target| {
                let lines = [
                    run_description::describe_storage(&run.facts, target),
                    run_description::describe_sizes(&run.facts, target),
                ];
                (
                    escape_line(&target.name),
                    lines.into_iter().flatten().collect(),
                )
            })
            .collect(),
        remarks: run
            .remarks
            .iter()
            .map(|remark| escape_line(remark))
            .collect(),
        tiles,
    }
}

fn build_sections(run: &Run, judged: &Judged) -> Vec<TargetSection> {
    let (grids, rest) = result_grid::split_into_grids(&run.plan, judged);
    let names = list_targets(judged);
    let several = names.len() > 1;
    let rates = run_description::rate_heading(&run.plan);
    names
        .into_iter()
        .enumerate()
        .map(|(id, target)| {
            let grids: Vec<&ResultGrid> = grids.iter().filter(|grid| grid.target == target).collect();
            let rest: Vec<&WorkloadResult> = rest.iter().copied().filter(|r| r.target == target).collect();
            let all: Vec<&WorkloadResult> = judged.results.iter().filter(|r| r.target == target).collect();
            let heat = match grids.is_empty() {
                true => Vec::new(),
                false => run_charts::build_heat_columns(&grids, &format!("heat{id}")),
            };
            let most = run_charts::MOST_PANELS;
            let shown = &all[..all.len().min(most)];
            TargetSection {
                target: if several { escape_line(target) } else { String::new() },
                id,
                heat,
                heads: FIGURES
                    .into_iter()
                    .map(|quantity| match quantity {
                        Quantity::Iops => rates.clone(),
                        other => quantity_heading(other).to_owned(),
                    })
                    .collect(),
                rows: all.iter().map(|result| build_row(judged, result)).collect(),
                intervals: run_charts::build_interval_charts(judged, shown, &rates, &format!("dots{id}")),
                curves: line_charts::build_curve_charts(&grids, &rest, &format!("curves{id}")),
                rates: line_charts::build_rate_charts(&all, &format!("rates{id}")),
                left_out: (all.len() > most)
                    .then(|| format!(
                        "Charts show the first {most} of {} workloads; the table of figures has all.",
                        all.len()
                    )),
            }
        })
        .collect()
}

const FIGURES: [Quantity; 5] = [
    Quantity::Iops,
    Quantity::Throughput,
    Quantity::P50,
    Quantity::P99,
    Quantity::P999,
];

fn build_row(judged: &Judged, result: &WorkloadResult) -> ResultRow {
    let cell = |quantity| match result.estimates.get(&Metric::all(quantity)) {
        None => (NONE.to_owned(), String::new()),
        Some(estimate) => {
            let interval = estimate.interval.map(|i| format_range(quantity, &i));
            let spread = if quantity == Quantity::Iops {
                format_plus_minus(estimate)
            } else {
                String::new()
            };
            let text = format_value(quantity, estimate.value);
            (
                text,
                if spread.is_empty() {
                    interval.unwrap_or_default()
                } else {
                    spread
                },
            )
        }
    };
    let void = result.validity == Validity::Void;
    ResultRow {
        workload: escape_line(&result.workload),
        description: escape_line(&result.description),
        cells: FIGURES.into_iter().map(cell).collect(),
        validity: validity_class(result.validity),
        rounds: match result.rounds_void {
            0 => result.rounds.to_string(),
            out => format!("{} (+{out} left out)", result.rounds),
        },
        odd_round: find_odd_round(judged, result).map(|odd| odd.describe()),
        steady: match (void, result.steadiness.steady) {
            (true, _) => "",
            (false, true) => "steady",
            (false, false) => "burst",
        },
        reason: describe_burst(&result.steadiness),
        limit: if void {
            ""
        } else {
            limit_name(result.limit.what)
        },
    }
}

fn validity_class(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "valid",
        Validity::Suspect => "suspect",
        Validity::Void => "void",
    }
}

fn build_verdicts(judged: &Judged) -> Vec<CriterionView> {
    let several = list_targets(judged).len() > 1;
    let verdict = |result: &assay_model::result::CriterionResult| {
        let (word, why) = describe_criterion(result);
        let mut criterion = escape_line(&result.criterion.to_string());
        if several && result.criterion.target.is_none() {
            criterion.push_str(&format!(" on {}", escape_line(&result.target)));
        }
        CriterionView {
            word,
            class: if result.met { "met" } else { "missed" },
            criterion,
            why,
        }
    };
    judged.criteria.iter().map(verdict).collect()
}

fn build_limit_groups(judged: &Judged) -> Vec<LimitGroup> {
    let counted: Vec<&WorkloadResult> = judged
        .results
        .iter()
        .filter(|result| result.validity != Validity::Void)
        .collect();
    group_by_limit(&counted)
        .into_iter()
        .map(|(kind, members)| LimitGroup {
            name: limit_name(kind),
            share: format!("{} of {}", members.len(), counted.len()),
            evidence: members
                .iter()
                .map(|r| (escape_line(&r.workload), escape_line(&r.limit.evidence)))
                .collect(),
        })
        .collect()
}

fn build_doubt_views(judged: &Judged) -> Vec<DoubtView> {
    let all = judged.results.len();
    let view = |one: crate::terminal::CarriedDoubt| {
        let workloads = match one.workloads.len() == all && all > 1 {
            true => format!("all {}", format_count(all, "workload")),
            false => format_some_names(&one.workloads, 12),
        };
        let samples = format_count(one.samples as usize, "sample");
        DoubtView::new(one.doubt, format!("{samples}: {workloads}"))
    };
    collect_doubts(judged).into_iter().map(view).collect()
}

fn build_comparison_view(
    other: &Run,
    judged: &Judged,
    comparison: &RunComparison,
) -> ComparisonView {
    let several = list_targets(judged).len() > 1;
    let changed = |change| {
        let rows = comparison
            .rows
            .iter()
            .filter(|row| crate::terminal::is_shown(row));
        rows.filter(|row| row.verdict == change).count()
    };
    let only = [(&comparison.only_a, "A"), (&comparison.only_b, "B")];
    ComparisonView {
        a: run_description::run_name(other),
        b: format!("run {}", comparison.b),
        when: run_description::format_time_and_progress(other),
        environment: comparison
            .environment
            .iter()
            .map(|d| {
                (
                    escape_line(&d.key),
                    format_plain_json(d.a.as_ref()),
                    format_plain_json(d.b.as_ref()),
                )
            })
            .collect(),
        cautions: comparison
            .cautions
            .iter()
            .map(|caution| escape_line(caution))
            .collect(),
        charts: run_charts::build_ratio_charts(comparison, several),
        only: only
            .into_iter()
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, which)| {
                let names: Vec<String> = names.iter().map(|name| escape_line(name)).collect();
                format!("Only in {which}: {}", names.join(", "))
            })
            .collect(),
        summary: format!(
            "{} better, {} worse, {} unclear",
            changed(Change::Better),
            changed(Change::Worse),
            changed(Change::Unclear)
        ),
    }
}

/// Groups facts by the first part of their keys, for the macro `environment` of pages.
#[must_use]
pub fn group_facts(facts: &Facts) -> Vec<(String, Vec<FactRow>)> {
    let mut groups: Vec<(String, Vec<FactRow>)> = Vec::new();
    for (key, fact) in &facts.map {
        let group = escape_line(key.split('.').next().unwrap_or(key));
        let (value, unknown) = match &fact.value {
            FactValue::Known(value) => (format_fact(value), false),
            FactValue::Unknown(reason) => (format!("unknown: {}", escape_line(reason)), true),
        };
        let kind = match fact.kind {
            FactKind::Default => "default",
            FactKind::Configured => "configured",
            FactKind::Runtime => "run-time",
        };
        let row = FactRow {
            key: escape_line(key),
            value,
            unknown,
            kind,
            source: escape_line(&fact.place.to_string()),
        };
        match groups.last_mut().filter(|(name, _)| *name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    groups
}

/// Formats a list with commas; other values stay unchanged.
fn format_fact(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => items
            .iter()
            .map(|item| format_plain_json(Some(item)))
            .collect::<Vec<_>>()
            .join(", "),
        other => format_plain_json(Some(other)),
    }
}

//! The values that the template shows. Everything from outside is cleaned here and escaped by the
//! template; only the charts, which escape for themselves, are passed on as markup.

use super::charts::{self, HeatColumn};
use super::doubt::DoubtView;
use super::lines;
use crate::grid::{self, Grid};
use crate::odd_round::OddRound;
use crate::subject;
use crate::terminal::{
    burst_reason, by_limit, carried, criterion_words, limit_name, plain, some_names, targets,
};
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::fact::{FactKind, FactValue};
use assay_model::result::{Change, Judged, RunComparison, WorkloadResult};
use assay_model::{Facts, Run, Sample};
use assay_render::html::{self, Chart};
use assay_render::text::{clean, clean_lines};
use assay_render::units::{NONE, count, heading, plus_minus, range, value};
use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;

const TEMPLATE: &str = include_str!("page.html");

/// What the page says of the run as a whole.
#[derive(Serialize)]
struct Head {
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
struct Section {
    /// Empty where the run has a single target.
    target: String,
    id: usize,
    heat: Vec<HeatColumn>,
    heads: Vec<String>,
    rows: Vec<Row>,
    intervals: Vec<Chart>,
    curves: Vec<Chart>,
    rates: Vec<Chart>,
    left_out: Option<String>,
}

#[derive(Serialize)]
struct Row {
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
struct Verdict {
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
struct Against {
    a: String,
    b: String,
    when: String,
    environment: Vec<(String, String, String)>,
    cautions: Vec<String>,
    charts: Vec<Chart>,
    only: Vec<String>,
    summary: String,
}

#[derive(Serialize)]
pub(crate) struct FactRow {
    key: String,
    value: String,
    unknown: bool,
    kind: &'static str,
    source: String,
}

pub(super) fn render(
    run: &Run,
    judged: &Judged,
    samples: &[Sample],
    against: Option<(&Run, &Judged, &RunComparison)>,
    jobs: &[(String, String)],
) -> String {
    let jobs: Vec<(String, String)> = jobs
        .iter()
        .map(|(name, text)| (clean(name), clean_lines(text)))
        .collect();
    let head = head(run, judged, samples);
    html::page(
        &format!("{} ({})", head.title, head.name),
        "",
        TEMPLATE,
        context! {
                head => Serde(head),
                sections => Serde(sections(run, judged)),
                criteria => Serde(criteria(judged)),
                limits => Serde(limits(judged)),
                doubts => Serde(doubts(judged)),
                against => Serde(against.map(|(other, _, comparison)| against_view(other, judged, comparison))),
                facts => Serde(facts(&run.facts)),
                jobs => Serde(jobs),
                seed => run.plan.seed.to_string(),
                rounds => run.plan.rounds,
                confidence => confidence(judged),
        },
    )
}

fn confidence(judged: &Judged) -> Option<String> {
    let mut estimates = judged
        .results
        .iter()
        .flat_map(|result| result.estimates.values());
    let interval = estimates.find_map(|estimate| estimate.interval)?;
    Some(format!("{:.0} %", interval.confidence * 100.0))
}

fn head(run: &Run, judged: &Judged, samples: &[Sample]) -> Head {
    let mut tools: Vec<String> = samples.iter().map(|sample| clean(&sample.tool)).collect();
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
    Head {
        title: subject::title(run),
        name: subject::name(run),
        when: subject::when(run),
        uid: clean(&run.uid),
        version: clean(&run.assay_version),
        tools: tools.join(", "),
        machine: subject::machine(&run.facts),
        targets: run
            .targets
            .iter()
            .map(|target| {
                let lines = [
                    subject::storage(&run.facts, target),
                    subject::sizes(&run.facts, target),
                ];
                (clean(&target.name), lines.into_iter().flatten().collect())
            })
            .collect(),
        remarks: run.remarks.iter().map(|remark| clean(remark)).collect(),
        tiles,
    }
}

fn sections(run: &Run, judged: &Judged) -> Vec<Section> {
    let (grids, rest) = grid::split(&run.plan, judged);
    let names = targets(judged);
    let several = names.len() > 1;
    let rates = subject::rates(&run.plan);
    names
        .into_iter()
        .enumerate()
        .map(|(id, target)| {
            let grids: Vec<&Grid> = grids.iter().filter(|grid| grid.target == target).collect();
            let rest: Vec<&WorkloadResult> = rest.iter().copied().filter(|r| r.target == target).collect();
            let all: Vec<&WorkloadResult> = judged.results.iter().filter(|r| r.target == target).collect();
            let heat = if grids.is_empty() { Vec::new() } else { charts::heat(&grids, &format!("heat{id}")) };
            let most = charts::MOST_PANELS;
            let shown = &all[..all.len().min(most)];
            Section {
                target: if several { clean(target) } else { String::new() },
                id,
                heat,
                heads: FIGURES
                    .into_iter()
                    .map(|quantity| match quantity {
                        Quantity::Iops => rates.clone(),
                        other => heading(other).to_owned(),
                    })
                    .collect(),
                rows: all.iter().map(|result| row(judged, result)).collect(),
                intervals: charts::intervals(judged, shown, &rates, &format!("dots{id}")),
                curves: lines::curves(&grids, &rest, &format!("curves{id}")),
                rates: lines::rates(&all, &format!("rates{id}")),
                left_out: (all.len() > most)
                    .then(|| format!("Charts show the first {most} of {} workloads; the table of figures has all.", all.len())),
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

fn row(judged: &Judged, result: &WorkloadResult) -> Row {
    let cell = |quantity| match result.estimates.get(&Metric::all(quantity)) {
        None => (NONE.to_owned(), String::new()),
        Some(estimate) => {
            let interval = estimate.interval.map(|i| range(quantity, &i));
            let spread = if quantity == Quantity::Iops {
                plus_minus(estimate)
            } else {
                String::new()
            };
            let text = value(quantity, estimate.value);
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
    Row {
        workload: clean(&result.workload),
        description: clean(&result.description),
        cells: FIGURES.into_iter().map(cell).collect(),
        validity: validity(result.validity),
        rounds: match result.rounds_void {
            0 => result.rounds.to_string(),
            out => format!("{} (+{out} left out)", result.rounds),
        },
        odd_round: OddRound::find(judged, result).map(|odd| odd.describe()),
        steady: match (void, result.steadiness.steady) {
            (true, _) => "",
            (false, true) => "steady",
            (false, false) => "burst",
        },
        reason: burst_reason(&result.steadiness),
        limit: if void {
            ""
        } else {
            limit_name(result.limit.what)
        },
    }
}

fn validity(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "valid",
        Validity::Suspect => "suspect",
        Validity::Void => "void",
    }
}

fn criteria(judged: &Judged) -> Vec<Verdict> {
    let several = targets(judged).len() > 1;
    let verdict = |result: &assay_model::result::CriterionResult| {
        let (word, why) = criterion_words(result);
        let mut criterion = clean(&result.criterion.to_string());
        if several && result.criterion.target.is_none() {
            criterion.push_str(&format!(" on {}", clean(&result.target)));
        }
        Verdict {
            word,
            class: if result.met { "met" } else { "missed" },
            criterion,
            why,
        }
    };
    judged.criteria.iter().map(verdict).collect()
}

fn limits(judged: &Judged) -> Vec<LimitGroup> {
    let counted: Vec<&WorkloadResult> = judged
        .results
        .iter()
        .filter(|result| result.validity != Validity::Void)
        .collect();
    by_limit(&counted)
        .into_iter()
        .map(|(kind, members)| LimitGroup {
            name: limit_name(kind),
            share: format!("{} of {}", members.len(), counted.len()),
            evidence: members
                .iter()
                .map(|r| (clean(&r.workload), clean(&r.limit.evidence)))
                .collect(),
        })
        .collect()
}

fn doubts(judged: &Judged) -> Vec<DoubtView> {
    let all = judged.results.len();
    let view = |one: crate::terminal::Carried| {
        let workloads = match one.workloads.len() == all && all > 1 {
            true => format!("all {}", count(all, "workload")),
            false => some_names(&one.workloads, 12),
        };
        let samples = count(one.samples as usize, "sample");
        DoubtView::new(one.doubt, format!("{samples}: {workloads}"))
    };
    carried(judged).into_iter().map(view).collect()
}

fn against_view(other: &Run, judged: &Judged, comparison: &RunComparison) -> Against {
    let several = targets(judged).len() > 1;
    let changed = |change| {
        let rows = comparison
            .rows
            .iter()
            .filter(|row| crate::terminal::shown(row));
        rows.filter(|row| row.verdict == change).count()
    };
    let only = [(&comparison.only_a, "A"), (&comparison.only_b, "B")];
    Against {
        a: subject::name(other),
        b: format!("run {}", comparison.b),
        when: subject::when(other),
        environment: comparison
            .environment
            .iter()
            .map(|d| (clean(&d.key), plain(d.a.as_ref()), plain(d.b.as_ref())))
            .collect(),
        cautions: comparison
            .cautions
            .iter()
            .map(|caution| clean(caution))
            .collect(),
        charts: charts::ratios(comparison, several),
        only: only
            .into_iter()
            .filter(|(names, _)| !names.is_empty())
            .map(|(names, which)| {
                let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
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

/// Facts by the first part of their key.
pub(crate) fn facts(facts: &Facts) -> Vec<(String, Vec<FactRow>)> {
    let mut groups: Vec<(String, Vec<FactRow>)> = Vec::new();
    for (key, fact) in &facts.map {
        let group = clean(key.split('.').next().unwrap_or(key));
        let (value, unknown) = match &fact.value {
            FactValue::Known(value) => (fact_text(value), false),
            FactValue::Unknown(reason) => (format!("unknown: {}", clean(reason)), true),
        };
        let kind = match fact.kind {
            FactKind::Default => "default",
            FactKind::Configured => "configured",
            FactKind::Runtime => "run-time",
        };
        let row = FactRow {
            key: clean(key),
            value,
            unknown,
            kind,
            source: clean(&fact.place.to_string()),
        };
        match groups.last_mut().filter(|(name, _)| *name == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    groups
}

/// A list with commas, other values as they are.
fn fact_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => items
            .iter()
            .map(|item| plain(Some(item)))
            .collect::<Vec<_>>()
            .join(", "),
        other => plain(Some(other)),
    }
}

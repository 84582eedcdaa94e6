//! A run as Markdown, for issues, wikis and commit messages.

use crate::odd_round::OddRound;
use crate::subject;
use crate::terminal::{carried, criterion_words, limit_name, mark};
use assay_model::Run;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::Judged;
use assay_render::markdown::plain;
use assay_render::units::{NONE, heading, plus_minus, value};

/// The run as GitHub-flavoured Markdown: figures, criteria, limits, doubts, environment in short.
#[must_use]
pub fn run(run: &Run, judged: &Judged) -> String {
    let mut out = format!("# {}\n\n", plain(&subject::title(run)));
    out.push_str(&format!(
        "- {}: {}\n",
        plain(&subject::name(run)),
        plain(&subject::when(run))
    ));
    for target in &run.targets {
        let parts = [
            subject::storage(&run.facts, target),
            subject::sizes(&run.facts, target),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .flatten()
            .map(|part| plain(&part))
            .collect();
        out.push_str(&format!(
            "- target {}: {}\n",
            plain(&target.name),
            parts.join("; ")
        ));
    }
    if let Some(machine) = subject::machine(&run.facts) {
        out.push_str(&format!("- machine: {}\n", plain(&machine)));
    }
    for remark in &run.remarks {
        out.push_str(&format!("- note: {}\n", plain(remark)));
    }
    figures(run, judged, &mut out);
    if !judged.criteria.is_empty() {
        out.push_str("\n## Criteria\n\n");
        for result in &judged.criteria {
            let (verdict, why) = criterion_words(result);
            let criterion = plain(&result.criterion.to_string());
            out.push_str(&format!("- **{verdict}**: {criterion}: {}\n", plain(&why)));
        }
    }
    out.push_str(&doubts(judged));
    out
}

/// Each doubt once, with what carries it; nothing where there is none.
pub(crate) fn doubts(judged: &Judged) -> String {
    let mut out = String::new();
    let doubts = carried(judged);
    if !doubts.is_empty() {
        out.push_str("\n## Doubts\n\n");
    }
    for one in doubts {
        let severity = one.doubt.severity.name();
        out.push_str(&format!(
            "- **{}** ({severity}): {} Instead: {} In: {}\n",
            plain(&one.doubt.code),
            sentence(&plain(&one.doubt.evidence)),
            sentence(&plain(&one.doubt.remedy)),
            plain(&one.workloads.join(", "))
        ));
    }
    out
}

/// With a full stop at its end.
pub(crate) fn sentence(text: &str) -> String {
    match text.ends_with(['.', '!', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

fn figures(run: &Run, judged: &Judged, out: &mut String) {
    const SHOWN: [Quantity; 5] = [
        Quantity::Iops,
        Quantity::Throughput,
        Quantity::P50,
        Quantity::P99,
        Quantity::P999,
    ];
    if judged.results.is_empty() {
        out.push_str("\nNothing was measured.\n");
        return;
    }
    out.push_str("\n## Figures\n\nMB/s = 10⁶ bytes per second; ±: half of the 95 % interval over the rounds.\n\n");
    let rates = crate::subject::rates(&run.plan);
    let heads: Vec<&str> = SHOWN
        .into_iter()
        .map(|quantity| match quantity {
            Quantity::Iops => rates.as_str(),
            other => heading(other),
        })
        .collect();
    out.push_str(&format!(
        "| workload | target | {} | ± | mark | why not more? |\n",
        heads.join(" | ")
    ));
    out.push_str(&format!(
        "|---|---|{}---|---|\n",
        "--:|".repeat(SHOWN.len() + 1)
    ));
    for result in &judged.results {
        let estimate = |quantity| result.estimates.get(&Metric::all(quantity));
        let cells: Vec<String> = SHOWN
            .into_iter()
            .map(|q| estimate(q).map_or(NONE.to_owned(), |found| value(q, found.value)))
            .collect();
        let mark = match (mark(result.validity), result.steadiness.steady) {
            ("?", true) => "suspect",
            ("?", false) => "suspect, burst",
            ("x", _) => "void",
            (_, false) => "burst",
            (_, true) => "",
        };
        let odd = OddRound::find(judged, result);
        let mark = match odd.map(|odd| odd.describe()) {
            Some(odd) if mark.is_empty() => odd,
            Some(odd) => format!("{mark}; {odd}"),
            None => mark.to_owned(),
        };
        let limit = match result.validity {
            Validity::Void => String::new(),
            _ => format!(
                "{}: {}",
                limit_name(result.limit.what),
                plain(&result.limit.evidence)
            ),
        };
        out.push_str(&format!(
            "| {} | {} | {} | {} | {mark} | {limit} |\n",
            plain(&result.workload),
            plain(&result.target),
            cells.join(" | "),
            estimate(Quantity::Iops).map(plus_minus).unwrap_or_default(),
        ));
    }
}

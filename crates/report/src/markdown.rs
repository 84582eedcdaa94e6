//! The Markdown report of a run, for issues, wikis and commit messages. The Markdown reports of trials, studies and
//! stacks are in their own modules.

use crate::odd_round::find_odd_round;
use crate::run_description;
use crate::terminal::{collect_doubts, describe_criterion, limit_name, validity_mark};
use assay_model::Run;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::Judged;
use assay_render::markdown::escape_markdown;
use assay_render::units::{NONE, format_plus_minus, format_value, quantity_heading};

/// Renders a run as GitHub-flavoured Markdown: figures, criteria, limits, doubts and a short description of the
/// environment.
#[must_use]
pub fn render_run_markdown(run: &Run, judged: &Judged) -> String {
    let mut out = format!(
        "# {}\n\n",
        escape_markdown(&run_description::format_title(run))
    );
    out.push_str(&format!(
        "- {}: {}\n",
        escape_markdown(&run_description::run_name(run)),
        escape_markdown(&run_description::format_time_and_progress(run))
    ));
    for target in &run.targets {
        let parts = [
            run_description::describe_storage(&run.facts, target),
            run_description::describe_sizes(&run.facts, target),
        ];
        let parts: Vec<String> = parts
            .into_iter()
            .flatten()
            .map(|part| escape_markdown(&part))
            .collect();
        out.push_str(&format!(
            "- target {}: {}\n",
            escape_markdown(&target.name),
            parts.join("; ")
        ));
    }
    if let Some(machine) = run_description::describe_machine(&run.facts) {
        out.push_str(&format!("- machine: {}\n", escape_markdown(&machine)));
    }
    for remark in &run.remarks {
        out.push_str(&format!("- note: {}\n", escape_markdown(remark)));
    }
    write_figures(run, judged, &mut out);
    if !judged.criteria.is_empty() {
        out.push_str("\n## Criteria\n\n");
        for result in &judged.criteria {
            let (verdict, why) = describe_criterion(result);
            let criterion = escape_markdown(&result.criterion.to_string());
            out.push_str(&format!(
                "- **{verdict}**: {criterion}: {}\n",
                escape_markdown(&why)
            ));
        }
    }
    out.push_str(&render_doubts(judged));
    out
}

/// Renders each doubt once, with the workloads that have it; empty without doubts.
pub(crate) fn render_doubts(judged: &Judged) -> String {
    let mut out = String::new();
    let doubts = collect_doubts(judged);
    if !doubts.is_empty() {
        out.push_str("\n## Doubts\n\n");
    }
    for one in doubts {
        let severity = one.doubt.severity.name();
        out.push_str(&format!(
            "- **{}** ({severity}): {} Instead: {} In: {}\n",
            escape_markdown(&one.doubt.code),
            end_sentence(&escape_markdown(&one.doubt.evidence)),
            end_sentence(&escape_markdown(&one.doubt.remedy)),
            escape_markdown(&one.workloads.join(", "))
        ));
    }
    out
}

/// Adds a full stop to a text that does not end with one.
pub(crate) fn end_sentence(text: &str) -> String {
    match text.ends_with(['.', '!', '?']) {
        true => text.to_owned(),
        false => format!("{text}."),
    }
}

fn write_figures(run: &Run, judged: &Judged, out: &mut String) {
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
    let rates = crate::run_description::rate_heading(&run.plan);
    let heads: Vec<&str> = SHOWN
        .into_iter()
        .map(|quantity| match quantity {
            Quantity::Iops => rates.as_str(),
            other => quantity_heading(other),
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
            .map(|q| estimate(q).map_or(NONE.to_owned(), |found| format_value(q, found.value)))
            .collect();
        let mark = match (validity_mark(result.validity), result.steadiness.steady) {
            ("?", true) => "suspect",
            ("?", false) => "suspect, burst",
            ("x", _) => "void",
            (_, false) => "burst",
            (_, true) => "",
        };
        let odd = find_odd_round(judged, result);
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
                escape_markdown(&result.limit.evidence)
            ),
        };
        out.push_str(&format!(
            "| {} | {} | {} | {} | {mark} | {limit} |\n",
            escape_markdown(&result.workload),
            escape_markdown(&result.target),
            cells.join(" | "),
            estimate(Quantity::Iops)
                .map(format_plus_minus)
                .unwrap_or_default(),
        ));
    }
}

//! The Markdown report of a trial, for issues, wikis and commit messages. Shared text is in
//! `trial_text` and `trial_tables`.

use super::TrialView;
use super::terminal::{
    build_subject_rows, describe_carriers, describe_change_state, describe_environment,
    describe_flush_tests, format_median_with_interval, side_letter,
};
use super::trial_tables::{self, format_row_change};
use super::trial_text::{describe_verdict, headline_word, short_metric_name};
use crate::markdown::end_sentence;
use assay_render::markdown::{escape_markdown, render_table};

/// Renders GitHub-flavoured Markdown: the verdict, what was tested, figures, guardrails, doubts, and the machine.
#[must_use]
pub fn render_trial_markdown(view: &TrialView) -> String {
    let mut out = format!(
        "**{}**: {}\n\n",
        headline_word(view),
        escape_markdown(&describe_verdict(view))
    );
    for (label, text) in build_subject_rows(view) {
        out.push_str(&format!("- {label}: {}\n", escape_markdown(&text)));
    }
    for remark in &view.trial.remarks {
        out.push_str(&format!("- note: {}\n", escape_markdown(remark)));
    }
    write_figures(view, &mut out);
    let guards = trial_tables::build_guard_and_total_rows(view);
    if !guards.is_empty() {
        let rows = guards.into_iter().map(|row| {
            let state = format!("**{}**", row.state.word());
            [
                escape_markdown(&row.name),
                row.change,
                row.interval,
                row.allowed,
                state,
            ]
        });
        let head = ["guardrail", "B/A", "interval", "allowed", ""];
        out.push_str("\n## Guardrails\n\n");
        out.push_str(&render_table(&head, "lrrrl", rows));
    }
    if let Some(proved) = trial_tables::describe_proof(view) {
        out.push_str(&format!("\n{}\n", escape_markdown(&proved)));
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n## {title}\n\n"));
        }
        for line in lines {
            out.push_str(&format!("- {line}\n"));
        }
    };
    let proved = describe_flush_tests(view.trial).into_iter();
    list(
        "Are acknowledged writes durable?",
        proved
            .map(|(which, text, _)| format!("{}: {}", side_letter(which), escape_markdown(&text)))
            .collect(),
    );
    let doubts = trial_tables::count_doubts(view);
    let doubt = |one: &trial_tables::SideDoubt| {
        format!(
            "**{}** ({}): {} Instead: {} In {}.",
            escape_markdown(&one.doubt.code),
            one.doubt.severity.name(),
            end_sentence(&escape_markdown(&one.doubt.evidence)),
            end_sentence(&escape_markdown(&one.doubt.remedy)),
            describe_carriers(one)
        )
    };
    list("Doubts", doubts.iter().map(doubt).collect());
    let gone = trial_tables::list_left_out_pairs(view).into_iter();
    list(
        "Left out",
        gone.map(|(kind, reason, pairs)| {
            format!(
                "{}, {kind}: {}",
                trial_tables::format_pair_numbers(&pairs),
                escape_markdown(&reason)
            )
        })
        .collect(),
    );
    list(
        "Where",
        describe_environment(view)
            .iter()
            .map(|line| escape_markdown(line))
            .collect(),
    );
    list(
        "What became of it",
        describe_change_state(view)
            .iter()
            .map(|line| escape_markdown(line))
            .collect(),
    );
    out
}

fn write_figures(view: &TrialView, out: &mut String) {
    let load = &view.trial.plan.load;
    out.push_str(
        "\n## Figures\n\nMedian over the pairs that count, with its interval; MB/s = 10⁶ bytes per \
         second; B/A is the centre of the pairs' own ratios.\n\n",
    );
    let rows = trial_tables::build_figure_rows(view)
        .into_iter()
        .map(|row| {
            let name = short_metric_name(load, row.metric);
            let name = if row.decides {
                format!("**{name}** (decides)")
            } else {
                name
            };
            let [now, changed] =
                [row.now, row.changed].map(|side| format_median_with_interval(&row, side));
            [name, now, changed, format_row_change(&row)]
        });
    out.push_str(&render_table(&["figure", "A", "B", "B/A"], "lrrr", rows));
}

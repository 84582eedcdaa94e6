//! A trial as Markdown, for issues, wikis and commit messages.

use super::View;
use super::evidence::{self, row_change};
use super::terminal::{became, carried, environment, proofs, side, subject, with_interval};
use super::words::{headline, sentence, short_metric};
use crate::markdown::sentence as stopped;
use assay_render::markdown::{plain, table};

/// GitHub-flavoured Markdown: the verdict, what was tested, figures, guardrails, doubts, machine.
#[must_use]
pub fn markdown(view: &View) -> String {
    let mut out = format!("**{}**: {}\n\n", headline(view), plain(&sentence(view)));
    for (label, text) in subject(view) {
        out.push_str(&format!("- {label}: {}\n", plain(&text)));
    }
    for remark in &view.trial.remarks {
        out.push_str(&format!("- note: {}\n", plain(remark)));
    }
    figures(view, &mut out);
    let guards = evidence::bounds(view);
    if !guards.is_empty() {
        let rows = guards.into_iter().map(|row| {
            let state = format!("**{}**", row.state.word());
            [
                plain(&row.name),
                row.change,
                row.interval,
                row.allowed,
                state,
            ]
        });
        let head = ["guardrail", "B/A", "interval", "allowed", ""];
        out.push_str("\n## Guardrails\n\n");
        out.push_str(&table(&head, "lrrrl", rows));
    }
    if let Some(proved) = evidence::proved(view) {
        out.push_str(&format!("\n{}\n", plain(&proved)));
    }
    let mut list = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("\n## {title}\n\n"));
        }
        for line in lines {
            out.push_str(&format!("- {line}\n"));
        }
    };
    let proved = proofs(view.trial).into_iter();
    list(
        "Are acknowledged writes durable?",
        proved
            .map(|(which, text, _)| format!("{}: {}", side(which), plain(&text)))
            .collect(),
    );
    let doubts = evidence::doubts(view);
    let doubt = |one: &evidence::Carried| {
        format!(
            "**{}** ({}): {} Instead: {} In {}.",
            plain(&one.doubt.code),
            one.doubt.severity.name(),
            stopped(&plain(&one.doubt.evidence)),
            stopped(&plain(&one.doubt.remedy)),
            carried(one)
        )
    };
    list("Doubts", doubts.iter().map(doubt).collect());
    let gone = evidence::left_out(view).into_iter();
    list(
        "Left out",
        gone.map(|(kind, reason, pairs)| {
            format!(
                "{}, {kind}: {}",
                evidence::pair_numbers(&pairs),
                plain(&reason)
            )
        })
        .collect(),
    );
    list(
        "Where",
        environment(view).iter().map(|line| plain(line)).collect(),
    );
    list(
        "What became of it",
        became(view).iter().map(|line| plain(line)).collect(),
    );
    out
}

fn figures(view: &View, out: &mut String) {
    let load = &view.trial.plan.load;
    out.push_str(
        "\n## Figures\n\nMedian over the pairs that count, with its interval; MB/s = 10⁶ bytes per \
         second; B/A is the centre of the pairs' own ratios.\n\n",
    );
    let rows = evidence::table(view).into_iter().map(|row| {
        let name = short_metric(load, row.metric);
        let name = if row.decides {
            format!("**{name}** (decides)")
        } else {
            name
        };
        let [now, changed] = [row.now, row.changed].map(|side| with_interval(&row, side));
        [name, now, changed, row_change(&row)]
    });
    out.push_str(&table(&["figure", "A", "B", "B/A"], "lrrr", rows));
}

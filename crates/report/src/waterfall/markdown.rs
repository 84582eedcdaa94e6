//! The waterfall as Markdown.

use super::words::{READING, added, factor, first, not_told, reconciled, together, whole};
use super::{View, lines};
use crate::markdown::doubts;
use crate::subject;
use assay_render::markdown::plain;
use assay_render::units::{NONE, latency};

/// GitHub-flavoured Markdown: a table for each workload, and what it says.
#[must_use]
pub fn markdown(view: &View) -> String {
    let run = view.run;
    let mut out = format!("# {}\n\n", plain(&subject::title(run)));
    out.push_str(&format!(
        "- {}: {}\n- target {}\n",
        plain(&subject::name(run)),
        plain(&subject::when(run)),
        plain(&view.ladder.target)
    ));
    if let Some(machine) = subject::machine(&run.facts) {
        out.push_str(&format!("- machine: {}\n", plain(&machine)));
    }
    for line in view.ladder.left_out.iter() {
        out.push_str(&format!("- left out: {}\n", plain(line)));
    }
    for remark in &run.remarks {
        out.push_str(&format!("- note: {}\n", plain(remark)));
    }
    for fall in view.falls {
        out.push_str(&format!("\n## {}\n\n", plain(&fall.description)));
        out.push_str("| layer | time per I/O | adds | factor |\n|---|--:|--:|--:|\n");
        for line in lines(view.ladder, fall) {
            let step = line.step;
            let told = if step.is_some_and(|step| !step.told) {
                " (not told)"
            } else {
                ""
            };
            out.push_str(&format!(
                "| {}{} | {} | {}{told} | {} |\n",
                "&nbsp;&nbsp;".repeat(line.depth),
                plain(&line.label),
                line.to.map_or(NONE.to_owned(), latency),
                step.map_or(String::new(), added),
                step.map_or(String::new(), |step| factor(step.ratio)),
            ));
        }
        out.push('\n');
        for one in &fall.wholes {
            out.push_str(&format!("- whole, {}\n", plain(&whole(view, one))));
            out.push_str(&format!(
                "  - look first: {}\n",
                plain(&first(view, fall, one))
            ));
            out.push_str(&format!("  - check: {}\n", plain(&reconciled(one))));
        }
        for line in not_told(view, fall) {
            out.push_str(&format!("- {}\n", plain(&line)));
        }
    }
    let together = together(view);
    if !together.is_empty() {
        out.push_str("\n## Cannot be separated here\n\n");
        for line in together {
            out.push_str(&format!("- {}\n", plain(&line)));
        }
    }
    out.push_str(&doubts(view.judged));
    out.push_str(&format!(
        "\n{READING} ± is half a 95 % interval over paired rounds.\n"
    ));
    out
}

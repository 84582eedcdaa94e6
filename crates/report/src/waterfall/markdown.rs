//! The Markdown report of a waterfall. Shared sentences are in `waterfall_text`.

use super::waterfall_text::{
    READING, describe_first_layer, describe_inseparable_layers, describe_unexplained_rest,
    describe_unmeasurable, format_added_time, format_factor, format_whole,
};
use super::{WaterfallView, list_lines};
use crate::markdown::render_doubts;
use crate::run_description;
use assay_render::markdown::escape_markdown;
use assay_render::units::{NONE, format_latency};

/// Renders GitHub-flavoured Markdown: a table and its conclusions for each workload.
#[must_use]
pub fn render_waterfall_markdown(view: &WaterfallView) -> String {
    let run = view.run;
    let mut out = format!(
        "# {}\n\n",
        escape_markdown(&run_description::format_title(run))
    );
    out.push_str(&format!(
        "- {}: {}\n- target {}\n",
        escape_markdown(&run_description::run_name(run)),
        escape_markdown(&run_description::format_time_and_progress(run)),
        escape_markdown(&view.ladder.target)
    ));
    if let Some(machine) = run_description::describe_machine(&run.facts) {
        out.push_str(&format!("- machine: {}\n", escape_markdown(&machine)));
    }
    for line in view.ladder.left_out.iter() {
        out.push_str(&format!("- left out: {}\n", escape_markdown(line)));
    }
    for remark in &run.remarks {
        out.push_str(&format!("- note: {}\n", escape_markdown(remark)));
    }
    for fall in view.falls {
        out.push_str(&format!("\n## {}\n\n", escape_markdown(&fall.description)));
        out.push_str("| layer | time per I/O | adds | factor |\n|---|--:|--:|--:|\n");
        for line in list_lines(view.ladder, fall) {
            let step = line.step;
            let mark = if step.is_some_and(|step| !step.told) {
                " (not told)"
            } else {
                ""
            };
            out.push_str(&format!(
                "| {}{} | {} | {}{mark} | {} |\n",
                "&nbsp;&nbsp;".repeat(line.depth),
                escape_markdown(&line.label),
                line.to.map_or(NONE.to_owned(), format_latency),
                step.map_or(String::new(), format_added_time),
                step.map_or(String::new(), |step| format_factor(step.ratio)),
            ));
        }
        out.push('\n');
        for one in &fall.wholes {
            out.push_str(&format!(
                "- whole, {}\n",
                escape_markdown(&format_whole(view, one))
            ));
            out.push_str(&format!(
                "  - look first: {}\n",
                escape_markdown(&describe_first_layer(view, fall, one))
            ));
            out.push_str(&format!(
                "  - check: {}\n",
                escape_markdown(&describe_unexplained_rest(one))
            ));
        }
        for line in describe_unmeasurable(view, fall) {
            out.push_str(&format!("- {}\n", escape_markdown(&line)));
        }
    }
    let together = describe_inseparable_layers(view);
    if !together.is_empty() {
        out.push_str("\n## Cannot be separated here\n\n");
        for line in together {
            out.push_str(&format!("- {}\n", escape_markdown(&line)));
        }
    }
    out.push_str(&render_doubts(view.judged));
    out.push_str(&format!(
        "\n{READING} ± is half a 95 % interval over paired rounds.\n"
    ));
    out
}

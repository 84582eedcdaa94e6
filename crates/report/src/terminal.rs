//! The terminal report of a run, readable at 80 columns and without colour. Terminal reports of trials, studies and
//! stacks are in their own modules.

mod comparison;
mod criteria_and_limits;
mod doubt_list;
mod grid_table;
mod result_tables;

pub(crate) use comparison::{change_word, format_plain_json, is_shown};
pub use comparison::{render_comparison, render_full_comparison};
pub(crate) use criteria_and_limits::{
    describe_burst, describe_criterion, group_by_limit, limit_name,
};
pub use doubt_list::render_doubts;
pub(crate) use doubt_list::{CarriedDoubt, collect_doubts};

use crate::result_grid;
use crate::run_description;
use assay_model::Run;
use assay_model::doubt::Validity;
use assay_model::result::{Judged, WorkloadResult};
use assay_render::Style;
use assay_render::text::{escape_line, wrap_lines};
use assay_render::units::format_count;

/// Colours text according to a validity.
fn tint_validity(style: Style, validity: Validity, text: &str) -> String {
    match validity {
        Validity::Valid => text.to_owned(),
        Validity::Suspect => style.paint("33", text),
        Validity::Void => style.paint("31", text),
    }
}

/// Renders a run as a table with intervals and doubts. A grid of block size × queue depth becomes one compact table for
/// each pattern.
#[must_use]
pub fn render_run(run: &Run, judged: &Judged, style: Style) -> String {
    render_text(run, judged, style, false)
}

/// Renders a run like [`render_run`], with one row for every workload and every sample.
#[must_use]
pub fn render_run_verbose(run: &Run, judged: &Judged, style: Style) -> String {
    render_text(run, judged, style, true)
}

fn render_text(run: &Run, judged: &Judged, style: Style, verbose: bool) -> String {
    let mut out = String::new();
    write_heading(run, &mut out, style);
    if judged.results.is_empty() {
        out.push_str("\nNothing was measured.\n");
        criteria_and_limits::write_failures(run, judged, &mut out, style);
        return out;
    }
    let (grids, rest) = match verbose {
        true => (Vec::new(), judged.results.iter().collect()),
        false => result_grid::split_into_grids(&run.plan, judged),
    };
    for target in list_targets(judged) {
        if list_targets(judged).len() > 1 {
            out.push_str(&format!(
                "\n{}\n",
                style.bold(&format!("on {}", escape_line(target)))
            ));
        }
        for grid in grids.iter().filter(|grid| grid.target == target) {
            grid_table::write_grid(grid, judged, &mut out, style);
        }
        let rows: Vec<&WorkloadResult> = rest
            .iter()
            .copied()
            .filter(|r| r.target == target)
            .collect();
        if !rows.is_empty() {
            result_tables::write_results_table(
                judged,
                &rows,
                &crate::run_description::rate_heading(&run.plan),
                &mut out,
                style,
            );
        }
        if verbose {
            result_tables::write_samples_table(
                judged,
                target,
                &crate::run_description::rate_heading(&run.plan),
                &mut out,
                style,
            );
        }
    }
    write_legend(judged, &mut out, style);
    criteria_and_limits::write_criteria(judged, &mut out, style);
    criteria_and_limits::write_limits(judged, !grids.is_empty(), &mut out, style);
    criteria_and_limits::write_steadiness(judged, &mut out, style);
    out.push_str(&render_doubts(judged, style));
    criteria_and_limits::write_failures(run, judged, &mut out, style);
    criteria_and_limits::write_next_commands(run, !grids.is_empty(), &mut out, style);
    out
}

/// Lists the target names in the order of the results.
pub(crate) fn list_targets(judged: &Judged) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for result in &judged.results {
        if !names.contains(&result.target.as_str()) {
            names.push(&result.target);
        }
    }
    names
}

fn write_heading(run: &Run, out: &mut String, style: Style) {
    for line in wrap_lines(&run_description::format_title(run), style.columns()) {
        out.push_str(&style.bold(&line));
        out.push('\n');
    }
    let mut say = |label: &str, text: &str| {
        let mut lines = String::new();
        style.write_paragraph(&mut lines, label, 10, text);
        out.push_str(&lines);
    };
    say(
        "  run",
        &format!(
            "{}: {}",
            run_description::run_name(run).trim_start_matches("run "),
            run_description::format_time_and_progress(run)
        ),
    );
    for target in &run.targets {
        say("  target", &escape_line(&target.name));
        if let Some(storage) = run_description::describe_storage(&run.facts, target) {
            say("", &storage);
        }
        if let Some(sizes) = run_description::describe_sizes(&run.facts, target) {
            say("", &sizes);
        }
    }
    if let Some(machine) = run_description::describe_machine(&run.facts) {
        say("  machine", &machine);
    }
    for remark in &run.remarks {
        say("  note", &escape_line(remark));
    }
}

fn write_legend(judged: &Judged, out: &mut String, style: Style) {
    let mut notes = vec!["MB/s = 10^6 bytes per second".to_owned()];
    let estimates = || {
        judged
            .results
            .iter()
            .flat_map(|result| result.estimates.values())
    };
    match estimates().filter_map(|estimate| estimate.interval).next() {
        Some(interval) => notes.push(format!(
            "± = half the {:.0} % interval over the rounds",
            interval.confidence * 100.0
        )),
        None if estimates().next().is_some() => {
            notes.push("one round only, so no figure has an interval".to_owned());
        }
        None => {}
    }
    let any = |validity| {
        judged
            .results
            .iter()
            .any(|result| result.validity == validity)
    };
    if any(Validity::Suspect) {
        notes.push("? = suspect, see Doubts".to_owned());
    }
    if any(Validity::Void) {
        notes.push("x = void: it did not measure what it claims".to_owned());
    }
    out.push('\n');
    for line in wrap_lines(&notes.join("; "), style.columns()) {
        out.push_str(&style.dim(&line));
        out.push('\n');
    }
}

/// Returns the mark beside the name of a result: empty if valid, `?` if suspect, `x` if void.
pub(crate) fn validity_mark(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "",
        Validity::Suspect => "?",
        Validity::Void => "x",
    }
}

/// Writes a heading within the text.
pub(crate) fn write_section_heading(title: &str, out: &mut String, style: Style) {
    out.push_str(&format!("\n{}\n", style.bold(title)));
}

/// Formats a shortened list of names, such as `a, b, c and 4 more`.
pub(crate) fn format_some_names(names: &[String], most: usize) -> String {
    if names.len() <= most + 1 {
        return names.join(", ");
    }
    format!(
        "{} and {} more",
        names[..most].join(", "),
        names.len() - most
    )
}

/// Formats how many of all workloads are meant, such as `5 of 6 workloads`.
pub(crate) fn format_share(n: usize, all: usize) -> String {
    match n == all && all > 1 {
        true => format!("all {}", format_count(all, "workload")),
        false => format!("{n} of {}", format_count(all, "workload")),
    }
}

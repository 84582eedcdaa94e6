//! Text for a terminal: readable at 80 columns, and without colour.

mod comparison;
mod doubts;
mod matrix;
mod outcome;
mod rows;

pub use comparison::{comparison, comparison_in_full};
pub(crate) use comparison::{plain, plain_change, shown};
pub use doubts::doubts;
pub(crate) use doubts::{Carried, carried};
pub(crate) use outcome::{burst_reason, by_limit, criterion_words, limit_name};

use crate::grid;
use crate::subject;
use assay_model::Run;
use assay_model::doubt::Validity;
use assay_model::result::{Judged, WorkloadResult};
use assay_render::Style;
use assay_render::text::{clean, wrap};
use assay_render::units::count;

/// Text in the colour of a validity.
fn tinted(style: Style, validity: Validity, text: &str) -> String {
    match validity {
        Validity::Valid => text.to_owned(),
        Validity::Suspect => style.paint("33", text),
        Validity::Void => style.paint("31", text),
    }
}

/// The run as a table with its intervals and doubts; grids of block size × queue depth as one
/// compact table for each pattern.
#[must_use]
pub fn run(run: &Run, judged: &Judged, style: Style) -> String {
    whole(run, judged, style, false)
}

/// Like [`run`], with one row for every workload and every sample, also where there are many.
#[must_use]
pub fn verbose(run: &Run, judged: &Judged, style: Style) -> String {
    whole(run, judged, style, true)
}

fn whole(run: &Run, judged: &Judged, style: Style, verbose: bool) -> String {
    let mut out = String::new();
    heading(run, &mut out, style);
    if judged.results.is_empty() {
        out.push_str("\nNothing was measured.\n");
        outcome::failures(run, judged, &mut out, style);
        return out;
    }
    let (grids, rest) = match verbose {
        true => (Vec::new(), judged.results.iter().collect()),
        false => grid::split(&run.plan, judged),
    };
    for target in targets(judged) {
        if targets(judged).len() > 1 {
            out.push_str(&format!(
                "\n{}\n",
                style.bold(&format!("on {}", clean(target)))
            ));
        }
        for grid in grids.iter().filter(|grid| grid.target == target) {
            matrix::table(grid, &mut out, style);
        }
        let rows: Vec<&WorkloadResult> = rest
            .iter()
            .copied()
            .filter(|r| r.target == target)
            .collect();
        if !rows.is_empty() {
            rows::table(
                judged,
                &rows,
                &crate::subject::rates(&run.plan),
                &mut out,
                style,
            );
        }
        if verbose {
            rows::samples(
                judged,
                target,
                &crate::subject::rates(&run.plan),
                &mut out,
                style,
            );
        }
    }
    legend(judged, &mut out, style);
    outcome::criteria(judged, &mut out, style);
    outcome::limits(judged, !grids.is_empty(), &mut out, style);
    outcome::steadiness(judged, &mut out, style);
    out.push_str(&doubts(judged, style));
    outcome::failures(run, judged, &mut out, style);
    outcome::next(run, !grids.is_empty(), &mut out, style);
    out
}

/// Target names in the order of the results.
pub(crate) fn targets(judged: &Judged) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for result in &judged.results {
        if !names.contains(&result.target.as_str()) {
            names.push(&result.target);
        }
    }
    names
}

fn heading(run: &Run, out: &mut String, style: Style) {
    for line in wrap(&subject::title(run), style.columns()) {
        out.push_str(&style.bold(&line));
        out.push('\n');
    }
    let mut say = |label: &str, text: &str| {
        let mut lines = String::new();
        style.paragraph(&mut lines, label, 10, text);
        out.push_str(&lines);
    };
    say(
        "  run",
        &format!(
            "{}: {}",
            subject::name(run).trim_start_matches("run "),
            subject::when(run)
        ),
    );
    for target in &run.targets {
        say("  target", &clean(&target.name));
        if let Some(storage) = subject::storage(&run.facts, target) {
            say("", &storage);
        }
        if let Some(sizes) = subject::sizes(&run.facts, target) {
            say("", &sizes);
        }
    }
    if let Some(machine) = subject::machine(&run.facts) {
        say("  machine", &machine);
    }
    for remark in &run.remarks {
        say("  note", &clean(remark));
    }
}

fn legend(judged: &Judged, out: &mut String, style: Style) {
    let mut said = vec!["MB/s = 10^6 bytes per second".to_owned()];
    let estimates = || {
        judged
            .results
            .iter()
            .flat_map(|result| result.estimates.values())
    };
    match estimates().filter_map(|estimate| estimate.interval).next() {
        Some(interval) => said.push(format!(
            "± = half the {:.0} % interval over the rounds",
            interval.confidence * 100.0
        )),
        None if estimates().next().is_some() => {
            said.push("one round only, so no figure has an interval".to_owned());
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
        said.push("? = suspect, see Doubts".to_owned());
    }
    if any(Validity::Void) {
        said.push("x = void: it did not measure what it claims".to_owned());
    }
    out.push('\n');
    for line in wrap(&said.join("; "), style.columns()) {
        out.push_str(&style.dim(&line));
        out.push('\n');
    }
}

/// The mark of a result beside its name: none, `?` or `x`.
pub(crate) fn mark(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "",
        Validity::Suspect => "?",
        Validity::Void => "x",
    }
}

/// A heading within the text.
pub(crate) fn section(title: &str, out: &mut String, style: Style) {
    out.push_str(&format!("\n{}\n", style.bold(title)));
}

/// `a, b, c and 4 more`.
pub(crate) fn some_names(names: &[String], most: usize) -> String {
    if names.len() <= most + 1 {
        return names.join(", ");
    }
    format!(
        "{} and {} more",
        names[..most].join(", "),
        names.len() - most
    )
}

/// `5 of 6 workloads`, for lists that speak of many.
pub(crate) fn share(n: usize, all: usize) -> String {
    match n == all && all > 1 {
        true => format!("all {}", count(all, "workload")),
        false => format!("{n} of {}", count(all, "workload")),
    }
}

//! Reports the change points in the results of repeated plans.

use super::describe_change;
use assay_model::drift::{Change, FigureChange};
use assay_model::result;
use assay_render::Style;
use assay_render::text::escape_line;
use assay_render::units::{format_plural, format_timestamp};
use std::fmt::Write as _;

/// Maximum number of causes in one list. Additional causes are only counted.
const CAUSES: usize = 6;

/// Formats the change points; empty if there are none.
#[must_use]
pub fn figures(all: &[FigureChange], style: Style) -> String {
    let mut out = String::new();
    let mut last: Option<(&Option<assay_model::Machine>, &str)> = None;
    for one in all {
        let place = (&one.machine, one.plan.as_str());
        if last.replace(place) != Some(place) {
            let gap = if out.is_empty() { "" } else { "\n" };
            let machine = one.machine.as_ref().map(|machine| {
                let name = machine.name.as_deref().unwrap_or(&machine.id);
                format!("{}  ", style.bold(&escape_line(name)))
            });
            let machine = machine.unwrap_or_default();
            let _ = writeln!(out, "{gap}{machine}figures of {}", escape_line(&one.plan));
        }
        let sign = match one.verdict {
            result::Change::Worse => '!',
            result::Change::Better => '+',
            result::Change::Same | result::Change::Unclear => '~',
        };
        style.write_paragraph(
            &mut out,
            &format!("  {sign} "),
            4,
            &escape_line(&describe_shift(one)),
        );
        style.write_paragraph(&mut out, "", 6, &count_runs(one));
        if one.causes.is_empty() {
            style.write_paragraph(
                &mut out,
                "",
                6,
                "nothing else is known to have changed then",
            );
        }
        for change in one.causes.iter().take(CAUSES) {
            let (sign, _) = describe_change(change);
            let text = escape_line(&describe_cause(change));
            style.write_paragraph(&mut out, &format!("      {sign} "), 8, &text);
        }
        if let Some(more @ 1..) = one.causes.len().checked_sub(CAUSES) {
            style.write_paragraph(&mut out, "", 6, &format!("and {more} more"));
        }
    }
    out
}

/// Formats the number of runs before and after the shift.
pub(super) fn count_runs(one: &FigureChange) -> String {
    format!(
        "{} before, {} since; noticed with that of {}",
        format_plural(one.runs[0] as u64, "run", "runs"),
        one.runs[1],
        format_timestamp(one.noticed)
    )
}

/// Formats a change of the machine that may have caused the shift, and the cause of this change.
pub(super) fn describe_cause(change: &Change) -> String {
    let (_, text) = describe_change(change);
    let cause = change.cause.as_deref();
    let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    format!("{text}{cause}")
}

/// Describes the figure, the size of its shift, and the time.
pub(super) fn describe_shift(one: &FigureChange) -> String {
    let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    let mut text = format!(
        "{} on {}: {} {} %",
        one.workload,
        one.target,
        one.metric,
        percent(one.ratio)
    );
    if let Some(range) = &one.interval {
        let _ = write!(
            text,
            " ({} to {} %)",
            percent(range.low),
            percent(range.high)
        );
    }
    let _ = write!(
        text,
        " since run {} of {}",
        one.run,
        format_timestamp(one.since)
    );
    let [first, last] = one.between;
    if first != last {
        let _ = write!(
            text,
            " (or with another of those from {} to {})",
            format_timestamp(first),
            format_timestamp(last)
        );
    }
    text
}

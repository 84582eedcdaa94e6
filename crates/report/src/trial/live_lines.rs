//! Lines printed while a trial runs, one for each pair. The report after the trial is in
//! `terminal`.

use super::trial_tables::{GuardState, format_cell};
use super::trial_text::{convert_interval, format_brief_ratio, metric_name, short_metric_name};
use assay_model::Nanos;
use assay_model::trial::{Judgement, PairOutcome, Side, TrialPlan, Verdict};
use assay_render::Style;
use assay_render::text::{escape_line, pad_left, pad_right, wrap_lines};
use assay_render::units::NONE;

/// A pair that was just measured.
#[derive(Clone, Copy, Debug)]
pub struct LivePair<'a> {
    /// Number of the pair, from 1.
    pub pair: u32,
    /// The side that was measured first in this pair.
    pub first: Side,
    /// Value of the deciding figure for A; `None` if it was not measured.
    pub now: Option<f64>,
    /// Value of the deciding figure for B; `None` if it was not measured.
    pub changed: Option<f64>,
    /// Whether the pair was measured, and its effect.
    pub outcome: &'a PairOutcome,
    /// Judgement over all pairs so far.
    pub judgement: &'a Judgement,
    /// Time until the next look (interim analysis); `None` after the last look.
    pub next_look: Option<Nanos>,
    /// Time until all pairs are measured or the budget is used up.
    pub at_most: Nanos,
}

const PAIR: usize = 4;
const FIGURE: usize = 9;
const CHANGE: usize = 8;
const SO_FAR: usize = 24;

/// Formats the heading above the lines: the figure and the columns.
#[must_use]
pub fn format_live_heading(plan: &TrialPlan, style: Style) -> String {
    let line = format!(
        "{} 1st  {} {} {}  {}  look, at most",
        pad_left("pair", PAIR),
        pad_left("A", FIGURE),
        pad_left("B", FIGURE),
        pad_left("change", CHANGE),
        pad_right("so far (90 % interval)", SO_FAR),
    );
    let figure = super::trial_text::capitalize(&metric_name(&plan.load, plan.metric));
    style.dim(&format!(
        "{figure}; A as it is, B changed, 1st measured first\n{line}"
    ))
}

/// Formats one pair in a line of at most 80 columns: its figures, its change, the judgement so far, and the remaining
/// time. The guardrails follow on the same line if there is room, else on a line of their own. The result does not end
/// with a newline.
#[must_use]
pub fn format_live_line(plan: &TrialPlan, live: &LivePair, style: Style) -> String {
    let figure =
        |value: Option<f64>| value.map_or(NONE.to_owned(), |v| format_cell(plan.metric, v));
    let first = match live.first {
        Side::Now => "A",
        Side::Changed => "B",
    };
    let lead = format!(
        "{}   {first}  {} {}",
        pad_left(&live.pair.to_string(), PAIR),
        pad_left(&figure(live.now), FIGURE),
        pad_left(&figure(live.changed), FIGURE),
    );
    let effect = match live.outcome {
        PairOutcome::Measured { effect, .. } => *effect,
        other => return format_left_out(&lead, other, style),
    };
    let ratio = super::convert_improvement(plan.metric, effect.exp());
    let time = match live.next_look {
        Some(next) => format!(
            "{}, {}",
            format_short_time(next),
            format_short_time(live.at_most)
        ),
        None => String::new(),
    };
    let line = format!(
        "{lead} {}  {}  {time}",
        pad_left(&format_brief_ratio(ratio), CHANGE),
        pad_right(&format_effect_so_far(plan, live.judgement), SO_FAR),
    );
    let line = match live.judgement.verdict {
        Verdict::Better => style.paint("32", line.trim_end()),
        Verdict::Worse | Verdict::Unsafe => style.paint("31", line.trim_end()),
        _ => line.trim_end().to_owned(),
    };
    match format_guards(plan, live.judgement) {
        Some(text) => format!(
            "{line}\n{}",
            style.dim(&format!("{}{text}", " ".repeat(PAIR + 2)))
        ),
        None => line,
    }
}

fn format_left_out(lead: &str, outcome: &PairOutcome, style: Style) -> String {
    let (word, why) = match outcome {
        PairOutcome::Measured { .. } => ("", ""),
        PairOutcome::FailedChanged { error } => ("failed with the change only", error.as_str()),
        PairOutcome::Failed { error } => ("failed, left out", error.as_str()),
        PairOutcome::Void { reason } => ("left out", reason.as_str()),
    };
    let room = style.columns().saturating_sub(PAIR + 2).max(20);
    let mut out = format!("{lead}  {}", style.paint("33", word));
    for line in wrap_lines(&escape_line(why), room) {
        out.push_str(&format!("\n{}{line}", " ".repeat(PAIR + 2)));
    }
    out
}

fn format_effect_so_far(plan: &TrialPlan, judgement: &Judgement) -> String {
    let Some(ratio) = judgement.ratio else {
        return NONE.to_owned();
    };
    let range = judgement.interval.map(|interval| {
        let (low, high) = convert_interval(plan.metric, interval.low, interval.high);
        let (low, high) = (format_brief_ratio(low), format_brief_ratio(high));
        match (low.strip_suffix(" %"), high.ends_with(" %")) {
            (Some(short), true) => format!(" ({short} to {high})"),
            _ => format!(" ({low} to {high})"),
        }
    });
    format!(
        "{}{}",
        format_brief_ratio(super::convert_improvement(plan.metric, ratio)),
        range.unwrap_or_default()
    )
}

/// Formats the guardrails at a look, such as `guardrails: p99 held, p99.9 not proved`. `None` before the first look.
fn format_guards(plan: &TrialPlan, judgement: &Judgement) -> Option<String> {
    let known = judgement
        .guards
        .iter()
        .any(|guard| guard.held || guard.broken);
    let words: Vec<String> = judgement
        .guards
        .iter()
        .map(|guard| {
            let name = short_metric_name(&plan.load, guard.metric);
            format!("{name} {}", GuardState::from_judgement(guard).word())
        })
        .collect();
    known.then(|| format!("guardrails: {}", words.join(", ")))
}

/// Formats a short time, such as `40 s`, `4 min`, `1 h 20`.
fn format_short_time(time: Nanos) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        s if s < 90 => format!("{s} s"),
        s if s < 5400 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {:02}", s / 3600, s % 3600 / 60),
    }
}

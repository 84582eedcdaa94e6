//! One line for each pair as it comes in.

use super::evidence::{GuardState, cell};
use super::words::{brief, ends, metric, short_metric};
use assay_model::Nanos;
use assay_model::trial::{Judgement, PairOutcome, Side, TrialPlan, Verdict};
use assay_render::Style;
use assay_render::text::{clean, left, right, wrap};
use assay_render::units::NONE;

/// A pair that was just measured.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// Its 1-based number.
    pub pair: u32,
    /// Which side was measured first.
    pub first: Side,
    /// The deciding figure of A.
    pub now: Option<f64>,
    /// The deciding figure of B.
    pub changed: Option<f64>,
    /// What the pair says.
    pub outcome: &'a PairOutcome,
    /// What all pairs so far amount to.
    pub judgement: &'a Judgement,
    /// Until the judge looks the next time; none when this was the last time.
    pub next_look: Option<Nanos>,
    /// Until all pairs are measured, or the budget is used up.
    pub at_most: Nanos,
}

const PAIR: usize = 4;
const FIGURE: usize = 9;
const CHANGE: usize = 8;
const SO_FAR: usize = 24;

/// The heading above the lines: what the figures are, and the columns.
#[must_use]
pub fn live_head(plan: &TrialPlan, style: Style) -> String {
    let line = format!(
        "{} 1st  {} {} {}  {}  look, at most",
        right("pair", PAIR),
        right("A", FIGURE),
        right("B", FIGURE),
        right("change", CHANGE),
        left("so far (90 % interval)", SO_FAR),
    );
    let figure = super::words::capital(&metric(&plan.load, plan.metric));
    style.dim(&format!(
        "{figure}; A as it is, B changed, 1st measured first\n{line}"
    ))
}

/// One pair in one line of at most 80 columns: its figures, its change, what all pairs so far say,
/// and the time left. What the guardrails say stands behind where there is room, else on a line of
/// its own. No newline at its end.
#[must_use]
pub fn live_line(plan: &TrialPlan, live: &Live, style: Style) -> String {
    let figure = |value: Option<f64>| value.map_or(NONE.to_owned(), |v| cell(plan.metric, v));
    let first = match live.first {
        Side::Now => "A",
        Side::Changed => "B",
    };
    let lead = format!(
        "{}   {first}  {} {}",
        right(&live.pair.to_string(), PAIR),
        right(&figure(live.now), FIGURE),
        right(&figure(live.changed), FIGURE),
    );
    let effect = match live.outcome {
        PairOutcome::Measured { effect, .. } => *effect,
        other => return left_out(&lead, other, style),
    };
    let ratio = super::change_of(plan.metric, effect.exp());
    let time = match live.next_look {
        Some(next) => format!("{}, {}", short(next), short(live.at_most)),
        None => String::new(),
    };
    let line = format!(
        "{lead} {}  {}  {time}",
        right(&brief(ratio), CHANGE),
        left(&so_far(plan, live.judgement), SO_FAR),
    );
    let line = match live.judgement.verdict {
        Verdict::Better => style.paint("32", line.trim_end()),
        Verdict::Worse | Verdict::Unsafe => style.paint("31", line.trim_end()),
        _ => line.trim_end().to_owned(),
    };
    match guards(plan, live.judgement) {
        Some(text) => format!(
            "{line}\n{}",
            style.dim(&format!("{}{text}", " ".repeat(PAIR + 2)))
        ),
        None => line,
    }
}

fn left_out(lead: &str, outcome: &PairOutcome, style: Style) -> String {
    let (word, why) = match outcome {
        PairOutcome::Measured { .. } => ("", ""),
        PairOutcome::FailedChanged { error } => ("failed with the change only", error.as_str()),
        PairOutcome::Failed { error } => ("failed, left out", error.as_str()),
        PairOutcome::Void { reason } => ("left out", reason.as_str()),
    };
    let room = style.columns().saturating_sub(PAIR + 2).max(20);
    let mut out = format!("{lead}  {}", style.paint("33", word));
    for line in wrap(&clean(why), room) {
        out.push_str(&format!("\n{}{line}", " ".repeat(PAIR + 2)));
    }
    out
}

fn so_far(plan: &TrialPlan, judgement: &Judgement) -> String {
    let Some(ratio) = judgement.ratio else {
        return NONE.to_owned();
    };
    let range = judgement.interval.map(|interval| {
        let (low, high) = ends(plan.metric, interval.low, interval.high);
        let (low, high) = (brief(low), brief(high));
        match (low.strip_suffix(" %"), high.ends_with(" %")) {
            (Some(short), true) => format!(" ({short} to {high})"),
            _ => format!(" ({low} to {high})"),
        }
    });
    format!(
        "{}{}",
        brief(super::change_of(plan.metric, ratio)),
        range.unwrap_or_default()
    )
}

/// Guardrails at a look: `guardrails: p99 held, p99.9 not proved`. None before there is anything to say.
fn guards(plan: &TrialPlan, judgement: &Judgement) -> Option<String> {
    let known = judgement
        .guards
        .iter()
        .any(|guard| guard.held || guard.broken);
    let words: Vec<String> = judgement
        .guards
        .iter()
        .map(|guard| {
            let name = short_metric(&plan.load, guard.metric);
            format!("{name} {}", GuardState::of(guard).word())
        })
        .collect();
    known.then(|| format!("guardrails: {}", words.join(", ")))
}

/// A time of few characters: `40 s`, `4 min`, `1 h 20`.
fn short(time: Nanos) -> String {
    let seconds = time.as_secs_f64().round() as u64;
    match seconds {
        s if s < 90 => format!("{s} s"),
        s if s < 5400 => format!("{} min", s.div_ceil(60)),
        s => format!("{} h {:02}", s / 3600, s % 3600 / 60),
    }
}

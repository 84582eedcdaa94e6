//! The plan of a trial, shown before anything is changed. The lines of a running trial are in
//! `live_lines`.

use super::change_text;
use super::trial_text::{format_error_rate, format_share, metric_name};
use crate::terminal::write_section_heading;
use assay_model::Nanos;
use assay_model::advice::{RiskLevel, SafetyRule};
use assay_model::trial::TrialPlan;
use assay_render::Style;
use assay_render::text::{escape_line, wrap_lines};
use assay_render::units::format_count;

/// What is known about a trial before its first pair, as lines to print.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialPreview<'a> {
    /// The current value of the setting, if it was read.
    pub now: Option<&'a str>,
    /// Why the advice applies to this machine, or which facts are unknown.
    pub applies: &'a [String],
    /// The measured noise, and the number of pairs that the trial will probably take.
    pub forecast: &'a [String],
    /// Minimum number of pairs for a verdict.
    pub least_pairs: u32,
}

/// Renders the full plan: what changes, how the change is reverted, what is measured, what decides, how long the trial
/// takes, and how often its verdict is wrong.
#[must_use]
pub fn render_plan(plan: &TrialPlan, before: &TrialPreview, style: Style) -> String {
    let mut out = String::new();
    let title = format!(
        "{}: {}",
        escape_line(&plan.advice),
        escape_line(&plan.title)
    );
    for line in wrap_lines(&title, style.columns()) {
        out.push_str(&format!("{}\n", style.bold(&line)));
    }
    let say = |out: &mut String, label: &str, text: &str| {
        style.write_paragraph(out, &format!("  {label}"), 15, text);
    };
    if plan.aa {
        write_section_heading(
            "Nothing is changed: both sides are the same",
            &mut out,
            style,
        );
        say(
            &mut out,
            "why",
            "what differs all the same is the noise of this machine under this load",
        );
    }
    write_change(plan, before, &mut out, style);
    if !before.applies.is_empty() {
        write_section_heading("Does it apply here?", &mut out, style);
        for line in before.applies {
            style.write_paragraph(&mut out, "  -", 4, &escape_line(line));
        }
    }
    write_section_heading("What is measured", &mut out, style);
    if !plan.target.is_empty() {
        say(&mut out, "target", &escape_line(&plan.target));
    }
    say(&mut out, "load", &escape_line(&plan.load.describe()));
    say(
        &mut out,
        "each pair",
        &format!(
            "A and B one after the other, a coin says which first; {} each, after {} of load that does not count",
            plan.slot, plan.washout
        ),
    );
    write_section_heading("What decides", &mut out, style);
    say(&mut out, "figure", &describe_decision(plan));
    if plan.guards.is_empty() {
        say(&mut out, "guardrails", "none");
    }
    for (i, guard) in plan.guards.iter().enumerate() {
        let text = format!(
            "{} must not get worse by {} or more",
            metric_name(&plan.load, guard.metric),
            format_share(guard.margin)
        );
        say(&mut out, if i == 0 { "guardrails" } else { "" }, &text);
    }
    if let Some(SafetyRule::AcknowledgedWrites) = plan.safety {
        say(
            &mut out,
            "safety",
            "writes that were acknowledged as durable must be durable, which a flush test finds \
             out; no gain outweighs it",
        );
    }
    say(&mut out, "error", &describe_error_level(plan));
    write_section_heading("How long it takes", &mut out, style);
    say(&mut out, "at least", &describe_least_time(plan, before));
    say(&mut out, "at most", &describe_most_time(plan));
    for line in before.forecast {
        style.write_paragraph(&mut out, "  -", 4, &escape_line(line));
    }
    out
}

/// Maximum number of lines of an entry in [`render_brief_plan`].
const BRIEF: usize = 2;

/// Renders the plan in at most 20 lines: what changes, what is measured, what decides, and how long the trial takes. An
/// entry of more than two lines ends with an ellipsis; [`render_plan`] prints it in full.
#[must_use]
pub fn render_brief_plan(plan: &TrialPlan, before: &TrialPreview, style: Style) -> String {
    let mut out = String::new();
    let title = format!(
        "{}: {}",
        escape_line(&plan.advice),
        escape_line(&plan.title)
    );
    let lines = wrap_lines(&title, style.columns());
    for line in lines.iter().take(BRIEF) {
        out.push_str(&format!("{}\n", style.bold(line)));
    }
    let mut say = |label: &str, text: &str| {
        let mut entry = String::new();
        style.write_paragraph(&mut entry, &format!("  {label}"), 15, text);
        let lines: Vec<&str> = entry.lines().collect();
        for (at, line) in lines.iter().take(BRIEF).enumerate() {
            let mut line = (*line).to_owned();
            if at + 1 == BRIEF && lines.len() > BRIEF {
                let room = style.columns().saturating_sub(2);
                while line.chars().count() > room
                    && let Some(word) = line.trim_end().rfind(' ')
                {
                    line.truncate(word);
                }
                line.push_str(" …");
            }
            out.push_str(&line);
            out.push('\n');
        }
    };
    let described = change_text::describe_change(&plan.change, before.now);
    match (&described.now, plan.aa) {
        (_, true) => say(
            "no change",
            "both sides are as it is now: what differs is noise",
        ),
        (Some(now), false) => say(
            "change",
            &format!("{}: {now} → {}", described.what, described.changed),
        ),
        (None, false) => say(
            "change",
            &format!("{}: {}", described.what, described.changed),
        ),
    }
    say(
        "touched",
        &format!("{}; {}", described.touches, described.undo),
    );
    if !plan.aa && plan.risk != RiskLevel::None {
        say("risk", risk_word(plan.risk));
    }
    let unknown: Vec<&str> = (before.applies.iter())
        .map(String::as_str)
        .filter(|line| line.starts_with("not known"))
        .collect();
    if !unknown.is_empty() {
        say("applies here?", &escape_line(&unknown.join("; ")));
    }
    say("load", &escape_line(&plan.load.describe()));
    say("decides", &describe_decision(plan));
    let guards: Vec<String> = plan
        .guards
        .iter()
        .map(|guard| {
            format!(
                "{} {}",
                metric_name(&plan.load, guard.metric),
                format_share(guard.margin)
            )
        })
        .collect();
    if !guards.is_empty() {
        say(
            "guardrails",
            &format!("not worse by: {}", guards.join(", ")),
        );
    }
    say(
        "takes",
        &format!(
            "{} to {}",
            describe_least_time(plan, before),
            describe_most_time(plan)
        ),
    );
    say("", "--dry-run shows the whole plan");
    out
}

fn write_change(plan: &TrialPlan, before: &TrialPreview, out: &mut String, style: Style) {
    let say = |out: &mut String, label: &str, text: &str| {
        style.write_paragraph(out, &format!("  {label}"), 15, text);
    };
    let described = change_text::describe_change(&plan.change, before.now);
    if !plan.aa {
        write_section_heading("What would change", out, style);
    }
    say(out, "what", &described.what);
    if let Some(now) = &described.now {
        say(out, "A, as it is", now);
    }
    if !plan.aa {
        say(out, "B, changed", &described.changed);
    }
    say(out, "touched", &described.touches);
    say(out, "undo", &described.undo);
    if !plan.aa {
        say(out, "risk", risk_word(plan.risk));
        say(out, "predicted", &escape_line(&plan.predicts));
    }
}

fn risk_word(level: RiskLevel) -> &'static str {
    match level {
        RiskLevel::None => "none outside what assay makes itself",
        RiskLevel::Low => "low: a setting that is reverted at once",
        RiskLevel::Service => "a service may stop working until the setting is back",
        RiskLevel::Lockout => "you may lock yourself out: keep a second way in open",
        RiskLevel::DataLoss => "data that was acknowledged may be lost while B is in effect",
    }
}

fn describe_decision(plan: &TrialPlan) -> String {
    let way = match plan.metric.quantity.is_latency() {
        true => "less is better",
        false => "more is better",
    };
    format!(
        "{}; {way}, and less than {} either way does not matter",
        metric_name(&plan.load, plan.metric),
        format_share(plan.margin)
    )
}

fn describe_error_level(plan: &TrialPlan) -> String {
    format!(
        "a change that does nothing is called better in at most {} of such trials, however the \
         machine's noise looks",
        format_error_rate(plan.alpha)
    )
}

/// Computes the time of `pairs` pairs, without the time to apply the change.
fn compute_time(plan: &TrialPlan, pairs: u32) -> Nanos {
    let pair = plan.slot.0.saturating_add(plan.washout.0).saturating_mul(2);
    Nanos(pair.saturating_mul(u64::from(pairs)))
}

fn describe_least_time(plan: &TrialPlan, before: &TrialPreview) -> String {
    let pairs = before.least_pairs.min(plan.max_pairs);
    format!(
        "{}, {}",
        format_count(pairs as usize, "pair"),
        compute_time(plan, pairs)
    )
}

fn describe_most_time(plan: &TrialPlan) -> String {
    let all = format!(
        "{}, {}",
        format_count(plan.max_pairs as usize, "pair"),
        plan.longest()
    );
    match plan.budget.filter(|budget| *budget < plan.longest()) {
        Some(budget) => format!("{budget}, the budget (without it {all})"),
        None => all,
    }
}

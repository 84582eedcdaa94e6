//! What is shown before anything is done.

use super::change;
use super::words::{metric, rate, share};
use crate::terminal::section;
use assay_model::Nanos;
use assay_model::advice::{RiskLevel, SafetyRule};
use assay_model::trial::TrialPlan;
use assay_render::Style;
use assay_render::text::{clean, wrap};
use assay_render::units::count;

/// What is known before the first pair, each line ready to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Before<'a> {
    /// The value that would be changed, as it was read.
    pub now: Option<&'a str>,
    /// Why the advice applies here, or what is not known.
    pub applies: &'a [String],
    /// The noise that was seen and how many pairs it will probably take.
    pub forecast: &'a [String],
    /// Pairs after which the earliest verdict is possible.
    pub least_pairs: u32,
}

/// The plan for a stranger: what would change and how it is taken back, what is measured, what
/// decides, how long it takes and how often it errs.
#[must_use]
pub fn plan_text(plan: &TrialPlan, before: &Before, style: Style) -> String {
    let mut out = String::new();
    let title = format!("{}: {}", clean(&plan.advice), clean(&plan.title));
    for line in wrap(&title, style.columns()) {
        out.push_str(&format!("{}\n", style.bold(&line)));
    }
    let say = |out: &mut String, label: &str, text: &str| {
        style.paragraph(out, &format!("  {label}"), 15, text);
    };
    if plan.aa {
        section(
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
    what(plan, before, &mut out, style);
    if !before.applies.is_empty() {
        section("Does it apply here?", &mut out, style);
        for line in before.applies {
            style.paragraph(&mut out, "  -", 4, &clean(line));
        }
    }
    section("What is measured", &mut out, style);
    if !plan.target.is_empty() {
        say(&mut out, "target", &clean(&plan.target));
    }
    say(&mut out, "load", &clean(&plan.load.describe()));
    say(
        &mut out,
        "each pair",
        &format!(
            "A and B one after the other, a coin says which first; {} each, after {} of load that does not count",
            plan.slot, plan.washout
        ),
    );
    section("What decides", &mut out, style);
    say(&mut out, "figure", &decides(plan));
    if plan.guards.is_empty() {
        say(&mut out, "guardrails", "none");
    }
    for (i, guard) in plan.guards.iter().enumerate() {
        let text = format!(
            "{} must not get worse by {} or more",
            metric(&plan.load, guard.metric),
            share(guard.margin)
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
    say(&mut out, "error", &error(plan));
    section("How long it takes", &mut out, style);
    say(&mut out, "at least", &least(plan, before));
    say(&mut out, "at most", &most(plan));
    for line in before.forecast {
        style.paragraph(&mut out, "  -", 4, &clean(line));
    }
    out
}

/// Lines that an entry of [`plan_brief`] takes at most.
const BRIEF: usize = 2;

/// The plan in 20 lines or fewer: what would change, what is measured and what decides, how long it takes.
/// An entry that takes more than two lines ends with an ellipsis; [`plan_text`] has all of it.
#[must_use]
pub fn plan_brief(plan: &TrialPlan, before: &Before, style: Style) -> String {
    let mut out = String::new();
    let title = format!("{}: {}", clean(&plan.advice), clean(&plan.title));
    let lines = wrap(&title, style.columns());
    for line in lines.iter().take(BRIEF) {
        out.push_str(&format!("{}\n", style.bold(line)));
    }
    let mut say = |label: &str, text: &str| {
        let mut entry = String::new();
        style.paragraph(&mut entry, &format!("  {label}"), 15, text);
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
    let told = change::told(&plan.change, before.now);
    match (&told.now, plan.aa) {
        (_, true) => say(
            "no change",
            "both sides are as it is now: what differs is noise",
        ),
        (Some(now), false) => say(
            "change",
            &format!("{}: {now} → {}", told.what, told.changed),
        ),
        (None, false) => say("change", &format!("{}: {}", told.what, told.changed)),
    }
    say("touched", &format!("{}; {}", told.touches, told.undo));
    if !plan.aa && plan.risk != RiskLevel::None {
        say("risk", risk(plan.risk));
    }
    let unknown: Vec<&str> = (before.applies.iter())
        .map(String::as_str)
        .filter(|line| line.starts_with("not known"))
        .collect();
    if !unknown.is_empty() {
        say("applies here?", &clean(&unknown.join("; ")));
    }
    say("load", &clean(&plan.load.describe()));
    say("decides", &decides(plan));
    let guards: Vec<String> = plan
        .guards
        .iter()
        .map(|guard| {
            format!(
                "{} {}",
                metric(&plan.load, guard.metric),
                share(guard.margin)
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
        &format!("{} to {}", least(plan, before), most(plan)),
    );
    say("", "--dry-run shows the whole plan");
    out
}

fn what(plan: &TrialPlan, before: &Before, out: &mut String, style: Style) {
    let say = |out: &mut String, label: &str, text: &str| {
        style.paragraph(out, &format!("  {label}"), 15, text);
    };
    let told = change::told(&plan.change, before.now);
    if !plan.aa {
        section("What would change", out, style);
    }
    say(out, "what", &told.what);
    if let Some(now) = &told.now {
        say(out, "A, as it is", now);
    }
    if !plan.aa {
        say(out, "B, changed", &told.changed);
    }
    say(out, "touched", &told.touches);
    say(out, "taken back", &told.undo);
    if !plan.aa {
        say(out, "risk", risk(plan.risk));
        say(out, "predicted", &clean(&plan.predicts));
    }
}

fn risk(level: RiskLevel) -> &'static str {
    match level {
        RiskLevel::None => "none outside what assay makes itself",
        RiskLevel::Low => "low: a setting that is set back at once",
        RiskLevel::Service => "a service may stop working until the setting is back",
        RiskLevel::Lockout => "you may lock yourself out: keep a second way in open",
        RiskLevel::DataLoss => "data that was acknowledged may be lost while B is in effect",
    }
}

fn decides(plan: &TrialPlan) -> String {
    let way = match plan.metric.quantity.is_latency() {
        true => "less is better",
        false => "more is better",
    };
    format!(
        "{}; {way}, and less than {} either way does not matter",
        metric(&plan.load, plan.metric),
        share(plan.margin)
    )
}

fn error(plan: &TrialPlan) -> String {
    format!(
        "a change that does nothing is called better in at most {} of such trials, however the \
         machine's noise looks",
        rate(plan.alpha)
    )
}

/// Time of so many pairs, without making what is measured.
fn time(plan: &TrialPlan, pairs: u32) -> Nanos {
    let pair = plan.slot.0.saturating_add(plan.washout.0).saturating_mul(2);
    Nanos(pair.saturating_mul(u64::from(pairs)))
}

fn least(plan: &TrialPlan, before: &Before) -> String {
    let pairs = before.least_pairs.min(plan.max_pairs);
    format!("{}, {}", count(pairs as usize, "pair"), time(plan, pairs))
}

fn most(plan: &TrialPlan) -> String {
    let all = format!(
        "{}, {}",
        count(plan.max_pairs as usize, "pair"),
        plan.longest()
    );
    match plan.budget.filter(|budget| *budget < plan.longest()) {
        Some(budget) => format!("{budget}, the budget (without it {all})"),
        None => all,
    }
}

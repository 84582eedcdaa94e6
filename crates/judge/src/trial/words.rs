//! The verdict in one sentence, with the figures it rests on.

use super::failures::Failures;
use super::flips::floor;
use super::forecast::smallest_effect;
use super::rule::Rule;
use super::verdict::{Decision, Why};
use assay_model::result::Interval;
use assay_model::trial::{Judgement, MAX_PAIRS, PairOutcome, Verdict};

/// All that a sentence may speak of.
pub(super) struct Case<'a> {
    pub rule: &'a Rule,
    pub judgement: &'a Judgement,
    pub failures: &'a Failures,
    pub decision: Decision,
    /// All pairs were tried.
    pub over: bool,
    pub pairs: &'a [PairOutcome],
}

pub(super) fn reason(case: &Case) -> String {
    let judgement = case.judgement;
    let ratio = judgement.ratio.unwrap_or(1.0);
    let seen = format!("{}{}", percent(ratio), within(judgement.interval));
    let pairs = count(judgement.pairs, "pair");
    let margin = share(case.rule.margin);
    if case.decision.false_alarm {
        return format!(
            "both sides are the same, yet {pairs} told them apart: {seen}; a false alarm, as chance gives in at most {} of such trials, or something that tells the sides apart besides the change",
            share(2.0 * case.rule.level())
        );
    }
    match (case.decision.verdict, case.decision.why) {
        (Verdict::Unsafe, Why::Safety) => case.rule.safety_broken.clone().unwrap_or_default(),
        (Verdict::Unsafe, _) => format!(
            "the load failed {} only with the change and {} otherwise, which is no chance; last: {}",
            count(case.failures.changed, "time"),
            count(case.failures.other, "time"),
            case.failures.said.as_deref().unwrap_or("no reason given")
        ),
        (Verdict::Worse, Why::Guard(at)) => {
            let guard = &judgement.guards[at];
            format!(
                "{} got worse by {}{} in {pairs}; at most {} was allowed",
                guard.metric,
                share(guard.worsening - 1.0),
                within(guard.interval),
                share(guard.margin)
            )
        }
        (Verdict::Worse, Why::Total) => format!(
            "{} in {pairs}, though the typical pair is {seen}",
            in_total(judgement)
        ),
        (Verdict::Worse, Why::Negligible) => {
            format!("{seen} in {pairs}: a loss, though one below the {margin} that matter")
        }
        (Verdict::Worse, _) => format!("{seen} in {pairs}"),
        (Verdict::Better, _) => {
            let held = match judgement.guards.len() {
                0 => String::new(),
                1 => "; the guardrail held".to_owned(),
                n => format!("; all {n} guardrails held"),
            };
            format!("{seen} in {pairs}{held}{}", beside_better(case))
        }
        (Verdict::NoPracticalDifference, Why::Negligible) => {
            format!("{seen} in {pairs}: a gain, but one below the {margin} that matter")
        }
        (Verdict::NoPracticalDifference, _) => {
            format!("{seen} in {pairs}: less than the {margin} that matter, either way")
        }
        (Verdict::Undecided, _) => undecided(case, &seen, &pairs),
    }
}

fn undecided(case: &Case, seen: &str, pairs: &str) -> String {
    let (rule, judgement) = (case.rule, case.judgement);
    let planned = rule.max_pairs.min(MAX_PAIRS) as usize;
    if judgement.pairs == 0 {
        return match case.pairs.last().and_then(why_left_out) {
            Some(why) => format!(
                "no pair could be measured, {} left out; last: {why}",
                judgement.left_out
            ),
            None => "nothing was measured yet".to_owned(),
        };
    }
    if !rule.open_ended() && floor(planned) > rule.level() {
        return format!(
            "{seen} in {pairs}; {} cannot give an error below 1 in {:.0}, so no verdict is possible",
            count(planned as u32, "pair"),
            1.0 / floor(planned)
        );
    }
    let mut out = match judgement.interval {
        Some(_) => format!("{seen} after {pairs}"),
        None => format!("{seen} after {pairs}, too few for an interval"),
    };
    match case.decision.why {
        Why::GuardsOpen => {
            let open = judgement.guards.iter().filter(|guard| !guard.held);
            let open: Vec<String> = open
                .map(|guard| format!("{}{}", guard.metric, within(guard.interval)))
                .collect();
            out.push_str(&format!(
                "; better, but not yet proved within its margin: {}",
                open.join(", ")
            ));
        }
        Why::TotalOpen => out.push_str(&format!(
            "; better in the typical pair, but {}: one slow slot more would eat the gain",
            in_total(judgement)
        )),
        Why::TotalDiffers => out.push_str(&format!(
            "; the typical pair is the same, but {}",
            in_total(judgement)
        )),
        Why::UnexplainedFailures => out.push_str(&format!(
            "; better, but the load failed {} only with the change: too few to blame it, too many to keep it; last: {}",
            count(case.failures.changed, "time"),
            case.failures.said.as_deref().unwrap_or("no reason given")
        )),
        Why::Unproved => {
            let unproved = rule.unproved.as_deref().unwrap_or_default();
            out.push_str(&format!("; better, but {unproved}"));
        }
        _ => {}
    }
    if rule.aa
        && let Some(sd) = judgement.pair_sd
    {
        out.push_str(&format!(
            "; the noise of a pair is {}: {MAX_PAIRS} pairs would show an effect of about {}",
            share(sd.exp_m1()),
            share(smallest_effect(sd, MAX_PAIRS).exp_m1())
        ));
    } else if let Some(forecast) = judgement.forecast.filter(|n| *n > judgement.pairs) {
        out.push_str(&format!(
            "; at this noise an answer takes about {}",
            count(forecast, "pair")
        ));
    }
    if case.over && rule.aa {
        out.push_str("; both sides are the same");
    }
    out
}

/// What a typical pair does not show of a change that is better: the total where a latency decides, and stalls
/// on one side alone.
fn beside_better(case: &Case) -> String {
    let mut out = String::new();
    if case.rule.by_latency {
        out.push_str(&format!("; {}", in_total(case.judgement)));
    }
    let stalled = case.judgement.total.map(|total| total.stalled);
    if let Some([0, changed]) = stalled
        && changed > 0
    {
        out.push_str(&format!(
            "; stalls in {} with the change, in none without",
            count(changed, "slot")
        ));
    }
    out
}

/// `in total 2.0 % less work was done in the same time, and the same work took 14.0 % longer`.
fn in_total(judgement: &Judgement) -> String {
    let Some(total) = judgement.total else {
        return "the total is not known".to_owned();
    };
    let told = |ratio: f64, more: &str, less: &str| match ratio - 1.0 {
        change if change < 0.0 => format!("{} {less}", share(-change)),
        change => format!("{} {more}", share(change)),
    };
    format!(
        "in total {} was done in the same time, and the same work took {}",
        told(total.work, "more work", "less work"),
        told(total.time, "longer", "shorter")
    )
}

fn why_left_out(pair: &PairOutcome) -> Option<&str> {
    match pair {
        PairOutcome::Measured { .. } => None,
        PairOutcome::FailedChanged { error } | PairOutcome::Failed { error } => Some(error),
        PairOutcome::Void { reason } => Some(reason),
    }
}

/// ` (90 % interval −1.2 % to +3.4 %)`.
fn within(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |interval| {
        format!(
            " ({} interval {} to {})",
            share(interval.confidence),
            signed(interval.low),
            signed(interval.high)
        )
    })
}

/// A ratio for people: `12.3 % better`.
fn percent(ratio: f64) -> String {
    match (ratio - 1.0) * 100.0 {
        change if change >= 0.05 => format!("{} better", share(ratio - 1.0)),
        change if change <= -0.05 => format!("{} worse", share(1.0 - ratio)),
        _ => "no change".to_owned(),
    }
}

fn signed(ratio: f64) -> String {
    let change = ratio - 1.0;
    let sign = if change < 0.0 { '−' } else { '+' };
    format!("{sign}{}", share(change.abs()))
}

/// A share in percent: 0.35 %, 3.1 %, 348 %; what is whole is written so.
fn share(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p >= 99.95 || (p - p.round()).abs() < 1e-9 => format!("{percent:.0} %"),
        p if p >= 0.995 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

fn count(n: u32, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

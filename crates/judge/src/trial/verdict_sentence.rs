//! Formats the sentences that give the reason for a verdict, with the figures. `verdict` decides the verdict itself.

use super::forecast::forecast_smallest_effect;
use super::one_sided_failures::TrialFailures;
use super::sign_flips::compute_smallest_error;
use super::trial_rule::TrialRule;
use super::verdict::{TrialDecision, VerdictGround};
use assay_model::result::Interval;
use assay_model::trial::{Judgement, MAX_PAIRS, PairOutcome, Verdict};

/// Everything that a sentence may contain.
pub(super) struct VerdictCase<'a> {
    pub rule: &'a TrialRule,
    pub judgement: &'a Judgement,
    pub failures: &'a TrialFailures,
    pub decision: TrialDecision,
    /// Whether all pairs were tried.
    pub over: bool,
    pub pairs: &'a [PairOutcome],
}

pub(super) fn describe_reason(case: &VerdictCase) -> String {
    let judgement = case.judgement;
    let ratio = judgement.ratio.unwrap_or(1.0);
    let seen = format!(
        "{}{}",
        format_percent_change(ratio),
        format_interval(judgement.interval)
    );
    let pairs = format_count(judgement.pairs, "pair");
    let margin = format_share(case.rule.margin);
    if case.decision.false_alarm {
        return format!(
            "both sides are the same, yet {pairs} told them apart: {seen}; a false alarm, as chance \
             gives in at most {} of such trials, or something that tells the sides apart besides the change",
            format_share(2.0 * case.rule.usable_level())
        );
    }
    match (case.decision.verdict, case.decision.why) {
        (Verdict::Unsafe, VerdictGround::Safety) => {
            case.rule.safety_broken.clone().unwrap_or_default()
        }
        (Verdict::Unsafe, _) => format!(
            "the load failed {} only with the change and {} otherwise, which is no chance; last: {}",
            format_count(case.failures.changed, "time"),
            format_count(case.failures.other, "time"),
            case.failures
                .last_error
                .as_deref()
                .unwrap_or("no reason given")
        ),
        (Verdict::Worse, VerdictGround::Guard(at)) => {
            let guard = &judgement.guards[at];
            format!(
                "{} got worse by {}{} in {pairs}; at most {} was allowed",
                guard.metric,
                format_share(guard.worsening - 1.0),
                format_interval(guard.interval),
                format_share(guard.margin)
            )
        }
        (Verdict::Worse, VerdictGround::Total) => format!(
            "{} in {pairs}, though the typical pair is {seen}",
            describe_total(judgement)
        ),
        (Verdict::Worse, VerdictGround::Negligible) => {
            format!("{seen} in {pairs}: a loss, though one below the {margin} that matter")
        }
        (Verdict::Worse, _) => format!("{seen} in {pairs}"),
        (Verdict::Better, _) => {
            let held = match judgement.guards.len() {
                0 => String::new(),
                1 => "; the guardrail held".to_owned(),
                n => format!("; all {n} guardrails held"),
            };
            format!("{seen} in {pairs}{held}{}", describe_limits_of_gain(case))
        }
        (Verdict::NoPracticalDifference, VerdictGround::Negligible) => {
            format!("{seen} in {pairs}: a gain, but one below the {margin} that matter")
        }
        (Verdict::NoPracticalDifference, _) => {
            format!("{seen} in {pairs}: less than the {margin} that matter, either way")
        }
        (Verdict::Undecided, _) => describe_undecided(case, &seen, &pairs),
    }
}

fn describe_undecided(case: &VerdictCase, seen: &str, pairs: &str) -> String {
    let (rule, judgement) = (case.rule, case.judgement);
    let planned = rule.max_pairs.min(MAX_PAIRS) as usize;
    if judgement.pairs == 0 {
        return match case.pairs.last().and_then(find_reason_left_out) {
            Some(why) => format!(
                "no pair could be measured, {} left out; last: {why}",
                judgement.left_out
            ),
            None => "nothing was measured yet".to_owned(),
        };
    }
    if !rule.is_open_ended() && compute_smallest_error(planned) > rule.usable_level() {
        return format!(
            "{seen} in {pairs}; {} cannot give an error below 1 in {:.0}, so no verdict is possible",
            format_count(planned as u32, "pair"),
            1.0 / compute_smallest_error(planned)
        );
    }
    let mut out = match judgement.interval {
        Some(_) => format!("{seen} after {pairs}"),
        None => format!("{seen} after {pairs}, too few for an interval"),
    };
    match case.decision.why {
        VerdictGround::GuardsOpen => {
            let open = judgement.guards.iter().filter(|guard| !guard.held);
            let open: Vec<String> = open
                .map(|guard| format!("{}{}", guard.metric, format_interval(guard.interval)))
                .collect();
            out.push_str(&format!(
                "; better, but not yet proved within its margin: {}",
                open.join(", ")
            ));
        }
        VerdictGround::TotalOpen => out.push_str(&format!(
            "; better in the typical pair, but {}: one slow slot more would eat the gain",
            describe_total(judgement)
        )),
        VerdictGround::TotalDiffers => out.push_str(&format!(
            "; the typical pair is the same, but {}",
            describe_total(judgement)
        )),
        VerdictGround::UnexplainedFailures => out.push_str(&format!(
            "; better, but the load failed {} only with the change: too few to blame it, too many to keep it; last: {}",
            format_count(case.failures.changed, "time"),
            case.failures.last_error.as_deref().unwrap_or("no reason given")
        )),
        VerdictGround::Unproved => {
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
            format_share(sd.exp_m1()),
            format_share(forecast_smallest_effect(sd, MAX_PAIRS).exp_m1())
        ));
    } else if let Some(forecast) = judgement.forecast.filter(|n| *n > judgement.pairs) {
        out.push_str(&format!(
            "; at this noise an answer takes about {}",
            format_count(forecast, "pair")
        ));
    }
    if case.over && rule.aa {
        out.push_str("; both sides are the same");
    }
    out
}

/// Describes what the typical pair does not show about a better change: the total, if a latency decides, and stalls
/// that occur on one side only.
fn describe_limits_of_gain(case: &VerdictCase) -> String {
    let mut out = String::new();
    if case.rule.by_latency {
        out.push_str(&format!("; {}", describe_total(case.judgement)));
    }
    let stalled = case.judgement.total.map(|total| total.stalled);
    if let Some([0, changed]) = stalled
        && changed > 0
    {
        out.push_str(&format!(
            "; stalls in {} with the change, in none without",
            format_count(changed, "slot")
        ));
    }
    out
}

/// Describes the total: `in total 2.0 % less work was done in the same time, and the same work took
/// 14.0 % longer`.
fn describe_total(judgement: &Judgement) -> String {
    let Some(total) = judgement.total else {
        return "the total is not known".to_owned();
    };
    let describe = |ratio: f64, more: &str, less: &str| match ratio - 1.0 {
        change if change < 0.0 => format!("{} {less}", format_share(-change)),
        change => format!("{} {more}", format_share(change)),
    };
    format!(
        "in total {} was done in the same time, and the same work took {}",
        describe(total.work, "more work", "less work"),
        describe(total.time, "longer", "shorter")
    )
}

fn find_reason_left_out(pair: &PairOutcome) -> Option<&str> {
    match pair {
        PairOutcome::Measured { .. } => None,
        PairOutcome::FailedChanged { error } | PairOutcome::Failed { error } => Some(error),
        PairOutcome::Void { reason } => Some(reason),
    }
}

/// Formats an interval: ` (90 % interval −1.2 % to +3.4 %)`.
fn format_interval(interval: Option<Interval>) -> String {
    interval.map_or_else(String::new, |interval| {
        format!(
            " ({} interval {} to {})",
            format_share(interval.confidence),
            format_signed_ratio(interval.low),
            format_signed_ratio(interval.high)
        )
    })
}

/// Formats a ratio as a change: `12.3 % better`.
fn format_percent_change(ratio: f64) -> String {
    match (ratio - 1.0) * 100.0 {
        change if change >= 0.05 => format!("{} better", format_share(ratio - 1.0)),
        change if change <= -0.05 => format!("{} worse", format_share(1.0 - ratio)),
        _ => "no change".to_owned(),
    }
}

fn format_signed_ratio(ratio: f64) -> String {
    let change = ratio - 1.0;
    let sign = if change < 0.0 { '−' } else { '+' };
    format!("{sign}{}", format_share(change.abs()))
}

/// Formats a fraction as a percentage: 0.35 %, 3.1 %, 348 %; whole numbers have no decimals.
fn format_share(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        p if p >= 99.95 || (p - p.round()).abs() < 1e-9 => format!("{percent:.0} %"),
        p if p >= 0.995 => format!("{percent:.1} %"),
        _ => format!("{percent:.2} %"),
    }
}

fn format_count(n: u32, what: &str) -> String {
    match n {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

//! Progress lines of a running tuning session.

use super::hold_section::describe_hold_end;
use super::notebook::{format_figure, format_gain, geometric_mean};
use super::tried_section::describe_end;
use assay_model::Nanos;
use assay_model::trial::PairOutcome;
use assay_render::text::escape_line;
use assay_render::units::format_duration;
use assay_tune::{Diagnosis, Ending, GoalState, Stage, StepOutcome, TuneSession};

/// Formats the result of a step on one line; `None` if there is nothing to report. `before` is the session before the
/// step.
#[must_use]
pub fn format_progress(
    before: &TuneSession,
    seen: &StepOutcome,
    after: &TuneSession,
) -> Option<String> {
    let line = match seen {
        StepOutcome::SetUp { .. } => return None,
        StepOutcome::Visit { .. } => format_visit(after)?,
        StepOutcome::Diagnosed { diagnosis, .. } => format_diagnosis(after, diagnosis)?,
        StepOutcome::Alone { error, .. } => {
            let assay_tune::Step::TryAlone { candidate } = before.next() else {
                return None;
            };
            let id = &after.plan().candidates[candidate].id;
            match error {
                Some(error) => format!("{id}: left out, it fails here: {error}"),
                None => return None,
            }
        }
        StepOutcome::Pair { outcome, .. } => format_pair(before, outcome, after)?,
        StepOutcome::Kept { .. } => "kept".to_owned(),
        StepOutcome::Reverted { .. } => return None,
    };
    Some(format!(
        "{} [{} left]",
        escape_line(&line),
        remaining_time(after)
    ))
}

fn remaining_time(session: &TuneSession) -> Nanos {
    let clock = session.clock();
    let left = clock.budget.0.saturating_sub(clock.spent.0);
    Nanos(left / 1_000_000_000 * 1_000_000_000)
}

fn format_visit(session: &TuneSession) -> Option<String> {
    let at = session.objective();
    let want = session.plan().goal.wants.get(at)?;
    let values: Vec<f64> = (session.visits().iter())
        .filter_map(|visit| visit.figures.get(at))
        .flatten()
        .copied()
        .collect();
    let now = format_figure(want.metric().quantity, geometric_mean(&values)?);
    let standing = match session.standings().get(at)? {
        GoalState::Met { .. } => "met",
        GoalState::MetForNow { .. } => "met for now",
        GoalState::Missed { .. } => "missed",
        GoalState::Open => "to be improved",
    };
    Some(format!("baseline: {now}, wanted {want}: {standing}"))
}

fn format_diagnosis(session: &TuneSession, diagnosis: &Diagnosis) -> Option<String> {
    let limit = diagnosis.limit.as_ref();
    let limit = limit.map(|limit| format!("limit: {} ({})", limit.what.name(), limit.evidence));
    let bottom = diagnosis.bottom.as_ref().map(|bottom| {
        let quantity = session.metric().quantity;
        let ends = [bottom.figure.low, bottom.figure.high];
        let [low, high] = ends.map(|end| format_figure(quantity, end));
        format!("{} reaches {low} to {high}", bottom.what)
    });
    let known: Vec<String> = limit
        .into_iter()
        .chain(bottom)
        .chain(diagnosis.no_bottom.clone())
        .collect();
    (!known.is_empty()).then(|| known.join("; "))
}

fn format_pair(before: &TuneSession, outcome: &PairOutcome, after: &TuneSession) -> Option<String> {
    let assay_tune::Step::Pair(order) = before.next() else {
        return None;
    };
    let name = match order.stage {
        Stage::Screen { .. } => "screen".to_owned(),
        Stage::Proof { candidate, .. } => after.plan().candidates[candidate].id.clone(),
        Stage::Whole { .. } => "the whole".to_owned(),
        Stage::Hold => "the hold".to_owned(),
    };
    if let (None, Some(hold)) = (before.hold(), after.hold()) {
        return Some(format!(
            "held for {}: {}, {} after that",
            format_duration(hold.lasted.as_secs_f64()),
            describe_hold_end(hold),
            format_gain(hold.gain().map(f64::exp), None)
        ));
    }
    let ended = match order.stage {
        Stage::Proof { .. } if after.proofs().len() > before.proofs().len() => {
            after.proofs().last()
        }
        Stage::Whole { .. } if after.wholes().len() > before.wholes().len() => {
            after.wholes().last()
        }
        _ => None,
    };
    if let Some(proof) = ended {
        let judged = after.judge(proof);
        return Some(format!(
            "{name}: {}, {} in {} pairs",
            describe_end(after, proof),
            format_gain(judged.ratio, judged.interval),
            judged.pairs
        ));
    }
    match outcome {
        PairOutcome::Measured { .. } => None,
        PairOutcome::FailedChanged { error } => Some(format!(
            "{name}, pair {}: failed with the change: {error}",
            order.number
        )),
        PairOutcome::Failed { error } => {
            Some(format!("{name}, pair {}: failed: {error}", order.number))
        }
        PairOutcome::Void { reason } => {
            Some(format!("{name}, pair {}: left out: {reason}", order.number))
        }
    }
    .filter(|_| !matches!(after.ending(), Some(Ending::Kept { .. })))
}

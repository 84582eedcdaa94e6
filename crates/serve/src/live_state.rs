//! Progress of a running run, trial or tuning session.

use crate::stored_trial::StoredTrial;
use assay_model::RunId;
use assay_model::run::RunState;
use assay_model::trial::{TrialId, TrialState};
use assay_store::{Store, StoreError};
use assay_tune::{TuneId, TuneState};
use jiff::Timestamp;
use serde::Serialize;

/// Kind of a record whose progress can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RecordKind {
    Run,
    Trial,
    Session,
}

impl RecordKind {
    /// Returns the number of a record. Its name is a number, `last`, or the start of a uid.
    ///
    /// # Errors
    /// No record or several records match.
    pub(crate) fn resolve(self, store: &Store, name: &str) -> Result<i64, StoreError> {
        match self {
            Self::Run => store.resolve(name).map(|id| id.0),
            Self::Trial => store.resolve_trial(name).map(|id| id.0),
            Self::Session => store.resolve_tune(name).map(|id| id.0),
        }
    }
}

/// Progress of a running measurement, as the page shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LiveState {
    /// Number of samples or slots that are stored.
    pub(crate) done: u64,
    /// Maximum number of samples or slots.
    pub(crate) planned: u64,
    pub(crate) is_running: bool,
    /// Seconds since the end of the last sample; `None` before the first sample.
    pub(crate) idle_s: Option<i64>,
    /// State of the measurement, as text.
    pub(crate) text: String,
    /// Further lines of text, such as the time left and the guardrails.
    pub(crate) details: Vec<String>,
}

/// Reads the progress of the record with this number.
///
/// # Errors
/// The record does not exist, or cannot be read back.
pub(crate) fn read_state(
    store: &Store,
    kind: RecordKind,
    id: i64,
) -> Result<LiveState, StoreError> {
    match kind {
        RecordKind::Run => read_run(store, RunId(id)),
        RecordKind::Trial => read_trial(store, TrialId(id)),
        RecordKind::Session => read_session(store, TuneId(id)),
    }
}

fn read_run(store: &Store, id: RunId) -> Result<LiveState, StoreError> {
    let progress = store.run_progress(id)?;
    let (done, planned) = (progress.samples, progress.planned);
    Ok(LiveState {
        done,
        planned,
        is_running: progress.state == RunState::Running,
        idle_s: progress.last.map(seconds_since),
        text: format!("{done} of {planned} samples"),
        details: describe_time_left(progress.first, done, planned, None)
            .into_iter()
            .collect(),
    })
}

fn read_trial(store: &Store, id: TrialId) -> Result<LiveState, StoreError> {
    let stored = StoredTrial::read(store, id)?;
    let view = stored.view();
    let last = view
        .slots
        .iter()
        .map(|slot| (slot.sample.started, slot.sample.wall))
        .max();
    let plan = &view.trial.plan;
    let planned = 2 * u64::from(plan.max_pairs);
    let done = view.slots.len() as u64;
    let mut details: Vec<String> = (view.judgement.guards.iter())
        .map(|guard| {
            let state = match (guard.held, guard.broken) {
                (_, true) => "broken",
                (true, false) => "held",
                (false, false) => "open",
            };
            format!("guardrail {} {state}", guard.metric)
        })
        .collect();
    let measured = view.judgement.pairs;
    if let Some(next) = assay_judge::trial::find_next_look(plan.max_pairs, measured) {
        details.push(format!("next look at pair {next}"));
    }
    let budget = plan.budget.map(|budget| budget.0 / 1_000_000_000);
    details.extend(describe_time_left(
        view.slots.first().map(|slot| slot.sample.started),
        done,
        planned,
        budget,
    ));
    Ok(LiveState {
        done,
        planned,
        is_running: view.trial.state == TrialState::Running,
        idle_s: last.map(seconds_since),
        text: assay_report::trial::format_verdict_line(&view),
        details,
    })
}

fn read_session(store: &Store, id: TuneId) -> Result<LiveState, StoreError> {
    let record = store.tune(id)?;
    let left = record.replay().map_or(0, |session| {
        let clock = session.clock();
        clock.budget.0.saturating_sub(clock.spent.0) / 1_000_000_000
    });
    Ok(LiveState {
        done: record.seen.len() as u64,
        planned: 0,
        is_running: record.state == TuneState::Running,
        idle_s: None,
        text: format!("{} steps measured", record.seen.len()),
        details: vec![format!("at most {} left", format_left(left))],
    })
}

/// Describes the remaining time, which follows from the mean pace since `first`. It is limited by the remaining budget
/// in seconds.
fn describe_time_left(
    first: Option<Timestamp>,
    done: u64,
    planned: u64,
    budget: Option<u64>,
) -> Option<String> {
    /// Minimum number of measured parts from which a pace can be computed.
    const FEWEST: u64 = 2;
    let spent = Timestamp::now()
        .duration_since(first?)
        .as_secs_f64()
        .max(0.0);
    let pace = (done >= FEWEST).then(|| spent / done as f64)?;
    let left = pace * planned.saturating_sub(done) as f64;
    let left = budget.map_or(left, |budget| left.min((budget as f64 - spent).max(0.0)));
    Some(format!("at most {} left", format_left(left as u64)))
}

/// Formats seconds, as in `40 s`, `4 min` or `1 h 20 min`.
fn format_left(seconds: u64) -> String {
    match seconds {
        ..90 => format!("{seconds} s"),
        90..5_400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

fn seconds_since((started, wall): (Timestamp, assay_model::Nanos)) -> i64 {
    let wall = i64::try_from(wall.0 / 1_000_000_000).unwrap_or(0);
    (Timestamp::now().duration_since(started).as_secs() - wall).max(0)
}

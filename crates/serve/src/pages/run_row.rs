//! A run in a list.

use super::{LinkView, TimeView, join_some, machine_link, short_name};
use crate::answer::Refusal;
use crate::fleet_run::FleetRun;
use crate::fleet_state::FleetState;
use crate::site::Site;
use assay_model::run::RunState;
use serde::Serialize;

/// A row of a list of runs.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RunView {
    id: i64,
    plan: String,
    machine: Option<LinkView>,
    targets: String,
    started: TimeView,
    samples: String,
    state: &'static str,
    /// CSS class for the state of the run.
    class: &'static str,
    missed: usize,
}

impl RunView {
    /// Builds the row of a run. `samples` is the number of its stored samples, and `missed` the number of criteria that
    /// it missed.
    fn new(row: &FleetRun, samples: u64, missed: usize) -> Self {
        Self {
            id: row.id.0,
            plan: short_name(&row.plan),
            machine: row.machine_name().map(machine_link),
            targets: join_some(&row.targets, 2),
            started: TimeView::new(row.started),
            samples: match samples == row.planned {
                true => samples.to_string(),
                false => format!("{samples} of {}", row.planned),
            },
            state: state_name(row.state),
            class: state_class(row.state, missed > 0),
            missed,
        }
    }
}

/// Builds the rows of the runs with these indices in the state. Counts the samples of these runs only.
///
/// # Errors
/// The store cannot be read.
pub(super) fn list_runs(
    site: &Site,
    state: &FleetState,
    numbers: &[usize],
) -> Result<Vec<RunView>, Refusal> {
    let known = |at: &usize| Some((*at, state.runs.get(*at)?));
    let runs: Vec<(usize, &FleetRun)> = numbers.iter().filter_map(known).collect();
    let ids: Vec<_> = runs.iter().map(|(_, run)| run.id).collect();
    let counts = site.store.read(|store| store.count_samples(&ids))?;
    let counts = counts.unwrap_or_default();
    let view = |(at, run): &(usize, &FleetRun)| {
        let samples = counts.get(&run.id).copied().unwrap_or(0);
        RunView::new(run, samples, super::overview::count_missed(state, *at))
    };
    Ok(runs.iter().map(view).collect())
}

/// Returns the display name of a state.
pub(super) fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Complete => "complete",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

/// Returns the CSS class of a state. A missed criterion counts as worse than an interruption.
pub(super) fn state_class(state: RunState, missed: bool) -> &'static str {
    match (state, missed) {
        (RunState::Failed, _) | (_, true) => "bad",
        (RunState::Interrupted, _) => "warn",
        (RunState::Running, _) => "live",
        (RunState::Complete, false) => "good",
    }
}

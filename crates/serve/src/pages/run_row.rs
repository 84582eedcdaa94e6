//! A run as lists show it.

use super::{LinkView, TimeView, join_some, machine_link, short_name};
use crate::fleet_state::machine_name;
use assay_model::run::RunState;
use assay_store::RunRow;
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
    /// Class of its state.
    class: &'static str,
    missed: usize,
}

impl RunView {
    /// Describes a run; `missed` is the number of criteria that it missed.
    pub(super) fn new(row: &RunRow, missed: usize) -> Self {
        Self {
            id: row.id.0,
            plan: short_name(&row.plan),
            machine: machine_name(row).map(machine_link),
            targets: join_some(&row.targets, 2),
            started: TimeView::new(row.started),
            samples: match row.samples == row.planned {
                true => row.samples.to_string(),
                false => format!("{} of {}", row.samples, row.planned),
            },
            state: state_name(row.state),
            class: state_class(row.state, missed > 0),
            missed,
        }
    }
}

/// Returns the name of a state.
pub(super) fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Complete => "complete",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

/// Returns the class of a state. A missed criterion is worse than an interruption.
pub(super) fn state_class(state: RunState, missed: bool) -> &'static str {
    match (state, missed) {
        (RunState::Failed, _) | (_, true) => "bad",
        (RunState::Interrupted, _) => "warn",
        (RunState::Running, _) => "live",
        (RunState::Complete, false) => "good",
    }
}

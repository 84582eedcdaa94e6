//! Errors of a tuning session.

use crate::runner::TargetRefused;
use crate::trials::TrialError;
use assay_changes::ChangeError;
use assay_loads::scratch::ScratchError;
use assay_store::StoreError;
use assay_tune::{Incident, ReplayError, Unexpected};

/// Why a tuning session could not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// The load or its target cannot be used.
    #[error(transparent)]
    Load(#[from] TrialError),
    /// A setting cannot be changed, reverted or written to the journal.
    #[error(transparent)]
    Change(ChangeError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target may not be used.
    #[error(transparent)]
    Refused(#[from] TargetRefused),
    /// No scratch space.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// A stored session does not fit this version.
    #[error("the stored session cannot be continued: {0}")]
    Replay(#[from] ReplayError),
    /// A step and its outcome do not fit together.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
    /// The process that reverts everything after a kill cannot be started.
    #[error(
        "cannot start the process that reverts everything if assay is killed: {0}. Nothing was changed"
    )]
    StandBy(#[source] std::io::Error),
    /// The load does not report the figure.
    #[error("the load gives no figure `{wanted}`; it gives {known}. Name one of these in --want")]
    NoFigure {
        /// As wanted.
        wanted: String,
        /// What there is.
        known: String,
    },
    /// The load fails on the unchanged machine.
    #[error("the load fails before anything is changed: {error}")]
    LoadFails {
        /// What it reported.
        error: String,
    },
    /// An event ended the session within a step.
    #[error("stopped: {0}")]
    Stopped(Incident),
    /// Something could not be reverted.
    #[error(
        "{what} could not be reverted: {error}. It is in the journal; `assay trial --recover` tries again"
    )]
    NotReverted {
        /// What.
        what: String,
        /// Why.
        error: String,
    },
}

/// A change of another program ends the session, wherever it is noticed.
impl From<ChangeError> for TuneError {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Meanwhile { what, found, .. } => Self::Stopped(Incident::Meddled {
                setting: what,
                found,
            }),
            error => Self::Change(error),
        }
    }
}

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
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The target may not be used.
    #[error(transparent)]
    Refused(#[from] TargetRefused),
    /// Scratch space is unavailable.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// The stored session does not fit this version of assay, so it cannot be continued.
    #[error("the stored session cannot be continued: {0}")]
    Replay(#[from] ReplayError),
    /// The outcome does not belong to the step.
    #[error(transparent)]
    Unexpected(#[from] Unexpected),
    /// The process that reverts everything if assay is killed cannot be started.
    #[error(
        "cannot start the process that reverts everything if assay is killed: {0}. Nothing was changed"
    )]
    StandBy(#[source] std::io::Error),
    /// The load does not report the requested figure.
    #[error("the load gives no figure `{wanted}`; it gives {known}. Name one of these in --want")]
    NoFigure {
        /// Name of the requested figure.
        wanted: String,
        /// Names of the figures that the load reports.
        known: String,
    },
    /// The load fails on the unchanged machine.
    #[error("the load fails before anything is changed: {error}")]
    LoadFails {
        /// Error of the failed load.
        error: String,
    },
    /// An event ended the session within a step.
    #[error("stopped: {0}")]
    Stopped(Incident),
    /// A setting could not be reverted, or an object could not be removed.
    #[error(
        "{what} could not be reverted: {error}. It is in the journal; `assay trial --recover` tries again"
    )]
    NotReverted {
        /// Description of the setting or object.
        what: String,
        /// Reason why the revert or removal failed.
        error: String,
    },
}

/// If another program changed a setting, the session ends at the step that detects this.
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

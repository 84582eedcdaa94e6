//! Reasons why a trial could not begin, or ended early. Each message contains a way to proceed.

use crate::engine::EngineError;
use crate::runner::TargetRefused;
use assay_changes::ChangeError;
use assay_changes::side_by_side::ArmError;
use assay_fio::job::RenderError;
use assay_loads::fio::FioError;
use assay_loads::layout::LayoutError;
use assay_loads::scratch::ScratchError;
use assay_store::StoreError;

/// Reason why a trial could not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The advice cannot be tried with these values, or on this target.
    #[error(transparent)]
    Resolve(#[from] assay_advice::ResolveError),
    /// The path of the target is not valid UTF-8, so it cannot be stored.
    #[error("{0}")]
    Name(String),
    /// A setting cannot be changed, reverted or recorded in the journal.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A file system, disk image or other object for the trial cannot be created.
    #[error(transparent)]
    Arm(#[from] ArmError),
    /// Scratch space is unavailable.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// fio is missing, too old, or cannot be started.
    #[error(transparent)]
    Fio(#[from] FioError),
    /// The target was refused, for example because it may not receive a scratch file.
    #[error(transparent)]
    Refused(#[from] TargetRefused),
    /// The test file could not be laid out.
    #[error("laying out the test file stopped {0}")]
    Layout(#[source] LayoutError),
    /// The load fails on the baseline, so that there is nothing to compare.
    #[error("the load fails before anything is changed: {error}")]
    LoadFails {
        /// Error of the failed load.
        error: String,
    },
    /// fio would reject the job of the trial.
    #[error(transparent)]
    Job(RenderError),
    /// The load writes, and the target belongs to the user.
    #[error(
        "{0} is yours and the load writes: name a directory instead, in which assay makes a file of its own"
    )]
    WouldDestroy(String),
    /// The target cannot be read.
    #[error("{target}: {source}")]
    Target {
        /// Path of the target.
        target: String,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The page of the catalogue is inconsistent: its load does not fit its target. The text names the kind of target
    /// that the load needs.
    #[error("the advice does not fit together: its load needs {0}")]
    Unfit(&'static str),
    /// A password cannot be read, or the work directory cannot be used.
    #[error(transparent)]
    Slot(EngineError),
    /// A setting could not be reverted, or an object could not be removed.
    #[error(
        "{what} could not be reverted: {error}. It is in the journal; `assay trial --recover` tries again"
    )]
    NotSetBack {
        /// Description of the setting or object.
        what: String,
        /// Reason why the revert or removal failed.
        error: String,
    },
}

impl From<EngineError> for TrialError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Fio(source) => Self::Fio(source),
            // A trial has one workload, so its name is no information.
            EngineError::Job { source, .. } => Self::Job(source),
            EngineError::Unfit(what) => Self::Unfit(what),
            other => Self::Slot(other),
        }
    }
}

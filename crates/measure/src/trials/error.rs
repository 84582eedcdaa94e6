//! Reasons why a trial could not begin, or ended early. Each message contains the way out.

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
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The advice cannot be tried with these values, or on this target.
    #[error(transparent)]
    Resolve(#[from] assay_advice::ResolveError),
    /// The path of the target is not valid text, so it cannot be stored.
    #[error("{0}")]
    Name(String),
    /// A setting cannot be changed, reverted or recorded in the journal.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// An object for measuring cannot be created.
    #[error(transparent)]
    Arm(#[from] ArmError),
    /// There is no scratch space.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] FioError),
    /// A scratch file must not be created in this directory.
    #[error(transparent)]
    Refused(#[from] TargetRefused),
    /// The test file could not be laid out.
    #[error("laying out the test file stopped {0}")]
    Layout(#[source] LayoutError),
    /// The load fails on the baseline, so a comparison is impossible.
    #[error("the load fails before anything is changed: {error}")]
    LoadFails {
        /// Error of the load.
        error: String,
    },
    /// fio would reject the job.
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
        /// The target.
        target: String,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The page of the catalogue is inconsistent: its load does not fit its target.
    #[error("the advice does not fit together: its load needs {0}")]
    Unfit(&'static str),
    /// A password cannot be read, or the work directory cannot be used.
    #[error(transparent)]
    Slot(EngineError),
    /// A setting could not be reverted, or an object not removed.
    #[error(
        "{what} could not be reverted: {error}. It is in the journal; `assay trial --recover` tries again"
    )]
    NotSetBack {
        /// The setting or object.
        what: String,
        /// The cause.
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

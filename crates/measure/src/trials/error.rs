//! Why a trial could not begin, or ended early, and the way out.

use crate::engine::EngineError;
use crate::runner::TargetRefused;
use assay_changes::ChangeError;
use assay_changes::side_by_side::ArmError;
use assay_fio::job::RenderError;
use assay_loads::fio::FioError;
use assay_loads::layout::LayoutError;
use assay_loads::scratch::ScratchError;
use assay_store::StoreError;

/// Why a trial could not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The advice cannot be tried with these values, or on this target.
    #[error(transparent)]
    Resolve(#[from] assay_advice::ResolveError),
    /// The target has no name that can be kept.
    #[error("{0}")]
    Name(String),
    /// A setting cannot be changed, set back or entered in the journal.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// What is to be measured cannot be made.
    #[error(transparent)]
    Arm(#[from] ArmError),
    /// No scratch space.
    #[error(transparent)]
    Scratch(#[from] ScratchError),
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] FioError),
    /// A scratch file may not be made there.
    #[error(transparent)]
    Refused(#[from] TargetRefused),
    /// The test file could not be laid out.
    #[error("laying out the test file stopped {0}")]
    Layout(#[source] LayoutError),
    /// The load does not work as the machine is now, so there is nothing to compare with.
    #[error("the load fails before anything is changed: {error}")]
    LoadFails {
        /// What it said.
        error: String,
    },
    /// fio would not understand it.
    #[error(transparent)]
    Job(RenderError),
    /// The load writes, and the target is not assay's.
    #[error(
        "{0} is yours and the load writes: name a directory instead, in which assay makes a file of its own"
    )]
    WouldDestroy(String),
    /// The target cannot be looked at.
    #[error("{target}: {source}")]
    Target {
        /// The target.
        target: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The catalogue asks for something that does not fit together.
    #[error("the advice does not fit together: its load needs {0}")]
    Unfit(&'static str),
    /// A password cannot be read, or the work directory refuses.
    #[error(transparent)]
    Slot(EngineError),
    /// Something could not be set back or removed.
    #[error(
        "{what} could not be set back: {error}. It is in the journal; `assay trial --recover` tries again"
    )]
    NotSetBack {
        /// What.
        what: String,
        /// Why.
        error: String,
    },
}

impl From<EngineError> for TrialError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Fio(source) => Self::Fio(source),
            // A trial has one workload, so its name says nothing.
            EngineError::Job { source, .. } => Self::Job(source),
            EngineError::Unfit(what) => Self::Unfit(what),
            other => Self::Slot(other),
        }
    }
}

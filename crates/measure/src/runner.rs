//! Executes a plan without open choices. [`prepare`] checks that the plan can be executed on this machine without
//! damage. [`execute`] measures the slots of the plan in order and stores every sample at once.
//!
//! This module prints nothing: callers receive [`crate::engine::MeasureEvent`]s.

pub mod estimate;
mod execute;
mod prepare;
mod prepared_target;
mod remarks;
mod target_lock;
mod targets;

pub use crate::engine::{Environment, MeasureEvent};
pub use execute::{Finished, execute};
pub use prepare::{Begin, PreparedRun, prepare, prepare_resume};
pub use prepared_target::OpenTarget;
pub use target_lock::Claim;
pub use targets::{Permission, TargetRefused};

use assay_store::StoreError;

/// Reason why a run could not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan is invalid, or cannot be executed on this machine.
    #[error(transparent)]
    Plan(#[from] assay_model::plan::PlanError),
    /// A target was refused.
    #[error(transparent)]
    Target(#[from] TargetRefused),
    /// fio is missing, too old, or cannot be started.
    #[error(transparent)]
    Fio(#[from] assay_loads::fio::FioError),
    /// Scratch space is unavailable.
    #[error(transparent)]
    Scratch(#[from] assay_loads::scratch::ScratchError),
    /// The test file of a target could not be laid out.
    #[error("{target}: laying out the test file stopped {source}")]
    Layout {
        /// Name of the target.
        target: String,
        /// Reason, with the number of bytes that were written before.
        source: assay_loads::layout::LayoutError,
    },
    /// A load could not begin.
    #[error(transparent)]
    Slot(#[from] crate::engine::EngineError),
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Several consecutive samples failed.
    #[error(transparent)]
    Failing(#[from] crate::engine::Stopped),
    /// The run cannot be resumed.
    #[error("run {run} cannot be resumed: {message}")]
    Resume {
        /// Id of the run.
        run: assay_model::RunId,
        /// Why the run cannot be resumed, and what to do instead.
        message: String,
    },
}

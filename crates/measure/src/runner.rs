//! Executes a plan without open choices: [`prepare`] checks that the plan can be executed on this machine without
//! damage; [`execute`] measures its slots in order and stores every sample at once.
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
    /// The plan cannot be executed.
    #[error(transparent)]
    Plan(#[from] assay_model::plan::PlanError),
    /// A target was refused.
    #[error(transparent)]
    Target(#[from] TargetRefused),
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] assay_loads::fio::FioError),
    /// Scratch space is unavailable.
    #[error(transparent)]
    Scratch(#[from] assay_loads::scratch::ScratchError),
    /// A file could not be laid out.
    #[error("{target}: laying out the test file stopped {source}")]
    Layout {
        /// The target.
        target: String,
        /// Number of bytes written before, and the cause.
        source: assay_loads::layout::LayoutError,
    },
    /// A load could not begin.
    #[error(transparent)]
    Slot(#[from] crate::engine::EngineError),
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Several consecutive samples failed.
    #[error(transparent)]
    Failing(#[from] crate::engine::Stopped),
    /// The run cannot be resumed.
    #[error("run {run} cannot be resumed: {message}")]
    Resume {
        /// The run.
        run: assay_model::RunId,
        /// The reason, and what to do instead.
        message: String,
    },
}

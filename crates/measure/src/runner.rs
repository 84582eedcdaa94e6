//! Carries a plan out. The plan leaves no choice: [`prepare`] checks that it can be done here and
//! without harm, [`execute`] does its slots in order and stores every sample as it comes.
//!
//! Nothing is printed: whoever calls is told by [`Event`]s.

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
pub use prepared_target::Ground;
pub use target_lock::Claim;
pub use targets::{Permission, TargetRefused};

use assay_store::StoreError;

/// Why a run could not begin, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be carried out.
    #[error(transparent)]
    Plan(#[from] assay_model::plan::PlanError),
    /// A target was refused.
    #[error(transparent)]
    Target(#[from] TargetRefused),
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] assay_loads::fio::FioError),
    /// No scratch space.
    #[error(transparent)]
    Scratch(#[from] assay_loads::scratch::ScratchError),
    /// A file could not be laid out.
    #[error("{target}: laying out the test file stopped {source}")]
    Layout {
        /// The target.
        target: String,
        /// How far it got and why it stopped.
        source: assay_loads::layout::LayoutError,
    },
    /// A load could not begin.
    #[error(transparent)]
    Slot(#[from] crate::engine::EngineError),
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Several samples in a row failed.
    #[error(transparent)]
    Failing(#[from] crate::engine::Stopped),
    /// The run cannot be resumed.
    #[error("run {run} cannot be resumed: {message}")]
    Resume {
        /// The run.
        run: assay_model::RunId,
        /// Why, and what to do instead.
        message: String,
    },
}

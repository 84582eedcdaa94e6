//! Errors of measuring a ladder.

use assay_loads::layout::LayoutError;

/// Reason why a ladder could not be measured, or not completely.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The target is not a directory.
    #[error(
        "{0} is not a directory: name one on the storage that is to be measured; assay makes and removes its own files in it"
    )]
    NotADirectory(String),
    /// The target cannot be read or written, or is too full.
    #[error(transparent)]
    Target(#[from] assay_measure::runner::TargetRefused),
    /// A volume cannot be created at the requested place.
    #[error("{option} {name}: {reason}")]
    SiblingLayers {
        /// The option.
        option: &'static str,
        /// Its value, control characters escaped.
        name: String,
        /// The reason, and what to do.
        reason: String,
    },
    /// The layers below cannot be determined.
    #[error(transparent)]
    Facts(#[from] assay_facts::TargetError),
    /// The plan cannot be executed.
    #[error(transparent)]
    Plan(#[from] assay_model::plan::PlanError),
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] assay_loads::fio::FioError),
    /// A load could not begin.
    #[error(transparent)]
    Slot(#[from] assay_measure::engine::EngineError),
    /// There is no scratch space.
    #[error(transparent)]
    Scratch(#[from] assay_loads::scratch::ScratchError),
    /// An error of the journal.
    #[error(transparent)]
    Journal(#[from] assay_changes::ChangeError),
    /// An image or a volume could not be created.
    #[error("{rung}: {source}; --layers leaves layers out")]
    Image {
        /// The rung.
        rung: String,
        /// The cause.
        source: assay_changes::side_by_side::ArmError,
    },
    /// An operation of the guest failed.
    #[error("{what}: {source}")]
    Guest {
        /// The operation.
        what: String,
        /// The cause.
        source: assay_lab::LabError,
    },
    /// A layer could not be created in the guest.
    #[error("{rung}: `{command}` in the guest: {complaint}; --layers leaves layers out")]
    Layer {
        /// The rung.
        rung: String,
        /// The command line.
        command: String,
        /// Error message of the command.
        complaint: String,
    },
    /// The test file could not be written.
    #[error("{rung}: writing the test file stopped {source}")]
    Layout {
        /// The rung.
        rung: String,
        /// Progress and cause.
        source: LayoutError,
    },
    /// A job file could not be written for a workload.
    #[error("workload {workload}: {reason}")]
    Job {
        /// The workload.
        workload: String,
        /// The cause.
        reason: String,
    },
    /// An error of the store.
    #[error(transparent)]
    Store(#[from] assay_store::StoreError),
    /// Several samples in a row failed.
    #[error(transparent)]
    Failing(#[from] assay_measure::engine::Stopped),
}

impl MeasureError {
    pub(crate) fn ground(option: &'static str, name: &str, reason: String) -> Self {
        Self::SiblingLayers {
            option,
            name: name.escape_debug().to_string(),
            reason,
        }
    }

    /// Returns a function for `map_err`: the guest failed during `what`.
    pub(crate) fn guest(what: &str) -> impl FnOnce(assay_lab::LabError) -> Self {
        let what = what.to_owned();
        move |source| match source {
            assay_lab::LabError::Interrupted => Self::Interrupted,
            source => Self::Guest { what, source },
        }
    }
}

//! Errors of measuring the layers of a stack.

use assay_loads::layout::LayoutError;

/// Reason why the layers could not be measured, or were not measured completely.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user interrupted the measurement.
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
    /// A volume cannot be created in the pool or volume group that the user named.
    #[error("{option} {name}: {reason}")]
    SiblingLayers {
        /// Option with which the user named the place.
        option: &'static str,
        /// Value of the option, with escaped control characters.
        name: String,
        /// Reason, and what the user can do.
        reason: String,
    },
    /// The layers below the target cannot be determined.
    #[error(transparent)]
    Facts(#[from] assay_facts::TargetError),
    /// The plan cannot be executed.
    #[error(transparent)]
    Plan(#[from] assay_model::plan::PlanError),
    /// fio is missing, too old, or cannot be started.
    #[error(transparent)]
    Fio(#[from] assay_loads::fio::FioError),
    /// A load could not begin.
    #[error(transparent)]
    Slot(#[from] assay_measure::engine::EngineError),
    /// Scratch space is unavailable.
    #[error(transparent)]
    Scratch(#[from] assay_loads::scratch::ScratchError),
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] assay_changes::ChangeError),
    /// An image or a volume could not be created.
    #[error("{rung}: {source}; --layers leaves layers out")]
    Image {
        /// Name of the layer.
        rung: String,
        /// Reason why the creation failed.
        source: assay_changes::side_by_side::ArmError,
    },
    /// An operation of the guest failed.
    #[error("{what}: {source}")]
    Guest {
        /// Description of the operation.
        what: String,
        /// Reason of the failure.
        source: assay_lab::LabError,
    },
    /// A layer could not be created in the guest.
    #[error("{rung}: `{command}` in the guest: {complaint}; --layers leaves layers out")]
    Layer {
        /// Name of the layer.
        rung: String,
        /// Command line that failed.
        command: String,
        /// Error message of the command.
        complaint: String,
    },
    /// The test file could not be written.
    #[error("{rung}: writing the test file stopped {source}")]
    Layout {
        /// Name of the layer.
        rung: String,
        /// Reason, with the number of bytes written before.
        source: LayoutError,
    },
    /// The job file of a workload could not be written.
    #[error("workload {workload}: {reason}")]
    Job {
        /// Name of the workload.
        workload: String,
        /// Reason from the job writer.
        reason: String,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] assay_store::StoreError),
    /// Several consecutive samples failed.
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

    /// Returns a function for `map_err` that converts an error of the guest. `what` describes the failed operation.
    pub(crate) fn guest(what: &str) -> impl FnOnce(assay_lab::LabError) -> Self {
        let what = what.to_owned();
        move |source| match source {
            assay_lab::LabError::Interrupted => Self::Interrupted,
            source => Self::Guest { what, source },
        }
    }
}

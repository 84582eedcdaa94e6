//! Why a ladder could not be measured.

use assay_loads::layout::LayoutError;

/// Why a ladder could not be measured, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Not a directory.
    #[error(
        "{0} is not a directory: name one on the storage that is to be measured; assay makes and removes its own files in it"
    )]
    NotADirectory(String),
    /// The target cannot be read, written, or is too full.
    #[error(transparent)]
    Target(#[from] assay_measure::runner::TargetRefused),
    /// A volume cannot be made where the user said.
    #[error("{option} {name}: {reason}")]
    Ground {
        /// The option that names it.
        option: &'static str,
        /// What it names, control characters escaped.
        name: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// Its layers cannot be found out.
    #[error(transparent)]
    Facts(#[from] assay_facts::TargetError),
    /// The plan cannot be carried out.
    #[error(transparent)]
    Plan(#[from] assay_model::plan::PlanError),
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] assay_loads::fio::FioError),
    /// A load could not begin.
    #[error(transparent)]
    Slot(#[from] assay_measure::engine::EngineError),
    /// No scratch space.
    #[error(transparent)]
    Scratch(#[from] assay_loads::scratch::ScratchError),
    /// The journal refused.
    #[error(transparent)]
    Journal(#[from] assay_changes::ChangeError),
    /// An image or a volume could not be made.
    #[error("{rung}: {source}; --layers leaves layers out")]
    Image {
        /// The rung.
        rung: String,
        /// Why.
        source: assay_changes::side_by_side::ArmError,
    },
    /// The guest did not do what it should.
    #[error("{what}: {source}")]
    Guest {
        /// What was being done.
        what: String,
        /// Why.
        source: assay_lab::LabError,
    },
    /// A layer could not be made in the guest.
    #[error("{rung}: `{command}` in the guest: {complaint}; --layers leaves layers out")]
    Layer {
        /// The rung.
        rung: String,
        /// The command line.
        command: String,
        /// Its own words.
        complaint: String,
    },
    /// The test file could not be written.
    #[error("{rung}: writing the test file stopped {source}")]
    Layout {
        /// The rung.
        rung: String,
        /// How far it got and why it stopped.
        source: LayoutError,
    },
    /// A job file could not be written for a workload.
    #[error("workload {workload}: {reason}")]
    Job {
        /// The workload.
        workload: String,
        /// Why.
        reason: String,
    },
    /// The store refused.
    #[error(transparent)]
    Store(#[from] assay_store::StoreError),
    /// Several samples in a row failed.
    #[error(transparent)]
    Failing(#[from] assay_measure::engine::Stopped),
}

impl MeasureError {
    pub(crate) fn ground(option: &'static str, name: &str, reason: String) -> Self {
        Self::Ground {
            option,
            name: name.escape_debug().to_string(),
            reason,
        }
    }

    /// For `map_err`: the guest failed while `what` was done.
    pub(crate) fn guest(what: &str) -> impl FnOnce(assay_lab::LabError) -> Self {
        let what = what.to_owned();
        move |source| match source {
            assay_lab::LabError::Interrupted => Self::Interrupted,
            source => Self::Guest { what, source },
        }
    }
}

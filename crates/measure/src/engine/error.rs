//! Reasons why a load could not begin. If a load begins and fails later, its sample contains the error.

use assay_fio::job::RenderError;
use assay_host::HostError;
use assay_loads::fio::FioError;

/// Reason why a load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// fio is missing, too old, or cannot be started.
    #[error(transparent)]
    Fio(#[from] FioError),
    /// The job file of a workload could not be written.
    #[error("workload {workload}: {source}")]
    Job {
        /// Name of the workload in the plan.
        workload: String,
        /// Reason from the job writer.
        source: RenderError,
    },
    /// The password file cannot be read.
    #[error(transparent)]
    Password(HostError),
    /// The password file at this path contains no password.
    #[error("{0}: its first line is empty; write the password there")]
    NoPassword(String),
    /// A symbolic link in the work directory cannot be created.
    #[error("{}: no link can be made there: {source}", path.display())]
    Link {
        /// Path of the symbolic link.
        path: std::path::PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The web server does not permit the load, or does not respond.
    #[error(transparent)]
    Server(#[from] assay_web::AskedError),
    /// The load does not fit the target. The text names the kind of target that the load needs.
    #[error("the load needs {0}")]
    Unfit(&'static str),
}

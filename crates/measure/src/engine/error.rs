//! Reasons why a load could not begin. If a load begins and fails, its sample contains the error.

use assay_fio::job::RenderError;
use assay_host::HostError;
use assay_loads::fio::FioError;

/// Reason why a load could not begin.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// fio cannot be used.
    #[error(transparent)]
    Fio(#[from] FioError),
    /// A job file could not be written for a workload.
    #[error("workload {workload}: {source}")]
    Job {
        /// The workload.
        workload: String,
        /// The cause.
        source: RenderError,
    },
    /// A password cannot be read.
    #[error(transparent)]
    Password(HostError),
    /// The password file contains no password.
    #[error("{0}: its first line is empty; write the password there")]
    NoPassword(String),
    /// A symbolic link in the work directory cannot be created.
    #[error("{}: no link can be made there: {source}", path.display())]
    Link {
        /// Path of the symbolic link.
        path: std::path::PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The web server does not permit the load, or does not respond.
    #[error(transparent)]
    Server(#[from] assay_web::AskedError),
    /// The load does not fit the target; the text names the kind of target that it needs.
    #[error("the load needs {0}")]
    Unfit(&'static str),
}

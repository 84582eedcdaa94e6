//! Why a load could not begin. A load that began and failed is a sample that says so.

use assay_fio::job::RenderError;
use assay_host::HostError;
use assay_loads::fio::FioError;

/// Why a load could not begin.
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
        /// Why.
        source: RenderError,
    },
    /// A password cannot be read.
    #[error(transparent)]
    Password(HostError),
    /// There is no password in its file.
    #[error("{0}: its first line is empty; write the password there")]
    NoPassword(String),
    /// The work directory does not take a link.
    #[error("{}: no link can be made there: {source}", path.display())]
    Link {
        /// The link.
        path: std::path::PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A web server cannot be loaded.
    #[error(transparent)]
    Server(#[from] assay_web::AskedError),
    /// The load and its place do not fit together.
    #[error("the load needs {0}")]
    Unfit(&'static str),
}

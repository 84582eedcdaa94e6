//! Errors of studies.

use std::path::PathBuf;

/// Reasons why a study cannot be used or carried out.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A study file contains a mistake.
    #[error("{file}:{line}: {message}")]
    File {
        /// Name of the file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// The mistake and its correction.
        message: String,
    },
    /// The study does not exist.
    #[error("there is no study `{asked}`; {known}")]
    Unknown {
        /// Requested name.
        asked: String,
        /// Known names.
        known: String,
    },
    /// A bench cannot use a setting.
    #[error("{of}: {message}")]
    Setting {
        /// `configuration NAME`, `figure NAME`, `form quick`.
        of: String,
        /// The mistake and its correction.
        message: String,
    },
    /// A configuration could not be created or measured.
    #[error("{what}: {reason}")]
    Measure {
        /// The configuration or command.
        what: String,
        /// Reason.
        reason: String,
    },
    /// The bench needs a guest, but there is no image.
    #[error("there is no guest image: `assay lab build` makes one")]
    NoImage,
    /// A file or directory cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The user stopped the study.
    #[error("interrupted")]
    Cancelled,
    /// A guest failed.
    #[error(transparent)]
    Lab(#[from] assay_lab::LabError),
    /// An image or file system could not be created.
    #[error(transparent)]
    Arm(#[from] assay_changes::side_by_side::ArmError),
    /// The journal cannot be written, so nothing is created.
    #[error(transparent)]
    Journal(#[from] assay_changes::ChangeError),
    /// The machine did not answer.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
}

impl StudyError {
    /// Builds [`StudyError::Measure`].
    pub fn measure(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Measure {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    /// Converts an I/O error of a path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

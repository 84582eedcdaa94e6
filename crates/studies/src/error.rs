//! Errors of reading a study and of carrying it out.

use std::path::PathBuf;

/// Reason why a study cannot be used or carried out.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A study file contains a mistake.
    #[error("{file}:{line}: {message}")]
    File {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// Description of the mistake and how to correct it.
        message: String,
    },
    /// The study does not exist.
    #[error("there is no study `{asked}`; {known}")]
    Unknown {
        /// Name that the user requested.
        asked: String,
        /// Names of the existing studies.
        known: String,
    },
    /// The bench does not accept a setting.
    #[error("{of}: {message}")]
    Setting {
        /// Table with the setting, such as `configuration NAME`, `figure NAME` or `form quick`.
        of: String,
        /// Description of the mistake and how to correct it.
        message: String,
    },
    /// A configuration could not be created or measured.
    #[error("{what}: {reason}")]
    Measure {
        /// Name of the configuration, or the command that failed.
        what: String,
        /// Reason of the failure.
        reason: String,
    },
    /// The bench needs a guest, but there is no guest image.
    #[error("there is no guest image: `assay lab build` makes one")]
    NoImage,
    /// A file or directory cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the kernel.
        source: std::io::Error,
    },
    /// The user stopped the study.
    #[error("interrupted")]
    Cancelled,
    /// A guest of the lab failed.
    #[error(transparent)]
    Lab(#[from] assay_lab::LabError),
    /// An image or file system could not be created.
    #[error(transparent)]
    Arm(#[from] assay_changes::side_by_side::ArmError),
    /// The journal cannot be written, so nothing is created.
    #[error(transparent)]
    Journal(#[from] assay_changes::ChangeError),
    /// A command or file of the machine could not be used.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
}

impl StudyError {
    /// Builds [`StudyError::Measure`] from a description and a reason.
    pub fn measure(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Measure {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    /// Returns a function that converts an I/O error to [`StudyError::Io`] with this path.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

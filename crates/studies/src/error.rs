//! Why a study cannot be used or carried out.

use std::path::PathBuf;

/// Why a study cannot be used or carried out.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// A mistake in a study's file.
    #[error("{file}:{line}: {message}")]
    File {
        /// The file, as it was named.
        file: String,
        /// 1-based line.
        line: usize,
        /// What is wrong there, and what would be right.
        message: String,
    },
    /// There is no study of that name.
    #[error("there is no study `{asked}`; {known}")]
    Unknown {
        /// What was asked for.
        asked: String,
        /// What there is.
        known: String,
    },
    /// A setting that a bench cannot use.
    #[error("{of}: {message}")]
    Setting {
        /// `configuration NAME`, `figure NAME`, `form quick`.
        of: String,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A configuration could not be made or measured.
    #[error("{what}: {reason}")]
    Measure {
        /// What was done: a configuration, a command.
        what: String,
        /// Why not.
        reason: String,
    },
    /// The bench needs a guest, and there is no image.
    #[error("there is no guest image: `assay lab build` makes one")]
    NoImage,
    /// A file or directory refused.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Cancelled,
    /// A guest failed.
    #[error(transparent)]
    Lab(#[from] assay_lab::LabError),
    /// An image or a file system could not be made.
    #[error(transparent)]
    Arm(#[from] assay_changes::side_by_side::ArmError),
    /// The journal, without which nothing is made.
    #[error(transparent)]
    Journal(#[from] assay_changes::ChangeError),
    /// The machine gave no answer.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
}

impl StudyError {
    /// A measurement that failed.
    pub fn measure(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Measure {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    /// Turns the kernel's answer about a path into an error.
    pub fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

//! Errors of building an arm, one of the two objects that a trial compares.

use assay_model::Bytes;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Reason why an arm could not be built, or no longer answers.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// The user interrupted.
    #[error("interrupted")]
    Cancelled,
    /// A tool is not installed.
    #[error(
        "{program} is not installed: `apt install {debian}` (Debian, Ubuntu, Proxmox) or `dnf install {fedora}` (Fedora, RHEL)"
    )]
    Missing {
        /// Name of the program, or of several programs of which one is required.
        program: String,
        /// Debian package that contains the program.
        debian: &'static str,
        /// Fedora package that contains the program.
        fedora: &'static str,
    },
    /// The operation requires root, and assay does not run as root.
    #[error("{what} needs root: run assay with sudo")]
    NotRoot {
        /// What requires root.
        what: &'static str,
    },
    /// The definition of the arm has an option that assay refuses, or options that exclude each other.
    #[error("{what}: {source}")]
    Refused {
        /// The option, with control characters escaped.
        what: String,
        /// Why the option is refused, and what the user can do.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file system has too little free space.
    #[error("{}: {needed} are needed and {free} are free: choose another directory or a smaller size", .dir.display())]
    Space {
        /// A directory on the file system.
        dir: PathBuf,
        /// Number of bytes that are needed.
        needed: Bytes,
        /// Number of bytes that are free.
        free: Bytes,
    },
    /// A tool failed while it built or examined the arm.
    #[error("{program}: {complaint}")]
    Tool {
        /// The program, with its version if the supported options depend on it.
        program: String,
        /// Error message of the tool.
        complaint: String,
    },
    /// The server ended, or does not answer.
    #[error("{program} does not answer: {source}")]
    Server {
        /// Name of the server program.
        program: String,
        /// The error from which the end or the timeout was detected.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An image could not be filled completely.
    #[error("{}: after {written} of {size}: {source}", .path.display())]
    Fill {
        /// Path of the image.
        path: PathBuf,
        /// Number of bytes written before the error.
        written: Bytes,
        /// Number of bytes that were requested.
        size: Bytes,
        /// Error that the server returned.
        source: io::Error,
    },
    /// The journal cannot be used. Without a journal nothing is created.
    #[error(transparent)]
    Journal(#[from] crate::ChangeError),
    /// An operation of the machine failed.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
    /// The kernel returned an error for a file or directory.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error that the kernel returned.
        source: io::Error,
    },
}

impl ArmError {
    /// Replaces the descriptor path `through` in the error by `shown`, the real name of the directory.
    pub(crate) fn named(self, through: &Path, shown: &Path) -> Self {
        let path = |path: PathBuf| match path.strip_prefix(through) {
            Ok(rest) => shown.join(rest),
            Err(_) => path,
        };
        let text = |text: String| {
            let (through, shown) = (through.to_string_lossy(), shown.to_string_lossy());
            text.replace(&format!("{through}/"), &format!("{shown}/"))
        };
        match self {
            Self::Space { dir, needed, free } => Self::Space {
                dir: path(dir),
                needed,
                free,
            },
            Self::Tool { program, complaint } => Self::Tool {
                program,
                complaint: text(complaint),
            },
            Self::Server { program, source } => {
                let said = source.to_string();
                let told = text(said.clone());
                // An error without a path through the descriptor stays unchanged, with its causes.
                let source = match told == said {
                    true => source,
                    false => told.into(),
                };
                Self::Server { program, source }
            }
            Self::Fill {
                path: file,
                written,
                size,
                source,
            } => Self::Fill {
                path: path(file),
                written,
                size,
                source,
            },
            Self::Io { path: file, source } => Self::Io {
                path: path(file),
                source,
            },
            other => other,
        }
    }

    /// Returns a function for `map_err` that adds `path` to a kernel error.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

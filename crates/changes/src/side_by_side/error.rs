//! Errors of building an arm.

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
        /// The program, or several programs of which one is required.
        program: String,
        /// Debian package.
        debian: &'static str,
        /// Fedora package.
        fedora: &'static str,
    },
    /// The operation requires root.
    #[error("{what} needs root: run assay with sudo")]
    NotRoot {
        /// Name of the operation.
        what: &'static str,
    },
    /// The definition of the arm has an option that assay refuses, or options that exclude each other.
    #[error("{what}: {source}")]
    Refused {
        /// The option, with control characters escaped.
        what: String,
        /// Reason and remedy.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The file system has too little free space.
    #[error("{}: {needed} are needed and {free} are free: choose another directory or a smaller size", .dir.display())]
    Space {
        /// The directory.
        dir: PathBuf,
        /// Bytes needed.
        needed: Bytes,
        /// Bytes free.
        free: Bytes,
    },
    /// A tool failed.
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
        /// The program.
        program: String,
        /// Error that shows the end or the timeout.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An image could not be filled completely.
    #[error("{}: after {written} of {size}: {source}", .path.display())]
    Fill {
        /// The image.
        path: PathBuf,
        /// Bytes written before the error.
        written: Bytes,
        /// Bytes requested.
        size: Bytes,
        /// Error of the server.
        source: io::Error,
    },
    /// Error of the journal; nothing is created without a journal.
    #[error(transparent)]
    Journal(#[from] crate::ChangeError),
    /// An operation of the machine failed.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
    /// The kernel returned an error.
    #[error("{}: {source}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl ArmError {
    /// Replaces the path `through` the file descriptor by the directory's real name `shown`.
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

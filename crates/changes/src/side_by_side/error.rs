//! Why an arm could not be made.

use assay_model::Bytes;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why an arm could not be made, or no longer answers.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// The user interrupted it.
    #[error("interrupted")]
    Cancelled,
    /// A tool is not installed.
    #[error(
        "{program} is not installed: `apt install {debian}` (Debian, Ubuntu, Proxmox) or `dnf install {fedora}` (Fedora, RHEL)"
    )]
    Missing {
        /// The program, or programs of which one is needed.
        program: String,
        /// Debian's package.
        debian: &'static str,
        /// Fedora's package.
        fedora: &'static str,
    },
    /// Only root may do it.
    #[error("{what} needs root: run assay with sudo")]
    NotRoot {
        /// What needs it.
        what: &'static str,
    },
    /// The arm asks for what assay will not do, or for what excludes itself.
    #[error("{what}: {source}")]
    Refused {
        /// What was asked for, control characters escaped.
        what: String,
        /// Why not, and what to do.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Too little room.
    #[error("{}: {needed} are needed and {free} are free: choose another directory or a smaller size", .dir.display())]
    Space {
        /// The directory.
        dir: PathBuf,
        /// Bytes needed.
        needed: Bytes,
        /// Bytes free.
        free: Bytes,
    },
    /// A tool said no.
    #[error("{program}: {complaint}")]
    Tool {
        /// The program, with its version where that decides what it knows.
        program: String,
        /// Its own words.
        complaint: String,
    },
    /// The server ended, or does not answer.
    #[error("{program} does not answer: {source}")]
    Server {
        /// The program.
        program: String,
        /// What is known.
        source: Box<dyn Error + Send + Sync>,
    },
    /// An image could not be written to its end.
    #[error("{}: after {written} of {size}: {source}", .path.display())]
    Fill {
        /// The image.
        path: PathBuf,
        /// Bytes written before.
        written: Bytes,
        /// Bytes wanted.
        size: Bytes,
        /// The server's answer.
        source: io::Error,
    },
    /// The journal, without which nothing is made.
    #[error(transparent)]
    Journal(#[from] crate::ChangeError),
    /// The machine gave no answer.
    #[error(transparent)]
    Host(#[from] assay_host::HostError),
    /// The kernel refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// File or directory.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl ArmError {
    /// A directory by the name that people know, `shown`, instead of the path `through` its
    /// descriptor.
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
                // What names no path through the descriptor stays as it is, with its causes.
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

    /// For `map_err`: the kernel's answer about `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

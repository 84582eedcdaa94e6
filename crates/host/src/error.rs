//! What can go wrong at the door: "it is not there" is kept apart from "it could not be read".

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a machine gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nothing has that name.
    #[error("{}: no such file or directory", path.display())]
    NotFound {
        /// What was looked for.
        path: PathBuf,
    },
    /// It may be there, but gave no answer.
    #[error("{}: {reason}", path.display())]
    Path {
        /// What was looked at.
        path: PathBuf,
        /// `errno`, when the kernel gave one.
        errno: Option<i32>,
        /// The kernel's words.
        reason: String,
    },
    /// The command is not installed.
    #[error("{name}: command not found")]
    NoCommand {
        /// Its name.
        name: String,
    },
    /// The command could not be run to its end.
    #[error("{argv}: {reason}")]
    Command {
        /// The command line.
        argv: String,
        /// What happened.
        reason: String,
    },
    /// The command took too long and was killed.
    #[error("{argv}: no end after {} s: killed", limit.as_secs_f32())]
    Timeout {
        /// The command line.
        argv: String,
        /// The limit.
        limit: Duration,
    },
    /// Nothing says what of this is harmless, so it is not read.
    #[error("{what}: withheld: no rule says what of it may be kept")]
    Withheld {
        /// The command line or path.
        what: String,
    },
    /// A captured directory has no answer to this.
    #[error("{what}: not in the captured directory")]
    NotCaptured {
        /// The command line or path.
        what: String,
    },
}

impl HostError {
    /// The same of `path`, the name that people know what was looked at by.
    #[must_use]
    pub fn named(self, path: &Path) -> Self {
        let path = path.to_owned();
        match self {
            Self::NotFound { .. } => Self::NotFound { path },
            Self::Path { errno, reason, .. } => Self::Path {
                path,
                errno,
                reason,
            },
            other => other,
        }
    }

    /// An error of the kernel about a path.
    #[must_use]
    pub fn io(path: &Path, error: &std::io::Error) -> Self {
        use std::io::ErrorKind::{NotADirectory, NotFound};
        match error.kind() {
            NotFound | NotADirectory => Self::NotFound {
                path: path.to_owned(),
            },
            _ => Self::Path {
                path: path.to_owned(),
                errno: error.raw_os_error(),
                reason: describe_io_error(error),
            },
        }
    }

    /// An error about a path that is not the kernel's.
    pub(crate) fn path(path: &Path, reason: impl Into<String>) -> Self {
        Self::Path {
            path: path.to_owned(),
            errno: None,
            reason: reason.into(),
        }
    }

    /// Somebody else was faster, and nothing was done.
    pub(crate) fn meanwhile(path: &Path, what: &str) -> Self {
        Self::Path {
            path: path.to_owned(),
            errno: Some(rustix::io::Errno::STALE.raw_os_error()),
            reason: format!("{what}: nothing was done, try again"),
        }
    }

    /// Whether somebody else changed the file at this moment, so that nothing was done.
    #[must_use]
    pub fn is_meanwhile(&self) -> bool {
        self.errno() == Some(rustix::io::Errno::STALE.raw_os_error())
    }

    /// Whether this says that the thing does not exist, rather than that it could not be read.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NoCommand { .. })
    }

    /// `errno`, when the kernel gave one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Path { errno, .. } => *errno,
            _ => None,
        }
    }

    /// Why, without the name of what was looked at.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::NotFound { .. } => "no such file or directory".to_owned(),
            Self::NoCommand { .. } => "command not found".to_owned(),
            Self::Path { reason, .. } | Self::Command { reason, .. } => reason.clone(),
            Self::Timeout { limit, .. } => {
                format!("no end after {} s: killed", limit.as_secs_f32())
            }
            Self::NotCaptured { .. } => "not in the captured directory".to_owned(),
            Self::Withheld { .. } => "withheld: no rule says what of it may be kept".to_owned(),
        }
    }
}

/// The kernel's words without `(os error 13)`.
fn describe_io_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// A command line as a reader would type it, for messages.
pub(crate) fn command_line(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    // An error is shown, stored and reported; a command of the user's may hold a password.
    assay_model::secrets::withhold_in_text(&words.join(" "))
}

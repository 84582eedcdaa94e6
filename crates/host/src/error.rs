//! Errors of host calls. They distinguish between a missing and an unreadable object.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reasons why a host call has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// The path does not exist.
    #[error("{}: no such file or directory", path.display())]
    NotFound {
        /// The missing path.
        path: PathBuf,
    },
    /// The path may exist, but cannot be read.
    #[error("{}: {reason}", path.display())]
    Path {
        /// The unreadable path.
        path: PathBuf,
        /// `errno`, if the kernel reported the error.
        errno: Option<i32>,
        /// Description of the error by the kernel.
        reason: String,
    },
    /// The command is not installed.
    #[error("{name}: command not found")]
    NoCommand {
        /// Name of the command.
        name: String,
    },
    /// The command did not end normally.
    #[error("{argv}: {reason}")]
    Command {
        /// Command line of the command.
        argv: String,
        /// Why the command could not run or did not end.
        reason: String,
    },
    /// The command was killed because its time limit expired.
    #[error("{argv}: no end after {} s: killed", limit.as_secs_f32())]
    Timeout {
        /// Command line of the command.
        argv: String,
        /// Time limit that expired.
        limit: Duration,
    },
    /// The content was not read, because it is not known to be harmless.
    #[error("{what}: withheld: no rule says what of it may be kept")]
    Withheld {
        /// The command line or path.
        what: String,
    },
    /// The capture does not contain the requested data.
    #[error("{what}: not in the captured directory")]
    NotCaptured {
        /// The command line or path.
        what: String,
    },
}

impl HostError {
    /// Replaces the path in the error by `path`, which is the path that the user knows.
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

    /// Converts a kernel error about a path.
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

    /// Builds an error about a path for a reason that assay found, not the kernel.
    pub(crate) fn path(path: &Path, reason: impl Into<String>) -> Self {
        Self::Path {
            path: path.to_owned(),
            errno: None,
            reason: reason.into(),
        }
    }

    /// Builds the error for a file that another process changed at the same time. assay has changed nothing in this
    /// case.
    pub(crate) fn meanwhile(path: &Path, what: &str) -> Self {
        Self::Path {
            path: path.to_owned(),
            errno: Some(rustix::io::Errno::STALE.raw_os_error()),
            reason: format!("{what}: nothing was done, try again"),
        }
    }

    /// Returns whether the error is that another process changed the file at the same time, so that assay changed
    /// nothing.
    #[must_use]
    pub fn is_meanwhile(&self) -> bool {
        self.errno() == Some(rustix::io::Errno::STALE.raw_os_error())
    }

    /// Returns whether the object does not exist. Returns false if it is only unreadable.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::NoCommand { .. })
    }

    /// Returns `errno` if the kernel reported the error.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Path { errno, .. } => *errno,
            _ => None,
        }
    }

    /// Returns the reason without the path or command.
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

/// Returns the kernel's description without `(os error 13)`.
fn describe_io_error(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Formats a command line as a user would type it in a shell.
pub(crate) fn command_line(argv: &[&OsStr]) -> String {
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    // Errors are shown, stored and reported, and a user's command may contain a password.
    assay_model::secrets::withhold_in_text(&words.join(" "))
}

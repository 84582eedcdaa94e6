//! Errors of changes and rollbacks; each message contains a remedy.

use assay_config::ConfError;
use assay_host::HostError;
use std::path::{Path, PathBuf};

/// Reason why a change, a rollback or a journal entry failed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The journal cannot be used, so nothing was changed.
    #[error(
        "{}: {source}; assay writes down there what it changes, before it does: set ASSAY_STATE to a directory that you may write",
        path.display()
    )]
    Journal {
        /// The file or directory that cannot be used.
        path: PathBuf,
        /// Error that the kernel returned.
        source: std::io::Error,
    },
    /// The journal file has a format that this version of assay does not support. The file is left unchanged.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The journal file.
        path: PathBuf,
        /// What is unexpected in the file.
        reason: String,
    },
    /// Another assay process is working on the target or setting.
    #[error("{what}: another assay is at work on it (process {pid}, {label}); wait for it to end")]
    Busy {
        /// Name of the target or setting.
        what: String,
        /// Process id of the other assay process.
        pid: u32,
        /// What the other process is doing.
        label: String,
    },
    /// Another assay process left changes, because it was killed or could not roll back a setting.
    #[error(
        "{what}: {label} left changes behind, because it was killed or could not revert them; revert them first with \
         `{}assay trial --recover`",
        place.as_deref().map(state_dir_prefix).unwrap_or_default()
    )]
    Pending {
        /// Name of the target or setting.
        what: String,
        /// What the other process was doing.
        label: String,
        /// State directory of the other process, if it differs from the one in use.
        place: Option<PathBuf>,
    },
    /// An assay process that was killed left the setting changed, and its journal is missing.
    #[error(transparent)]
    Orphan(Box<Orphan>),
    /// The saved copy of a configuration file is damaged or missing, and the original contents cannot be
    /// reconstructed.
    #[error(
        "{}: {reason}, so {} was left as it is; compare the two (diff), then `assay trial --recover --force` reverts only assay's own line, --accept leaves the file as it is",
        saved.display(),
        file.display()
    )]
    Saved {
        /// Path of the saved copy in the journal.
        saved: PathBuf,
        /// Path of the configuration file.
        file: PathBuf,
        /// What is wrong with the saved copy.
        reason: String,
    },
    /// The change is not possible, so nothing was changed.
    #[error("{what}: {reason}")]
    Refused {
        /// Name of the setting or object.
        what: String,
        /// Why the change is not possible, and what the user can do.
        reason: String,
    },
    /// The setting does not exist.
    #[error("{what}: {reason}")]
    Gone {
        /// Name of the setting.
        what: String,
        /// The file, device or name that assay looked for.
        reason: String,
    },
    /// After the change, the setting reads as another value. The change was rolled back.
    #[error("{what}: set to {wanted:?}, but it reads {found:?}")]
    ReadBack {
        /// Name of the setting.
        what: String,
        /// The value that assay set.
        wanted: String,
        /// The value that was read back.
        found: String,
    },
    /// The write succeeded, but the setting kept its old value.
    #[error("{what}: setting it to {wanted:?} changed nothing: it still reads {found:?}")]
    NoEffect {
        /// Name of the setting.
        what: String,
        /// The value that assay set.
        wanted: String,
        /// The value that was read before and after the write.
        found: String,
    },
    /// Another program changed the setting after assay did. The setting keeps the value of the other program.
    #[error(
        "{what}: reads {found:?}, which assay did not set: another program changed it in the meantime, so it is left unchanged (it was {original:?} before)"
    )]
    Meanwhile {
        /// Name of the setting.
        what: String,
        /// The value that the setting has now.
        found: String,
        /// The value before assay changed it.
        original: String,
    },
    /// A command of the setting failed.
    #[error("{what}: {command}: {reason}")]
    Command {
        /// Name of the setting.
        what: String,
        /// The command line that failed.
        command: String,
        /// Error message that the command printed.
        reason: String,
    },
    /// A configuration file cannot be parsed or edited.
    #[error("{}: {source}", path.display())]
    Config {
        /// Path of the configuration file.
        path: PathBuf,
        /// What cannot be parsed or edited.
        source: ConfError,
    },
    /// An operation of the machine failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A change failed, and rolling it back failed too. The change stays in the journal.
    #[error("{first}; and taking it back failed: {second}")]
    Twice {
        /// The error that the change returned.
        first: Box<ChangeError>,
        /// The error that the rollback returned.
        second: Box<ChangeError>,
    },
}

/// A setting that a killed assay process left changed, although the journal of that process is missing.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what}: an assay that was killed ({label}) changed it, and its journal {} is gone; it was {original:?} before and reads {found:?} now: set it as it shall be, then remove {}",
    journal.display(),
    note.display()
)]
pub struct Orphan {
    /// Name of the setting.
    pub what: String,
    /// What the killed process was doing when it changed the setting.
    pub label: String,
    /// Path of the missing journal.
    pub journal: PathBuf,
    /// The value before assay changed it.
    pub original: String,
    /// The value that the setting has now.
    pub found: String,
    /// The lock file that contains the note about the change.
    pub note: PathBuf,
}

/// Returns the assignment `ASSAY_STATE='…' ` to put before a command, so that the command uses this state directory.
fn state_dir_prefix(state: &Path) -> String {
    let text = state.display().to_string();
    format!("ASSAY_STATE='{}' ", text.replace('\'', "'\\''"))
}

impl ChangeError {
    pub(crate) fn journal(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Journal { path, source }
    }

    pub(crate) fn refused(what: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Refused {
            what: what.into(),
            reason: reason.into(),
        }
    }
}

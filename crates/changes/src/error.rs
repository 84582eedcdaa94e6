//! What can go wrong with a change, and the way out.

use assay_config::ConfError;
use assay_host::HostError;
use std::path::{Path, PathBuf};

/// Why something was not changed, not taken back, or not written down.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// The journal cannot be used. Nothing was changed.
    #[error(
        "{}: {source}; assay writes down there what it changes, before it does: set ASSAY_STATE to a directory that you may write",
        path.display()
    )]
    Journal {
        /// The file or directory.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// A file in the journal's place is not one that this assay understands. It is left alone.
    #[error("{}: {reason}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// Another assay is at work there.
    #[error("{what}: another assay is at work on it (process {pid}, {label}); wait for it to end")]
    Busy {
        /// The target or setting.
        what: String,
        /// Its process.
        pid: u32,
        /// What it does.
        label: String,
    },
    /// An assay that was killed, or that could not set something back, left it there.
    #[error(
        "{what}: {label} left changes behind, because it was killed or could not set them back; take them back first with `{}assay trial --recover`",
        place.as_deref().map(state_dir_prefix).unwrap_or_default()
    )]
    Pending {
        /// The target or setting.
        what: String,
        /// What it did.
        label: String,
        /// Its state directory, when it is another one.
        place: Option<PathBuf>,
    },
    /// An assay that was killed left it changed, and its journal is gone.
    #[error(transparent)]
    Orphan(Box<Orphan>),
    /// A configuration file as it was found is damaged or gone, and the file cannot be made again from
    /// what is known.
    #[error(
        "{}: {reason}, so {} was left as it is; compare the two (diff), then `assay trial --recover --force` sets back assay's own line alone, --accept leaves the file as it is",
        saved.display(),
        file.display()
    )]
    Saved {
        /// The copy in the journal.
        saved: PathBuf,
        /// The configuration file.
        file: PathBuf,
        /// What is wrong with the copy.
        reason: String,
    },
    /// It cannot be done, and nothing was touched.
    #[error("{what}: {reason}")]
    Refused {
        /// The setting or thing.
        what: String,
        /// Why, and the way out.
        reason: String,
    },
    /// It is not there.
    #[error("{what}: {reason}")]
    Gone {
        /// The setting.
        what: String,
        /// What was looked for.
        reason: String,
    },
    /// It was set, but the machine says something else; it was put back.
    #[error("{what}: set to {wanted:?}, but it reads {found:?}")]
    ReadBack {
        /// The setting.
        what: String,
        /// What was set.
        wanted: String,
        /// What is read.
        found: String,
    },
    /// It was set, and nothing changed.
    #[error("{what}: setting it to {wanted:?} changed nothing: it still reads {found:?}")]
    NoEffect {
        /// The setting.
        what: String,
        /// What was set.
        wanted: String,
        /// What is read, before and after.
        found: String,
    },
    /// Somebody else changed it meanwhile. It is left alone.
    #[error(
        "{what}: reads {found:?}, which assay did not set: somebody else changed it meanwhile, so it is left alone (it was {original:?} before)"
    )]
    Meanwhile {
        /// The setting.
        what: String,
        /// What is read.
        found: String,
        /// What it was before.
        original: String,
    },
    /// A command of the setting failed.
    #[error("{what}: {command}: {reason}")]
    Command {
        /// The setting.
        what: String,
        /// The command line.
        command: String,
        /// What it said.
        reason: String,
    },
    /// A configuration file cannot be understood or edited.
    #[error("{}: {source}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ConfError,
    },
    /// The machine gave no answer.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A change failed, and taking it back failed too. It stays in the journal.
    #[error("{first}; and taking it back failed: {second}")]
    Twice {
        /// What failed first.
        first: Box<ChangeError>,
        /// What failed then.
        second: Box<ChangeError>,
    },
}

/// A setting that an assay left changed, of which no journal tells any more.
#[derive(Debug, thiserror::Error)]
#[error(
    "{what}: an assay that was killed ({label}) changed it, and its journal {} is gone; it was {original:?} before and reads {found:?} now: set it as it shall be, then remove {}",
    journal.display(),
    note.display()
)]
pub struct Orphan {
    /// The setting.
    pub what: String,
    /// What the assay did.
    pub label: String,
    /// Where its journal was.
    pub journal: PathBuf,
    /// What it read before.
    pub original: String,
    /// What it reads now.
    pub found: String,
    /// The file that tells of it.
    pub note: PathBuf,
}

/// What to write before a command that shall look at another state directory.
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

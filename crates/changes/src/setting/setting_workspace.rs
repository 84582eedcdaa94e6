//! The working files for a change of a setting: a temporary name next to the configuration file, files in the session's
//! directory, and a note about the replacement of the file.

use crate::disk::{new_file, sync_dir};
use crate::error::ChangeError;
use assay_host::KnownFile;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Names and files that a session provides for the change of one setting.
pub(crate) struct Work {
    /// Path of the saved original contents.
    pub(crate) saved: PathBuf,
    /// Name of the temporary file in the directory of the configuration file.
    pub(crate) aside: OsString,
    /// Whether the user wants the original state restored, whatever the present state is.
    pub(crate) force: bool,
}

/// Hashes of a complete replacement and of the file that it replaces. A file with the temporary name and a third hash
/// was written by another program and moved there by an exchange.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotedCandidate {
    /// BLAKE3 hash of the complete replacement.
    pub(crate) candidate: String,
    /// Hash of the file from which the replacement was made; `None` on a machine in memory.
    pub(crate) before: Option<String>,
}

/// A directory that assay creates for a new file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NotedDirectory {
    /// Path of the directory.
    #[serde(with = "assay_host::path_json")]
    pub(crate) path: PathBuf,
    /// Identity of the directory; `None` if assay was killed while it created the directory.
    pub(crate) known: Option<KnownFile>,
}

impl Work {
    /// Returns the path of the note about the replacement. The note is removed with the session's directory.
    fn note(&self) -> PathBuf {
        self.saved.with_extension("candidate")
    }

    /// Records a complete replacement before it replaces the file.
    pub(crate) fn note_candidate(
        &self,
        candidate: &str,
        before: Option<&str>,
    ) -> Result<(), ChangeError> {
        let text = format!("{candidate} {}\n", before.unwrap_or("-"));
        write_note(&self.note(), text.as_bytes())
    }

    /// Returns the path of the note about created directories. The note is removed with the session's directory.
    fn directories_note(&self) -> PathBuf {
        self.saved.with_extension("directories")
    }

    /// Records the directories that assay creates, the outermost first.
    pub(crate) fn note_directories(&self, all: &[NotedDirectory]) -> Result<(), ChangeError> {
        let path = self.directories_note();
        let text =
            serde_json::to_vec(all).map_err(|error| ChangeError::journal(&path)(error.into()))?;
        write_note(&path, &text)
    }

    /// Reads the directories that assay created; usually none.
    pub(crate) fn noted_directories(&self) -> Result<Vec<NotedDirectory>, ChangeError> {
        let path = self.directories_note();
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| ChangeError::journal(&path)(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(ChangeError::journal(&path)(error)),
        }
    }

    /// Reads the note; `None` if no replacement is complete.
    pub(crate) fn noted_candidate(&self) -> Result<Option<NotedCandidate>, ChangeError> {
        let path = self.note();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ChangeError::journal(&path)(error)),
        };
        let mut words = text.split_whitespace().map(str::to_owned);
        let candidate = words.next().unwrap_or_default();
        let before = words.next().filter(|before| before != "-");
        Ok(Some(NotedCandidate { candidate, before }))
    }

    /// Removes the note before another replacement is created.
    pub(crate) fn forget_candidate(&self) -> Result<(), ChangeError> {
        let path = self.note();
        let forget = || -> io::Result<()> {
            match remove_if_there(&path)? {
                true => path.parent().map_or(Ok(()), sync_dir),
                false => Ok(()),
            }
        };
        forget().map_err(ChangeError::journal(&path))
    }
}

/// Writes a note atomically and durably.
fn write_note(path: &Path, bytes: &[u8]) -> Result<(), ChangeError> {
    let mut aside = path.as_os_str().to_owned();
    aside.push("-new");
    let aside = PathBuf::from(aside);
    let write = || -> io::Result<()> {
        remove_if_there(&aside)?;
        let mut file = new_file(&aside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&aside, path)?;
        path.parent().map_or(Ok(()), sync_dir)
    };
    write().map_err(ChangeError::journal(path))
}

/// Removes a file. Returns whether it existed.
fn remove_if_there(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

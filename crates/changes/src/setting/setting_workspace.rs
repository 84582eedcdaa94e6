//! What a session lends to a setting: names beside the file and in its own directory, and a note of the
//! replacement that is about to take the file's place.

use crate::disk::{new_file, sync_dir};
use crate::error::ChangeError;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;

/// What a session lends to a setting.
pub(crate) struct Work {
    /// Where the contents of the file are kept that were found.
    pub(crate) saved: PathBuf,
    /// A name for a file in between, in the directory of the file.
    pub(crate) aside: OsString,
    /// The user wants it set back whatever is there.
    pub(crate) force: bool,
}

/// A replacement that is whole, and what it is to replace. Whatever else is found beside the file came out of an
/// exchange, and somebody else wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotedCandidate {
    /// Hash of the replacement.
    pub(crate) candidate: String,
    /// Hash of the file that it was made from; nothing on a machine in memory.
    pub(crate) before: Option<String>,
}

impl Work {
    /// In the session's directory, and gone with it.
    fn note(&self) -> PathBuf {
        self.saved.with_extension("candidate")
    }

    /// Notes a replacement that is whole, before it takes the place of the file.
    pub(crate) fn note_candidate(
        &self,
        candidate: &str,
        before: Option<&str>,
    ) -> Result<(), ChangeError> {
        let path = self.note();
        let aside = path.with_extension("candidate-new");
        let text = format!("{candidate} {}\n", before.unwrap_or("-"));
        let note = || -> io::Result<()> {
            remove_if_there(&aside)?;
            let mut file = new_file(&aside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&aside, &path)?;
            path.parent().map_or(Ok(()), sync_dir)
        };
        note().map_err(ChangeError::journal(&path))
    }

    /// The note; nothing before a replacement is whole.
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

    /// Removes the note, before another replacement is made.
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

/// Removes a file; whether it was there.
fn remove_if_there(path: &std::path::Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

//! Removes a scratch file whose name no longer refers to it, because a user with write access to its directory renamed,
//! removed or replaced the file.

use super::Scratch;
use assay_host::HostError;
use assay_host::held::{Held, Removed};
use std::path::PathBuf;

/// A scratch file that another user or program moved while it was in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedFile {
    /// Path at which assay created the file.
    pub path: PathBuf,
    /// Where the file was found, or why it was not removed.
    pub end: MovedFileEnd,
}

/// What happened to a scratch file that was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MovedFileEnd {
    /// The file's name was removed or replaced. Nothing of the file remains.
    Unlinked,
    /// The file had another name in the same directory. assay removed the file.
    Renamed(PathBuf),
    /// The file was moved to another directory. Contains its path if the path was found. assay truncated the file, so
    /// that it uses no space.
    Elsewhere(Option<PathBuf>),
    /// The file still exists, because removing it failed with this error.
    Failed(HostError),
}

impl std::fmt::Display for MovedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.to_string_lossy();
        let path = path.escape_debug();
        let shown = |path: &PathBuf| path.to_string_lossy().escape_debug().to_string();
        match &self.end {
            MovedFileEnd::Unlinked => write!(
                f,
                "somebody removed the scratch file {path} while it was in use; nothing is left of it"
            ),
            MovedFileEnd::Renamed(now) => write!(
                f,
                "somebody renamed the scratch file {path} to {} while it was in use; it was removed",
                shown(now)
            ),
            MovedFileEnd::Elsewhere(now) => write!(
                f,
                "somebody moved the scratch file {path} or made another link to it while it was in use; it was emptied, and remove it{}",
                now.as_ref().map_or_else(
                    || " where it is (its name is not known)".to_owned(),
                    |now| format!(": {}", shown(now))
                )
            ),
            MovedFileEnd::Failed(error) => write!(
                f,
                "the scratch file {path} could not be removed, so remove it yourself: {error}"
            ),
        }
    }
}

/// Removes a scratch file. If its name no longer refers to it, searches another name in the same directory. If the file
/// was moved to another directory, truncates it. Changes no other file.
pub(super) fn remove(scratch: &Scratch) -> Option<MovedFile> {
    let end = match attempt(scratch) {
        Ok(end) => end?,
        Err(error) => MovedFileEnd::Failed(error),
    };
    Some(MovedFile {
        path: scratch.shown().to_owned(),
        end,
    })
}

fn attempt(scratch: &Scratch) -> Result<Option<MovedFileEnd>, HostError> {
    let (directory, held) = (&scratch.directory, &scratch.held);
    let meant = held.identity();
    let mut end = None;
    if directory.remove(&scratch.name, meant)? != Removed::Gone {
        end = Some(MovedFileEnd::Unlinked);
    }
    if is_unlinked(held)? {
        return Ok(end);
    }
    for name in directory.list()? {
        let same = directory
            .look(&name)
            .is_ok_and(|found| found == Some(meant));
        if same && directory.remove(&name, meant)? == Removed::Gone {
            end = Some(MovedFileEnd::Renamed(directory.shown().join(name)));
        }
    }
    if is_unlinked(held)? {
        return Ok(end);
    }
    // The data belongs to assay alone, whatever names the file has.
    let emptied = held.file().set_len(0);
    match emptied {
        Ok(()) => Ok(Some(MovedFileEnd::Elsewhere(held.whereabouts()))),
        Err(error) => Err(HostError::Path {
            path: held
                .whereabouts()
                .unwrap_or_else(|| held.shown().to_owned()),
            errno: error.raw_os_error(),
            reason: error.to_string(),
        }),
    }
}

/// Returns whether the file has no name any more. Some network file systems give a removed file that is still open a
/// temporary name (`.nfs…`), which disappears with the descriptor.
fn is_unlinked(held: &Held) -> Result<bool, HostError> {
    let hidden = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(".nfs") || name.starts_with(".fuse_hidden")
    };
    Ok(held.names()? == 0 || held.whereabouts().is_some_and(hidden))
}

//! Creates scratch files and work directories that are removed even if assay is killed.
//!
//! Every session has a directory below the state directory, with a lock that the kernel releases when the process ends
//! for any reason. A scratch file is recorded in this directory durably before it is created. At the next start,
//! [`ScratchRegistry::sweep`] removes the files of sessions whose lock is free. The scratch file itself is locked too,
//! so that an abandoned file is recognised even without the state directory ([`sweep_directory`]).
//!
//! The directory of a scratch file may belong to another user than the one who runs assay, and this user may rename
//! files at any time. Therefore assay uses the file through its descriptor from its creation on, and removes the file
//! only while its name still refers to it. The identity of the file is recorded before the file has a name, so that a
//! sweep finds the file after a move.

mod list;
mod moved_files;
mod sweep;

pub use moved_files::{MovedFile, MovedFileEnd};
pub use sweep::{Swept, sweep_directory};

use assay_host::held::{Access, Directory, Held};
use assay_host::{HostError, KnownFile};
use list::{Entry, List};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PREFIX: &str = ".assay-";
const SUFFIX: &str = ".scratch";
const LOCK: &str = "lock";

/// Reason why scratch space is unavailable.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The state directory cannot be used.
    #[error(
        "{path}: {source}; assay keeps track of its scratch files there: set ASSAY_STATE to a directory that you may write"
    )]
    State {
        /// Path of the directory or file.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
    /// An entry of the state directory cannot be used.
    #[error(
        "{source}; assay keeps track of its scratch files there: set ASSAY_STATE to a directory that you may write"
    )]
    Session {
        /// Path of the entry, and the reason.
        source: HostError,
    },
    /// Another assay process works on the same run.
    #[error("another assay is working on this run now")]
    Busy,
    /// The scratch file cannot be created.
    #[error("cannot create the scratch file: {source}")]
    Create {
        /// Path of the file, and error of the kernel.
        #[from]
        source: HostError,
    },
}

/// The directory in which each session has its own directory.
#[derive(Clone, Debug)]
pub struct ScratchRegistry {
    root: PathBuf,
}

/// A session, in which scratch files are created. Dropping the session removes its scratch files.
#[derive(Debug)]
pub struct ScratchSession {
    uid: String,
    path: PathBuf,
    dir: Directory,
    entry: Arc<SessionEntry>,
}

/// Directory and lock of a session. The directory is removed when the session and all its scratch files are dropped.
#[derive(Debug)]
struct SessionEntry {
    path: PathBuf,
    /// Whether a scratch file could not be removed, so that the directory must stay.
    left: AtomicBool,
    _lock: File,
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        // A file that could not be removed stays recorded for the next start.
        if !self.left.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// An open scratch file. Dropping the value removes the file; [`Scratch::remove`] also reports whether the file was
/// moved.
#[derive(Debug)]
pub struct Scratch {
    directory: Arc<Directory>,
    name: OsString,
    held: Held,
    removed: bool,
    entry: Arc<SessionEntry>,
}

impl ScratchRegistry {
    /// Uses `root` as the registry. If `root` is missing, creates it so that no other user can access it.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn open(root: &Path) -> Result<Self, ScratchError> {
        let sessions = root.join("sessions");
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&sessions)
            .map_err(|source| ScratchError::State {
                path: sessions.clone(),
                source,
            })?;
        Ok(Self { root: sessions })
    }

    /// Uses `root` as the registry if it exists; else returns `None`.
    #[must_use]
    pub fn existing(root: &Path) -> Option<Self> {
        let sessions = root.join("sessions");
        sessions.is_dir().then_some(Self { root: sessions })
    }

    /// Starts the session with this name, which is the uid of the run.
    ///
    /// # Errors
    /// [`ScratchError::Busy`] if another process runs this session.
    pub fn begin(&self, uid: &str) -> Result<ScratchSession, ScratchError> {
        let fail = |source| ScratchError::Session { source };
        let root = Directory::open(&self.root).map_err(fail)?;
        loop {
            let dir = match root.make(OsStr::new(uid)) {
                Err(error) if is(&error, Errno::EXIST) => root.below(Path::new(uid)),
                other => other,
            };
            let dir = match dir {
                // A sweep removed the directory in between.
                Err(error) if error.is_absent() => continue,
                other => other.map_err(fail)?,
            };
            let lock = match dir.create(OsStr::new(LOCK)) {
                Err(error) if is(&error, Errno::EXIST) => {
                    dir.file(OsStr::new(LOCK), Access::ReadWrite)
                }
                other => other,
            };
            let lock = match lock {
                Err(error) if error.is_absent() => continue,
                other => other.map_err(fail)?,
            };
            if flock(lock.file(), FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(ScratchError::Busy);
            }
            if lock.names().map_err(fail)? > 0 {
                return Ok(ScratchSession {
                    uid: uid.to_owned(),
                    entry: Arc::new(SessionEntry {
                        path: self.root.join(uid),
                        left: AtomicBool::new(false),
                        _lock: lock.into_file(),
                    }),
                    path: self.root.join(uid),
                    dir,
                });
            }
        }
    }
}

fn is(error: &HostError, errno: Errno) -> bool {
    error.errno() == Some(errno.raw_os_error())
}

/// Returns whether a name is the name of a session, that is a run's uid with 128 bits in hexadecimal.
fn is_uid(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn scratch_name(uid: &str) -> OsString {
    format!("{PREFIX}{uid}{SUFFIX}").into()
}

impl ScratchSession {
    /// Returns a directory for job files and logs. It is removed at the end of the session.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.path
    }

    /// Creates an empty scratch file in `directory`.
    ///
    /// # Errors
    /// The state directory or `directory` cannot be used.
    pub fn scratch(&self, directory: &Arc<Directory>) -> Result<Scratch, ScratchError> {
        let name = scratch_name(&self.uid);
        let session = |source| ScratchError::Session { source };
        let list = List::open(&self.dir).map_err(session)?;
        let enter = |known| {
            let entry = Entry {
                // The real path: the user's path may lead elsewhere at the time of a sweep.
                path: directory.whereabouts().join(&name),
                known,
            };
            list.enter(&entry).map_err(|source| ScratchError::State {
                path: self.path.join(list::NAME),
                source,
            })
        };
        enter(None)?;
        let held = directory.create_known::<ScratchError>(&name, &mut |held| {
            enter(Some(KnownFile::of(held.file()).map_err(session)?))
        })?;
        // Some network file systems have no locks; the session's lock remains.
        let _ = flock(held.file(), FlockOperation::NonBlockingLockExclusive);
        Ok(Scratch {
            directory: directory.clone(),
            name,
            held,
            removed: false,
            entry: Arc::clone(&self.entry),
        })
    }
}

impl Scratch {
    /// Returns the path at which the file was created, for messages. Since then, the name may have been given to
    /// another file.
    #[must_use]
    pub fn shown(&self) -> &Path {
        self.held.shown()
    }

    /// Returns the open file. Other programs and threads use this file through [`Held::through`] or [`Held::reopen`].
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Removes the file. If the file's name no longer referred to the file, returns what happened to it; else `None`.
    #[must_use]
    pub fn remove(mut self) -> Option<MovedFile> {
        self.remove_now()
    }

    fn remove_now(&mut self) -> Option<MovedFile> {
        self.removed = true;
        let astray = moved_files::remove(self);
        let end = astray.as_ref().map(|astray| &astray.end);
        if matches!(
            end,
            Some(MovedFileEnd::Failed(_) | MovedFileEnd::Elsewhere(_))
        ) {
            self.entry.left.store(true, Ordering::Relaxed);
        }
        astray
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.removed {
            let _ = self.remove_now();
        }
    }
}

#[cfg(test)]
mod tests;

//! Scratch files and work directories that do not outlive a killed assay.
//!
//! Every session has a directory below the state directory, with a lock that the kernel releases
//! when the process ends, however it ends. A scratch file is entered there, durably, before it is
//! created. [`State::sweep`] at the next start removes what belongs to sessions whose lock is
//! free. The scratch file is locked too, so that it is recognised as abandoned from its own
//! directory when the state directory is gone ([`sweep_directory`]).
//!
//! The directory belongs to whoever owns it, and that may be another user than the one who runs assay:
//! names in it may be exchanged at any moment. So the file is held by its descriptor from its creation
//! on, nothing is opened by its name again, and it is removed only as long as the name stands for it.
//! Which file it is, is entered before it has a name: wherever it is moved, a sweep finds it.

mod list;
mod moved_files;
mod sweep;

pub use moved_files::{Astray, MovedFileEnd};
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

/// Why scratch space could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    /// The state directory cannot be used.
    #[error(
        "{path}: {source}; assay keeps track of its scratch files there: set ASSAY_STATE to a directory that you may write"
    )]
    State {
        /// The directory or file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Something in the state directory cannot be used.
    #[error(
        "{source}; assay keeps track of its scratch files there: set ASSAY_STATE to a directory that you may write"
    )]
    Session {
        /// What, and why.
        source: HostError,
    },
    /// Another assay works on the same run.
    #[error("another assay is working on this run now")]
    Busy,
    /// The scratch file cannot be created.
    #[error("cannot create the scratch file: {source}")]
    Create {
        /// The file, and the kernel's answer.
        #[from]
        source: HostError,
    },
}

/// Where sessions are entered.
#[derive(Clone, Debug)]
pub struct ScratchRegistry {
    root: PathBuf,
}

/// A session: it may create scratch files until it is dropped, and they go with it.
#[derive(Debug)]
pub struct ScratchSession {
    uid: String,
    path: PathBuf,
    dir: Directory,
    entry: Arc<SessionEntry>,
}

/// The directory of a session, with its lock. It goes with the last of the session and its scratch files.
#[derive(Debug)]
struct SessionEntry {
    path: PathBuf,
    /// Whether a scratch file could not be removed.
    left: AtomicBool,
    _lock: File,
}

impl Drop for SessionEntry {
    fn drop(&mut self) {
        // What could not be removed stays entered, and the next start tries it again.
        if !self.left.load(Ordering::Relaxed) {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A scratch file, held. It is removed on drop; [`Scratch::remove`] also tells what became of it.
#[derive(Debug)]
pub struct Scratch {
    directory: Arc<Directory>,
    name: OsString,
    held: Held,
    removed: bool,
    entry: Arc<SessionEntry>,
}

impl ScratchRegistry {
    /// Uses `root`, creating it for this user alone when it is missing.
    ///
    /// # Errors
    /// When it cannot be created.
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

    /// Uses `root` where there is one; nothing is made.
    #[must_use]
    pub fn existing(root: &Path) -> Option<Self> {
        let sessions = root.join("sessions");
        sessions.is_dir().then_some(Self { root: sessions })
    }

    /// Begins the session of that name (the run's uid).
    ///
    /// # Errors
    /// [`ScratchError::Busy`] when it is going on elsewhere.
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

/// Whether it is the name of a session: that of a run, 128 bits in hexadecimal.
fn is_uid(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn scratch_name(uid: &str) -> OsString {
    format!("{PREFIX}{uid}{SUFFIX}").into()
}

impl ScratchSession {
    /// A directory for job files and logs that goes with the session.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.path
    }

    /// Creates an empty scratch file in a directory.
    ///
    /// # Errors
    /// When the state directory or `directory` refuses.
    pub fn scratch(&self, directory: &Arc<Directory>) -> Result<Scratch, ScratchError> {
        let name = scratch_name(&self.uid);
        let session = |source| ScratchError::Session { source };
        let list = List::open(&self.dir).map_err(session)?;
        let enter = |known| {
            let entry = Entry {
                // Where it really is: by the time that it is swept, the way that the user named may
                // lead somewhere else.
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
        // Best effort: some network file systems have no locks; the session's lock remains.
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
    /// Where it was made, for messages: the name may be another file's by now.
    #[must_use]
    pub fn shown(&self) -> &Path {
        self.held.shown()
    }

    /// The file itself. What is to work on it gets [`Held::through`] or [`Held::reopen`].
    #[must_use]
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Removes the file. Says so when it was not under its name any more.
    #[must_use]
    pub fn remove(mut self) -> Option<Astray> {
        self.remove_now()
    }

    fn remove_now(&mut self) -> Option<Astray> {
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

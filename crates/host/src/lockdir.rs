//! Locks that all assay processes of this machine share, whatever their state directory is.
//!
//! If root runs assay, the locks are in a directory that only root can write to. Therefore no other user can take a
//! lock first or replace it. The kernel releases a lock when its process ends. The note in the lock file remains, so
//! that the next process knows what a killed process was doing.

use crate::directory_owner;
use crate::error::HostError;
use crate::held::{Access, Directory, Held};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Maximum size of a note in a lock file in bytes.
const LONGEST: u64 = 64 << 10;

/// Number of attempts to take a lock that another process has. The next constant is the pause between them.
const LOCK_TRIES: u32 = 3;
const LOOK: Duration = Duration::from_millis(5);

/// A directory with lock files.
#[derive(Clone, Debug)]
pub struct LockDirectory {
    dir: Arc<Directory>,
}

/// A lock that this process has taken. When the value is dropped or the process ends, another process may take the lock
/// and read its note. [`Lock::release`] removes both the lock and the note.
#[derive(Debug)]
pub struct Lock {
    dir: Arc<Directory>,
    name: OsString,
    held: Held,
    left: String,
}

/// Result of trying to take a lock.
#[derive(Debug)]
pub enum Attempt {
    /// The lock was taken.
    Taken(Lock),
    /// A running process has the lock.
    Busy {
        /// Note of the process that has the lock.
        note: String,
    },
}

impl LockDirectory {
    /// Returns the directory of locks that last until the next boot. The directory is `/run/assay` for root and
    /// `/run/user/UID/assay` for other users, or `/tmp/assay-UID` if there is no such directory. In tests, it is
    /// `$ASSAY_LOCKS/assay-UID/boot`, so that a test does not see the locks of other processes.
    ///
    /// # Errors
    /// The directory cannot be created, or another user can write to it.
    pub fn of_machine() -> Result<Self, HostError> {
        if let Some(dir) = replacement("boot") {
            return Self::open(&dir);
        }
        let us = rustix::process::geteuid();
        let runtime = PathBuf::from(format!("/run/user/{}", us.as_raw()));
        Self::open(&match us.is_root() {
            true => PathBuf::from("/run/assay"),
            false if runtime.is_dir() => runtime.join("assay"),
            false => format!("/tmp/assay-{}", us.as_raw()).into(),
        })
    }

    /// Returns the directory of locks whose notes survive a reboot: `/var/lib/assay/locks` for root,
    /// `/var/tmp/assay-UID` for other users, and `$ASSAY_LOCKS/assay-UID/lasting` in tests.
    ///
    /// # Errors
    /// As [`LockDirectory::of_machine`].
    pub fn lasting() -> Result<Self, HostError> {
        if let Some(dir) = replacement("lasting") {
            return Self::open(&dir);
        }
        let us = rustix::process::geteuid();
        Self::open(&match us.is_root() {
            true => PathBuf::from("/var/lib/assay/locks"),
            false => format!("/var/tmp/assay-{}", us.as_raw()).into(),
        })
    }

    /// Opens a directory for locks. If the directory or its parent is missing, creates it with access for this user
    /// only.
    ///
    /// # Errors
    /// The directory cannot be created, is a link, or another user can write to it or replace it.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let way = |error: HostError| {
            let reason = format!(
                "{}; assay keeps its locks here, and nobody else may write them: make this directory yours alone",
                error.reason()
            );
            match error {
                HostError::Path { path, .. } | HostError::NotFound { path } => {
                    HostError::path(&path, reason)
                }
                other => other,
            }
        };
        directory_owner::check(path).map_err(way)?;
        let dir = make(path).map_err(way)?;
        let found =
            rustix::fs::fstat(&dir).map_err(|error| way(HostError::io(path, &error.into())))?;
        directory_owner::closed(path, &found).map_err(way)?;
        Ok(Self { dir: Arc::new(dir) })
    }

    /// Takes the lock of `key`, which may be any text. If another process has the lock, returns at once. If the last
    /// process that had the lock did not release it, the result contains the note of that process, see [`Lock::left`].
    ///
    /// # Errors
    /// The directory cannot be read or written, or another object has the lock's name.
    pub fn try_lock(&self, key: &str) -> Result<Attempt, HostError> {
        let name = lock_file_name(key);
        let mut patience = LOCK_TRIES;
        loop {
            let held = match self.dir.file(&name, Access::ReadWrite) {
                Err(HostError::NotFound { .. }) => match self.dir.create(&name) {
                    Err(error) if error.errno() == Some(Errno::EXIST.raw_os_error()) => continue,
                    other => other?,
                },
                other => other?,
            };
            let busy = match flock(held.file(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => false,
                Err(Errno::WOULDBLOCK) => true,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(HostError::io(held.shown(), &error.into())),
            };
            // The former holder may have released the lock and removed its file in between.
            if self.dir.look(&name)? != Some(held.identity()) {
                continue;
            }
            // The holder may only be reading the note, see `left`.
            if busy && patience > 0 {
                patience -= 1;
                std::thread::sleep(LOOK);
                continue;
            }
            let note = read(&held)?;
            return Ok(match busy {
                true => Attempt::Busy { note },
                false => Attempt::Taken(Lock {
                    dir: self.dir.clone(),
                    name,
                    held,
                    left: note,
                }),
            });
        }
    }

    /// Returns the files and notes of locks that no process has taken. Their processes were killed, or dropped the lock
    /// without releasing it.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn left(&self) -> Result<Vec<(PathBuf, String)>, HostError> {
        let mut notes = Vec::new();
        for name in self.dir.list()? {
            let held = match self.dir.file(&name, Access::Read) {
                Ok(held) => held,
                Err(HostError::NotFound { .. }) => continue,
                Err(error) => return Err(error),
            };
            // A shared lock that is released at once: a process that wants the lock now tries again.
            if flock(held.file(), FlockOperation::NonBlockingLockShared).is_ok() {
                notes.push((held.shown().to_owned(), read(&held)?));
            }
        }
        notes.retain(|(_, note)| !note.is_empty());
        Ok(notes)
    }
}

impl Lock {
    /// Returns the note of the last process that did not release the lock, for example because it was killed. Empty if
    /// there is none.
    #[must_use]
    pub fn left(&self) -> &str {
        &self.left
    }

    /// Returns the path of the lock file, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.held.shown()
    }

    /// Writes a note of one line, and waits until it is on disk.
    ///
    /// # Errors
    /// The note cannot be written.
    pub fn note(&self, note: &str) -> Result<(), HostError> {
        let file = self.held.file();
        let fail = |error: std::io::Error| HostError::io(self.held.shown(), &error);
        // Only the first line is read, so a kill during the write does no harm.
        let line = format!("{}\n", note.replace('\n', " "));
        file.write_all_at(line.as_bytes(), 0).map_err(fail)?;
        file.set_len(line.len() as u64).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        self.dir.sync()
    }

    /// Removes the note, and releases the lock.
    ///
    /// # Errors
    /// The file cannot be removed. The lock is released anyway.
    pub fn release(self) -> Result<(), HostError> {
        // Not synced: a note that reappears after a power cut is compared with the actual state.
        self.dir.remove(&self.name, self.held.identity()).map(drop)
    }
}

/// Returns the directory below `ASSAY_LOCKS`, if this variable is set.
fn replacement(name: &str) -> Option<PathBuf> {
    let all = PathBuf::from(std::env::var_os("ASSAY_LOCKS")?);
    let own = format!("assay-{}", rustix::process::geteuid().as_raw());
    Some(all.join(own).join(name))
}

/// Opens a directory. Creates the directory and its parent if they are missing.
fn make(path: &Path) -> Result<Directory, HostError> {
    let above = path.parent().unwrap_or(Path::new("/"));
    let parent = match Directory::open(above) {
        Err(HostError::NotFound { .. }) => {
            let higher = above.parent().unwrap_or(Path::new("/"));
            create_lock_directory(&Directory::open(higher)?, above)?
        }
        other => other?,
    };
    create_lock_directory(&parent, path)
}

fn create_lock_directory(parent: &Directory, path: &Path) -> Result<Directory, HostError> {
    let name = directory_owner::last_component(path)?;
    match parent.make(name) {
        Ok(made) => {
            parent.sync()?;
            Ok(made)
        }
        // It already exists, or another process was faster.
        Err(_) if parent.look(name)?.is_some() => parent.below(Path::new(name)),
        Err(error) => Err(error),
    }
}

/// Returns the file name of a lock. It is a valid name for any key, and always refers to a file in the directory.
fn lock_file_name(key: &str) -> OsString {
    let mut name = blake3::hash(key.as_bytes()).to_hex().to_string();
    name.truncate(32);
    name.into()
}

fn read(held: &Held) -> Result<String, HostError> {
    let mut file = held.file();
    let mut bytes = Vec::new();
    let fail = |error: std::io::Error| HostError::io(held.shown(), &error);
    std::io::Seek::rewind(&mut file).map_err(fail)?;
    file.take(LONGEST).read_to_end(&mut bytes).map_err(fail)?;
    let line = bytes.split(|byte| *byte == b'\n').next();
    Ok(String::from_utf8_lossy(line.unwrap_or_default()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn taken(dir: &LockDirectory, key: &str) -> Lock {
        match dir.try_lock(key).unwrap() {
            Attempt::Taken(lock) => lock,
            Attempt::Busy { note } => panic!("busy: {note}"),
        }
    }

    #[test]
    fn one_at_a_time_and_the_note_outlives_its_process() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("above/locks");
        let dir = LockDirectory::open(&path).unwrap();
        let lock = taken(&dir, "../a/b\n");
        assert_eq!(lock.left(), "");
        lock.note("a long note about what is done").unwrap();
        lock.note("process 7").unwrap();
        let again = LockDirectory::open(&path).unwrap();
        match again.try_lock("../a/b\n").unwrap() {
            Attempt::Busy { note } => assert_eq!(note, "process 7"),
            Attempt::Taken(_) => panic!("taken twice"),
        }
        let other = taken(&again, "another");
        // Same as when the process is killed.
        drop(lock);
        assert_eq!(again.left().unwrap()[0].1, "process 7");
        let lock = taken(&again, "../a/b\n");
        assert_eq!(lock.left(), "process 7");
        lock.release().unwrap();
        other.release().unwrap();
        assert!(dir.left().unwrap().is_empty());
        assert_eq!(taken(&dir, "../a/b\n").left(), "");
    }

    #[test]
    fn who_waits_at_a_removed_file_gets_no_lock_of_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = LockDirectory::open(&temp.path().join("locks")).unwrap();
        let inside = std::sync::atomic::AtomicU32::new(0);
        let (dir, inside) = (&dir, &inside);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(move || {
                    for _ in 0..200 {
                        if let Attempt::Taken(lock) = dir.try_lock("one").unwrap() {
                            let others = inside.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                            assert_eq!(others, 0);
                            inside.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                            lock.release().unwrap();
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn what_others_may_write_is_no_lock_directory() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("locks");
        LockDirectory::open(&path).unwrap();
        for mode in [0o755, 0o777, 0o1777, 0o770] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert!(LockDirectory::open(&path).is_err(), "{mode:o}");
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let link = temp.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(LockDirectory::open(&link).is_err());
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(LockDirectory::open(&file).is_err());
        // An object in place of the lock is neither followed nor waited for.
        let dir = LockDirectory::open(&path).unwrap();
        symlink(&file, path.join(lock_file_name("key"))).unwrap();
        assert!(dir.try_lock("key").is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"");
    }
}

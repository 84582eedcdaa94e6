//! Scratch files and work directories that do not outlive a killed assay.
//!
//! Every session has a directory below the state directory, with a lock that the kernel releases
//! when the process ends, however it ends. A scratch file is entered there, durably, before it is
//! created. [`State::sweep`] at the next start removes what belongs to sessions whose lock is
//! free. The scratch file is locked too, so that it is recognised as abandoned from its own
//! directory when the state directory is gone ([`sweep_directory`]).

use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const PREFIX: &str = ".assay-";
const SUFFIX: &str = ".scratch";
const LOCK: &str = "lock";
const LIST: &str = "scratch";

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
    /// Another assay works on the same run.
    #[error("another assay is working on this run now")]
    Busy,
    /// The scratch file cannot be created.
    #[error("{path}: cannot create the scratch file: {source}")]
    Create {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Where sessions are entered.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

/// Something that a killed session had left and that is gone now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The scratch file.
    pub path: PathBuf,
    /// Why it could not be removed, when it could not.
    pub error: Option<String>,
}

/// A session: it may create scratch files until it is dropped, and they go with it.
#[derive(Debug)]
pub struct Session {
    uid: String,
    dir: PathBuf,
    _lock: File,
}

/// A scratch file; removed on drop.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _lock: File,
}

impl State {
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

    /// Begins the session of that name (the run's uid).
    ///
    /// # Errors
    /// [`ScratchError::Busy`] when it is going on elsewhere.
    pub fn begin(&self, uid: &str) -> Result<Session, ScratchError> {
        let dir = self.root.join(uid);
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| ScratchError::State { path, source }
        };
        loop {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&dir)
                .map_err(fail(&dir))?;
            let path = dir.join(LOCK);
            let opened = File::options()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&path);
            let lock = match opened {
                // A sweep removed the directory in between.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(fail(&path))?,
            };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                return Err(ScratchError::Busy);
            }
            if lock.metadata().map_err(fail(&path))?.nlink() > 0 {
                return Ok(Session {
                    uid: uid.to_owned(),
                    dir,
                    _lock: lock,
                });
            }
        }
    }

    /// Removes what killed sessions left. Says what was found; nothing to find is the usual case.
    #[must_use]
    pub fn sweep(&self) -> Vec<Swept> {
        let mut swept = Vec::new();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let dir = entry.path();
            let uid = entry.file_name();
            // The directory may be one that somebody else uses too.
            if !is_uid(uid.as_bytes()) {
                continue;
            }
            let Ok(lock) = File::open(dir.join(LOCK)) else {
                continue;
            };
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let list = fs::read(dir.join(LIST)).unwrap_or_default();
            let mut left = false;
            for path in list
                .split(|byte| *byte == 0)
                .filter(|path| !path.is_empty())
            {
                let path = PathBuf::from(OsString::from_vec(path.to_vec()));
                if path.file_name() != Some(&*scratch_name(&uid.to_string_lossy())) {
                    continue;
                }
                match fs::remove_file(&path) {
                    Ok(()) => swept.push(Swept { path, error: None }),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => {
                        // Not mounted now, perhaps: kept on the list for the next start.
                        left = true;
                        swept.push(Swept {
                            path,
                            error: Some(error.to_string()),
                        });
                    }
                }
            }
            if !left {
                let _ = fs::remove_dir_all(&dir);
            }
        }
        swept
    }
}

/// Whether it is the name of a session: that of a run, 128 bits in hexadecimal.
fn is_uid(name: &[u8]) -> bool {
    name.len() == 32 && name.iter().all(u8::is_ascii_hexdigit)
}

fn scratch_name(uid: &str) -> OsString {
    format!("{PREFIX}{uid}{SUFFIX}").into()
}

/// Removes abandoned scratch files from a directory itself: those named as assay names them and
/// locked by nobody.
#[must_use]
pub fn sweep_directory(dir: &Path) -> Vec<Swept> {
    let mut swept = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let uid = name.as_bytes().strip_prefix(PREFIX.as_bytes());
        let Some(uid) = uid.and_then(|rest| rest.strip_suffix(SUFFIX.as_bytes())) else {
            continue;
        };
        if !is_uid(uid) || !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let path = entry.path();
        let Ok(file) = File::open(&path) else {
            continue;
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let error = fs::remove_file(&path).err().map(|error| error.to_string());
            swept.push(Swept { path, error });
        }
    }
    swept
}

impl Session {
    /// A directory for job files and logs that goes with the session.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates an empty scratch file in `directory`, which must exist.
    ///
    /// # Errors
    /// When the state directory or `directory` refuses.
    pub fn scratch(&self, directory: &Path) -> Result<Scratch, ScratchError> {
        let path = directory.join(scratch_name(&self.uid));
        let list = self.dir.join(LIST);
        let enter = || -> io::Result<()> {
            let mut list = File::options()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&list)?;
            list.write_all(path.as_os_str().as_bytes())?;
            list.write_all(b"\0")?;
            list.sync_all()?;
            File::open(&self.dir)?.sync_all()
        };
        enter().map_err(|source| ScratchError::State {
            path: list.clone(),
            source,
        })?;
        let create = || -> io::Result<File> {
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            // Best effort: some network file systems have no locks; the session's lock remains.
            let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
            Ok(file)
        };
        match create() {
            Ok(file) => Ok(Scratch { path, _lock: file }),
            Err(source) => Err(ScratchError::Create { path, source }),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

impl Scratch {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_session_takes_its_files_with_it() {
        let (state, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let state = State::open(state.path()).unwrap();
        let session = state.begin(UID).unwrap();
        let scratch = session.scratch(target.path()).unwrap();
        assert!(scratch.path().exists());
        assert!(matches!(state.begin(UID), Err(ScratchError::Busy)));
        assert_eq!(state.sweep(), [], "a live session is left alone");
        assert_eq!(sweep_directory(target.path()), []);
        drop((scratch, session));
        assert_eq!(fs::read_dir(target.path()).unwrap().count(), 0);
        assert_eq!(fs::read_dir(&state.root).unwrap().count(), 0);
    }

    #[test]
    fn what_a_kill_left_is_found_from_both_sides() {
        for lose_state in [false, true] {
            let (state_dir, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let state = State::open(state_dir.path()).unwrap();
            let session = state.begin(UID).unwrap();
            let scratch = session.scratch(target.path()).unwrap();
            let path = scratch.path().to_owned();
            // As kill -9 leaves it: descriptors closed, no destructor run.
            let (Scratch { _lock: file, .. }, Session { _lock: session, .. }) = (
                &*Box::leak(Box::new(scratch)),
                &*Box::leak(Box::new(session)),
            );
            for held in [file, session] {
                flock(held, FlockOperation::Unlock).unwrap();
            }
            fs::write(target.path().join("mine.scratch"), "x").unwrap();
            let swept = if lose_state {
                sweep_directory(target.path())
            } else {
                state.sweep()
            };
            assert_eq!(swept, [Swept { path, error: None }]);
            assert_eq!(
                fs::read_dir(target.path()).unwrap().count(),
                1,
                "nobody else's file"
            );
        }
    }

    #[test]
    fn a_forged_list_removes_nothing_else() {
        let (state_dir, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let state = State::open(state_dir.path()).unwrap();
        let precious = target.path().join("precious");
        fs::write(&precious, "x").unwrap();
        let dir = state.root.join(UID);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join(LOCK), "").unwrap();
        fs::write(dir.join(LIST), precious.as_os_str().as_bytes()).unwrap();
        assert_eq!(state.sweep(), []);
        assert!(precious.exists());
    }

    #[test]
    fn a_missing_directory_is_not_created() {
        let state = tempfile::tempdir().unwrap();
        let session = State::open(state.path()).unwrap().begin(UID).unwrap();
        let error = session
            .scratch(Path::new("/nonexistent/dir"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("/nonexistent/dir") && error.contains("No such file"),
            "{error}"
        );
    }
}

//! Changes that the user keeps and may roll back later.
//!
//! A session that is kept is moved unchanged from `sessions` to `kept` with one rename(2). Until the rename, recovery
//! rolls the session back if its process ends. After the rename, the session stays until the user requests a rollback.
//! It is then moved back to `sessions`, so that an interrupted rollback can be continued.

use crate::disk::{PREFIX, make_dir, new_file, sync_dir};
use crate::error::ChangeError;
use crate::journal::{Journal, tell};
use crate::recover::{Foreign, Recovered, take_back};
use crate::session::ChangeSession;
use crate::stored::{Stored, load};
use assay_host::{HostMut, ProcessId};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the file that marks a session which waits for the user's confirmation.
const WAITS: &str = "waits";
/// Name of the file that marks a session which the user has confirmed.
const CONFIRMED: &str = "confirmed";

/// A session whose changes were kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSession {
    /// Number of the session, with which it can be rolled back.
    pub uid: String,
    /// What the session did, for messages.
    pub label: String,
    /// Target on which the session worked.
    pub target: String,
    /// Time at which the session began, in seconds since 1970.
    pub begun: u64,
    /// Descriptions of the session's changes, oldest first.
    pub what: Vec<String>,
}

/// A live session that waits for the user's confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Number of the session, with which it can be confirmed.
    pub uid: String,
    /// What the session did, for messages.
    pub label: String,
}

/// State of a session that was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionState {
    /// The session no longer exists, because it was kept or rolled back.
    Gone,
    /// A process uses the session: the process that began it, or a process that rolls it back.
    Live {
        /// The process that holds the session's lock; `None` if the kernel does not report it.
        holder: Option<ProcessId>,
    },
    /// The session's process has ended without rolling back its changes.
    Left,
}

impl ChangeSession {
    /// Returns the number of the session, which identifies it in its journal directory.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.header().uid
    }

    /// Keeps all changes of the session ([`crate::Switch::leave`]) until [`Journal::take_back_kept`]. This
    /// ends the session.
    ///
    /// # Errors
    /// The journal cannot be written. Nothing is kept then, and the caller must close the session.
    pub fn put_by(&self) -> Result<(), ChangeError> {
        let journal = self.journal().clone();
        let _mutex = journal.mutex()?;
        let kept = journal.kept_dir();
        make_dir(&kept)?;
        for name in [WAITS, CONFIRMED] {
            remove(&self.dir().join(name))?;
        }
        // The locks of the settings are released first, because their notes would otherwise refer to a
        // journal that has moved. If assay is killed in between, recovery takes the locks again.
        let claims = std::mem::take(&mut *self.claims());
        for claim in claims.into_values() {
            claim.release()?;
        }
        moved(self.dir(), &kept)?;
        self.let_go();
        Ok(())
    }

    /// Marks the session as waiting for [`Journal::confirm`].
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn wait_for_confirmation(&self) -> Result<(), ChangeError> {
        let path = self.dir().join(WAITS);
        new_file(&path)
            .map(drop)
            .map_err(ChangeError::journal(&path))
    }

    /// Whether the user has confirmed.
    #[must_use]
    pub fn is_confirmed(&self) -> bool {
        self.dir().join(CONFIRMED).exists()
    }
}

impl Journal {
    /// Returns the live sessions that wait for a confirmation.
    ///
    /// # Errors
    /// The directory cannot be read, or contains data of an unknown format.
    pub fn waiting(&self) -> Result<Vec<Waiting>, ChangeError> {
        let _mutex = self.mutex()?;
        let live = |stored: &Stored| stored.locks.is_none() && stored.dir.join(WAITS).exists();
        let all = self.stored()?.into_iter().filter(live);
        let waiting = all.filter_map(|stored| {
            let header = stored.found?.header;
            Some(Waiting {
                uid: header.uid,
                label: header.label,
            })
        });
        Ok(waiting.collect())
    }

    /// Confirms a session that waits for a confirmation.
    ///
    /// # Errors
    /// The session does not exist, or the journal cannot be written.
    pub fn confirm(&self, uid: &str) -> Result<(), ChangeError> {
        let path = self.session_dir(&self.sessions(), uid)?.join(CONFIRMED);
        match new_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            other => other.map(drop).map_err(ChangeError::journal(&path)),
        }
    }

    /// Returns the sessions whose changes were kept, newest first; usually none.
    ///
    /// # Errors
    /// The directory cannot be read, or contains data of an unknown format.
    pub fn kept(&self) -> Result<Vec<KeptSession>, ChangeError> {
        let mut kept = Vec::new();
        for dir in self.kept_dirs()? {
            let Some(found) = load(dir)?.and_then(|stored| stored.found) else {
                continue;
            };
            kept.push(KeptSession {
                uid: found.header.uid,
                label: found.header.label,
                target: found.header.target,
                begun: found.header.begun,
                what: found.state.open().map(|(_, entry)| tell(entry)).collect(),
            });
        }
        kept.sort_by_key(|one| std::cmp::Reverse((one.begun, one.uid.clone())));
        Ok(kept)
    }

    /// Rolls back the kept changes of a session, newest first. A setting that another program has changed
    /// since then is left unchanged unless `foreign` requests otherwise; the session then waits for
    /// [`Journal::recover`].
    ///
    /// # Errors
    /// The session does not exist, its journal is damaged, another assay process works on the same target, or
    /// the journal cannot be written.
    pub fn take_back_kept(
        &self,
        uid: &str,
        host: &dyn HostMut,
        foreign: Foreign,
    ) -> Result<Vec<Recovered>, ChangeError> {
        let session = {
            let _mutex = self.mutex()?;
            let dir = self.session_dir(&self.kept_dir(), uid)?;
            let stored = load(dir.clone())?;
            let Some(found) = stored.and_then(|stored| stored.found) else {
                return Err(no_such_session(uid));
            };
            if let Some(damage) = found.damage.first() {
                let reason = format!(
                    "{damage}; nothing was reverted. Files ending in .saved in {} are configuration files as they were found",
                    dir.display()
                );
                return Err(ChangeError::refused(found.header.label, reason));
            }
            let target = found.header.target.clone();
            self.free(&target, None, |header, _| header.target == target)?;
            moved(&dir, &self.sessions())?;
            let dir = self.session_dir(&self.sessions(), uid)?;
            match load(dir.clone())? {
                Some(Stored {
                    found: Some(found),
                    locks: Some(locks),
                    ..
                }) => ChangeSession::resume(self.clone(), dir, found, locks)?,
                _ => return Err(no_such_session(uid)),
            }
        };
        take_back(&session, host, foreign, true)
    }

    /// Rolls back one session whose process has ended. Called by the stand-by process of a change that may lock the
    /// user out.
    ///
    /// # Errors
    /// As [`Journal::recover`].
    pub fn recover_session(
        &self,
        uid: &str,
        host: &dyn HostMut,
    ) -> Result<Vec<Recovered>, ChangeError> {
        let stored = {
            let _mutex = self.mutex()?;
            let dir = self.sessions().join(format!("{PREFIX}{uid}"));
            match dir.is_dir() {
                true => load(dir)?,
                false => None,
            }
        };
        match stored {
            Some(stored) => self.recover_stored(stored, host, Foreign::Leave),
            None => Ok(Vec::new()),
        }
    }

    /// Whether the session exists although its process has ended.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn is_left(&self, uid: &str) -> Result<bool, ChangeError> {
        let _mutex = self.mutex()?;
        let dir = self.sessions().join(format!("{PREFIX}{uid}"));
        if !dir.is_dir() {
            return Ok(false);
        }
        Ok(load(dir)?.is_some_and(|stored| stored.locks.is_some()))
    }

    /// Returns the state of a session that was begun.
    ///
    /// # Errors
    /// The session cannot be read.
    pub fn standing(&self, uid: &str) -> Result<SessionState, ChangeError> {
        let _mutex = self.mutex()?;
        let dir = self.sessions().join(format!("{PREFIX}{uid}"));
        if !dir.is_dir() {
            return Ok(SessionState::Gone);
        }
        Ok(match load(dir.clone())? {
            None => SessionState::Gone,
            Some(Stored { locks: Some(_), .. }) => SessionState::Left,
            Some(Stored { found, .. }) => {
                let pid = found.map(|found| found.state.resumed.unwrap_or(found.header.pid));
                let holder = pid
                    .filter(|pid| holds_file_in(*pid, &dir))
                    .and_then(ProcessId::of);
                SessionState::Live { holder }
            }
        })
    }

    fn kept_dir(&self) -> PathBuf {
        self.dir().join("kept")
    }

    fn kept_dirs(&self) -> Result<Vec<PathBuf>, ChangeError> {
        let dir = self.kept_dir();
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(ChangeError::journal(&dir))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(ChangeError::journal(&dir))?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                found.push(entry.path());
            }
        }
        Ok(found)
    }

    /// Returns the directory of a session. Checks the number, because it comes from the user or from another process.
    fn session_dir(&self, below: &Path, uid: &str) -> Result<PathBuf, ChangeError> {
        let plain = !uid.is_empty() && uid.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let dir = below.join(format!("{PREFIX}{uid}"));
        match plain && dir.is_dir() {
            true => Ok(dir),
            false => Err(no_such_session(uid)),
        }
    }
}

/// Whether a process has an open file in that directory. The check is needed because the process id may have been
/// reused.
fn holds_file_in(pid: u32, dir: &Path) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    open.flatten()
        .filter_map(|one| fs::read_link(one.path()).ok())
        .any(|file| file.starts_with(dir))
}

fn no_such_session(uid: &str) -> ChangeError {
    let what = format!("change {}", uid.escape_debug());
    ChangeError::refused(what, "there is no such change any more")
}

fn remove(path: &Path) -> Result<(), ChangeError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(ChangeError::journal(path)),
    }
}

/// Moves a session to another directory atomically and durably.
fn moved(dir: &Path, to: &Path) -> Result<(), ChangeError> {
    let name = dir.file_name().unwrap_or_default();
    let moved = || -> io::Result<()> {
        fs::rename(dir, to.join(name))?;
        sync_dir(to)?;
        dir.parent().map_or(Ok(()), sync_dir)
    };
    moved().map_err(ChangeError::journal(dir))
}

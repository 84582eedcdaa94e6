//! Layout of the journal on disk (one directory per session), and the rules for beginning a session.
//!
//! ```text
//! DIR/mutex                        locked briefly, to read all sessions and add one
//! DIR/sessions/assay-UID/lock      locked while the session's process lives
//! DIR/sessions/assay-UID/journal   actions of the session, see `journal_format`
//! DIR/sessions/assay-UID/N.entry   second record of the setting or object number N
//! DIR/sessions/assay-UID/N.saved   original contents of a configuration file
//! DIR/kept/assay-UID/              a session whose changes the user keeps, see `kept_changes`
//! ```

use crate::disk::{
    LINES, LOCK, PREFIX, make_dir, new_file, random_name, read_boot_id, sync_dir, unix_time,
};
use crate::error::ChangeError;
use crate::journal_format::{Entry, FORMAT, Header, State};
use crate::session::ChangeSession;
use crate::stored::{Stored, load};
use assay_host::seal::seal;
use assay_host::{HostError, directory_owner, lockfile};
use rustix::fs::{FallocateFlags, FlockOperation, flock};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const MUTEX: &str = "mutex";
/// Bytes reserved for a journal when its session begins, enough for some thousand lines, so that entries can be written
/// even if the disk becomes full.
const ROOM: u64 = 256 << 10;

/// A directory that contains the journals of all sessions, see the layout in the module.
#[derive(Clone, Debug)]
pub struct Journal {
    dir: PathBuf,
}

/// A session whose process has ended without rolling back its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// What the session did, for messages.
    pub label: String,
    /// Target on which the session worked.
    pub target: String,
    /// Time at which the session began, in seconds since 1970.
    pub begun: u64,
    /// Descriptions of everything to roll back, newest first.
    pub left: Vec<String>,
    /// The settings among `left`, and descriptions of journal damage that may hide settings.
    pub changed: Vec<String>,
}

/// A session that another process is rolling back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovering {
    /// What the session did, for messages.
    pub label: String,
    /// Target on which the session worked.
    pub target: String,
    /// Id of the process that rolls back; `None` if the process has not recorded itself yet.
    pub pid: Option<u32>,
}

impl Journal {
    /// Opens a directory of journals. Creates the directory for this user only if it is missing.
    ///
    /// # Errors
    /// The directory cannot be created, or other users may write to it. A directory that other users may write to is
    /// refused, because recovery runs the commands in the journal.
    pub fn open(dir: &Path) -> Result<Self, ChangeError> {
        directory_owner::check(dir).map_err(|error| not_ours(dir, &error))?;
        let new = !dir.join("sessions").exists();
        make_dir(&dir.join("sessions"))?;
        let dir = dir.canonicalize().map_err(ChangeError::journal(dir))?;
        if new {
            // After a power cut, the parent directories must still exist. Directories that this user cannot
            // open existed before.
            for dir in dir.ancestors() {
                let _ = sync_dir(dir);
            }
        }
        // Checked again after creation; from here on no other user can create or change it.
        let sessions = dir.join("sessions");
        directory_owner::check(&sessions).map_err(|error| not_ours(&sessions, &error))?;
        Ok(Self { dir })
    }

    /// Opens a directory of journals for reading only; creates nothing.
    ///
    /// # Errors
    /// Other users may write to the directory.
    pub fn look_at(dir: &Path) -> Result<Self, ChangeError> {
        directory_owner::check(dir).map_err(|error| not_ours(dir, &error))?;
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        Ok(Self { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Begins a session on a target. Among all assay processes, only one session per `target` runs at a time. `label`
    /// describes the work in messages to other users.
    ///
    /// # Errors
    /// [`ChangeError::Busy`] if another assay process works on the target, [`ChangeError::Pending`] if a killed process
    /// left changes there, or the journal cannot be written.
    pub fn begin(&self, label: &str, target: &str) -> Result<ChangeSession, ChangeError> {
        let _mutex = self.mutex()?;
        self.free(target, None, |header, _| header.target == target)?;
        let uid = random_name().map_err(ChangeError::journal(&self.dir))?;
        let dir = self.sessions().join(format!("{PREFIX}{uid}"));
        make_dir(&dir)?;
        let path = dir.join(LOCK);
        let lock = new_file(&path).map_err(ChangeError::journal(&path))?;
        let itself = File::open(&dir).map_err(ChangeError::journal(&dir))?;
        for file in [&lock, &itself] {
            flock(file, FlockOperation::NonBlockingLockExclusive)
                .map_err(|error| ChangeError::journal(&path)(error.into()))?;
        }
        let header = Header {
            format: FORMAT,
            uid,
            label: label.to_owned(),
            target: target.to_owned(),
            pid: std::process::id(),
            boot: read_boot_id()?,
            begun: unix_time(),
        };
        let path = dir.join(LINES);
        let begun = (|| {
            let mut file = new_file(&path)?;
            match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, ROOM) {
                Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
            file.write_all(&seal(0, &header)?)?;
            file.sync_all()?;
            sync_dir(&dir)?;
            sync_dir(&self.sessions())?;
            Ok(file)
        })();
        match begun {
            Ok(file) => {
                let locks = vec![lock, itself];
                ChangeSession::new(self.clone(), dir, header, file, locks)
                    .map_err(ChangeError::journal(&path))
            }
            Err(error) => {
                let _ = fs::remove_dir_all(&dir);
                Err(ChangeError::journal(&path)(error))
            }
        }
    }

    /// Returns the sessions whose process has ended and that left changes; usually none.
    ///
    /// # Errors
    /// The directory cannot be read, or contains data of an unknown format.
    pub fn pending(&self) -> Result<Vec<Pending>, ChangeError> {
        let mut pending = Vec::new();
        if self.names()?.is_empty() {
            return Ok(pending);
        }
        let _mutex = self.mutex()?;
        for stored in self.stored()? {
            let Some(found) = stored.found.as_ref().filter(|_| stored.is_left()) else {
                continue;
            };
            let open = found.state.open().rev();
            let mut left: Vec<_> = open.clone().map(|(_, entry)| tell(entry)).collect();
            let settings = open.filter(|(_, entry)| matches!(entry, Entry::Switched(_)));
            let mut changed: Vec<_> = settings.map(|(_, entry)| tell(entry)).collect();
            if !found.damage.is_empty() {
                let damage = format!("a damaged journal in {}", stored.dir.display());
                left.push(damage.clone());
                changed.push(damage);
            }
            pending.push(Pending {
                label: found.header.label.clone(),
                target: found.header.target.clone(),
                begun: found.header.begun,
                left,
                changed,
            });
        }
        pending.sort_by_key(|pending| pending.begun);
        Ok(pending)
    }

    /// Describes the settings that ended assay processes left changed.
    ///
    /// # Errors
    /// As [`Journal::pending`].
    pub fn left_changed(&self) -> Result<Vec<String>, ChangeError> {
        let pending = self.pending()?.into_iter();
        Ok(pending.flat_map(|pending| pending.changed).collect())
    }

    /// Returns the sessions that other processes are rolling back. Such a session is locked, although the process that
    /// began it has ended.
    ///
    /// # Errors
    /// As [`Journal::pending`].
    pub fn recovering(&self) -> Result<Vec<Recovering>, ChangeError> {
        let _mutex = self.mutex()?;
        let mut all = Vec::new();
        for stored in self.stored()? {
            let (None, Some(found)) = (&stored.locks, stored.found) else {
                continue;
            };
            let (begun_by, resumed) = (found.header.pid, found.state.resumed);
            if resumed.is_some() || !is_alive(begun_by) {
                all.push(Recovering {
                    label: found.header.label,
                    target: found.header.target,
                    pid: resumed,
                });
            }
        }
        Ok(all)
    }

    /// Fails if a session other than `own`, for which `theirs` returns true, is live or left changes. The caller must
    /// hold the mutex.
    pub(crate) fn free(
        &self,
        what: &str,
        own: Option<&Path>,
        theirs: impl Fn(&Header, &State) -> bool,
    ) -> Result<(), ChangeError> {
        for stored in self.stored()? {
            let Some(found) = &stored.found else {
                continue;
            };
            let matters = stored.locks.is_none() || stored.is_left();
            if own == Some(&*stored.dir) || !matters || !theirs(&found.header, &found.state) {
                continue;
            }
            return Err(match stored.locks {
                None => busy_error(what, &found.header),
                Some(_) => ChangeError::Pending {
                    what: what.to_owned(),
                    label: found.header.label.clone(),
                    place: None,
                },
            });
        }
        Ok(())
    }

    /// Reads every session on disk.
    ///
    /// # Errors
    /// The directory or a journal cannot be read or parsed.
    pub(crate) fn stored(&self) -> Result<Vec<Stored>, ChangeError> {
        self.names()?
            .into_iter()
            .filter_map(|dir| load(dir).transpose())
            .collect()
    }

    /// Returns the numbers of all sessions, both live sessions and sessions that left changes.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn sessions_there(&self) -> Result<Vec<String>, ChangeError> {
        let number = |dir: PathBuf| {
            let name = dir.file_name()?.to_str()?;
            Some(name.strip_prefix(PREFIX)?.to_owned())
        };
        Ok(self.names()?.into_iter().filter_map(number).collect())
    }

    pub(crate) fn names(&self) -> Result<Vec<PathBuf>, ChangeError> {
        let sessions = self.sessions();
        let entries = match fs::read_dir(&sessions) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(ChangeError::journal(&sessions))?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(ChangeError::journal(&sessions))?;
            if entry.file_name().to_string_lossy().starts_with(PREFIX) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    /// Locks the mutex, which every process holds while it reads all sessions and adds one.
    pub(crate) fn mutex(&self) -> Result<File, ChangeError> {
        let path = self.dir.join(MUTEX);
        lockfile::wait(&path).map_err(ChangeError::journal(&path))
    }

    pub(crate) fn sessions(&self) -> PathBuf {
        self.dir.join("sessions")
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn not_ours(dir: &Path, error: &HostError) -> ChangeError {
    let path = match error {
        HostError::Path { path, .. } | HostError::NotFound { path } => path.clone(),
        _ => dir.to_owned(),
    };
    let us = rustix::process::geteuid().as_raw();
    ChangeError::Foreign {
        path,
        reason: format!(
            "{}; assay runs as user {us} what it finds in its journal: set ASSAY_STATE to a directory that is yours alone",
            error.reason()
        ),
    }
}

fn busy_error(what: &str, header: &Header) -> ChangeError {
    ChangeError::Busy {
        what: what.to_owned(),
        pid: header.pid,
        label: header.label.clone(),
    }
}

/// Describes a journal entry for the user.
pub(crate) fn tell(entry: &Entry) -> String {
    match entry {
        Entry::Made { thing, .. } => thing.to_string(),
        Entry::Switched(switched) => crate::setting::setting_name(&switched.setting),
    }
}

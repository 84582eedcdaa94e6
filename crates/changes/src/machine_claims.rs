//! Machine-wide locks of changed settings.
//!
//! A setting belongs to the machine, not to a state directory. While a process changes a setting, it holds a lock that
//! every assay process of the same user sees, whatever its state directory (`assay_host::lockdir`). The lock file
//! contains a note with the path of the journal. The note remains when the process ends, so that a value left by a
//! killed process is never taken for the original value.

use crate::disk::{PREFIX, read_boot_id};
use crate::error::{ChangeError, Orphan};
use crate::journal::Journal;
use crate::never_kept::survives_reboot;
use crate::session::ChangeSession;
use crate::setting::{Original, SettingKind};
use crate::stored::load;
use assay_host::held::Identity;
use assay_host::lockdir::{Attempt, Lock};
use assay_host::{HostError, HostMut};
use assay_model::change::Setting;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Note in a lock file; one line of JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Note {
    what: String,
    identity: String,
    label: String,
    pid: u32,
    #[serde(with = "assay_host::path_json")]
    journal: PathBuf,
    session: String,
    boot: String,
    /// Value of the setting before the change.
    value: Option<String>,
    shown: String,
}

impl Note {
    fn of(session: &ChangeSession, what: &str, identity: &str, original: &Original) -> Self {
        let header = session.header();
        Self {
            what: what.to_owned(),
            identity: identity.to_owned(),
            label: header.label.clone(),
            pid: std::process::id(),
            journal: session.journal().dir().to_owned(),
            session: header.uid.clone(),
            boot: header.boot.clone(),
            value: original.value.clone(),
            shown: original.shown.clone(),
        }
    }

    fn is_of(&self, session: &ChangeSession) -> bool {
        self.session == session.header().uid && self.journal == session.journal().dir()
    }

    /// Returns the state of the setting according to the journal that the note refers to.
    fn told(&self) -> Result<JournalState, ChangeError> {
        if !self.dir().is_dir() {
            return Ok(JournalState::Nothing);
        }
        let found = load(self.dir())?.and_then(|stored| stored.found);
        let open = found.is_some_and(|found| {
            let same = |id| {
                let switched = found.state.switched(id);
                switched.is_some_and(|one| one.identity == self.identity)
            };
            !found.damage.is_empty() || found.state.open().any(|(id, _)| same(id))
        });
        Ok(match open {
            true => JournalState::Open,
            // The process was killed after it had rolled back the setting and before it could remove the
            // note.
            false => JournalState::Closed,
        })
    }

    fn dir(&self) -> PathBuf {
        let name = format!("{PREFIX}{}", self.session);
        self.journal.join("sessions").join(name)
    }

    /// Returns the state directory that contains the journal.
    fn state(&self) -> PathBuf {
        match self.journal.file_name() {
            Some(name) if name == "journal" => self.journal.parent().unwrap_or(&self.journal),
            _ => &self.journal,
        }
        .to_owned()
    }
}

/// State of a setting according to a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JournalState {
    /// The setting may still be changed.
    Open,
    /// The setting is in its original state.
    Closed,
    /// The journal does not exist.
    Nothing,
}

/// The locks that a process holds for one setting. A setting has one lock for each of its keys.
#[derive(Debug)]
pub(crate) struct Claim(Vec<Lock>);

impl Claim {
    /// Releases the locks and removes their notes.
    pub(crate) fn release(self) -> Result<(), HostError> {
        // Locks are released in reverse order.
        self.0.into_iter().rev().try_for_each(Lock::release)
    }
}

/// Result of an attempt to take all locks of a setting.
enum LockAttempt {
    Taken(Claim),
    Busy { note: String },
}

/// Returns the keys by which a setting is locked. Network sysctls belong to a network namespace. A file has a
/// path, which survives a reboot, and an identity, which is the same through a bind mount or another name of
/// its directory. A file system has several mount points and can be remounted through any of them.
fn lock_keys(host: &dyn HostMut, identity: &str) -> Result<Vec<String>, HostError> {
    if identity.starts_with("kernel:/proc/sys/net/") {
        let space = host.link(Path::new("/proc/self/ns/net"))?;
        return Ok(vec![format!("{identity} in {}", space.display())]);
    }
    let mut keys = vec![identity.to_owned()];
    if let Some(path) = identity.strip_prefix("file:").map(Path::new)
        && let (Some(above), Some(name)) = (path.parent(), path.file_name())
        && let Ok(Some(above)) = host.identity(above)
    {
        let Identity { device, inode } = above;
        keys.push(format!("file {name:?} in {device:x} {inode:x}"));
    }
    if let Some(path) = identity.strip_prefix("mount:").map(Path::new)
        && let Ok(Some(Identity { device, .. })) = host.identity(path)
    {
        keys.push(format!("file system {device:x}"));
    }
    Ok(keys)
}

/// Tries to take all locks of a setting.
fn attempt(
    host: &dyn HostMut,
    setting: &Setting,
    identity: &str,
) -> Result<Option<LockAttempt>, HostError> {
    let Some(locks) = host.locks(survives_reboot(setting))? else {
        return Ok(None);
    };
    let mut taken = Vec::new();
    for key in lock_keys(host, identity)? {
        match locks.try_lock(&key)? {
            Attempt::Taken(lock) => taken.push(lock),
            Attempt::Busy { note } => {
                // Locks in which this process wrote no note are removed.
                for lock in taken
                    .into_iter()
                    .filter(|lock: &Lock| lock.left().is_empty())
                {
                    let _ = lock.release();
                }
                return Ok(Some(LockAttempt::Busy { note }));
            }
        }
    }
    Ok(Some(LockAttempt::Taken(Claim(taken))))
}

/// Takes the locks of a setting that is about to be changed.
///
/// # Errors
/// A live assay process holds a lock, or a killed process left the setting changed.
pub(crate) fn take(
    session: &ChangeSession,
    host: &dyn HostMut,
    setting: &Setting,
    what: &str,
    knob: &dyn SettingKind,
) -> Result<Option<Claim>, ChangeError> {
    match attempt(host, setting, &knob.identity())? {
        None => Ok(None),
        Some(LockAttempt::Busy { note }) => Err(busy_error(what, &note)),
        Some(LockAttempt::Taken(claim)) => {
            for (number, lock) in claim.0.iter().enumerate() {
                let lasts = number == 0 && survives_reboot(setting);
                check(session, host, lasts, what, knob, lock)?;
            }
            Ok(Some(claim))
        }
    }
}

fn busy_error(what: &str, note: &str) -> ChangeError {
    let note: Option<Note> = serde_json::from_str(note).ok();
    ChangeError::Busy {
        what: what.to_owned(),
        pid: note.as_ref().map_or(0, |note| note.pid),
        label: note.map_or_else(|| "which has just begun".to_owned(), |note| note.label),
    }
}

/// Checks whether the note of an earlier process is still valid. A reboot invalidates notes about running kernel
/// settings and about file identities, because device numbers are assigned anew. A file also has a note for its path,
/// which stays valid.
fn check(
    session: &ChangeSession,
    host: &dyn HostMut,
    lasts: bool,
    what: &str,
    knob: &dyn SettingKind,
    lock: &Lock,
) -> Result<(), ChangeError> {
    if lock.left().is_empty() {
        return Ok(());
    }
    let note: Note = serde_json::from_str(lock.left()).map_err(|error| ChangeError::Foreign {
        path: lock.path().to_owned(),
        reason: format!(
            "an assay that was killed noted here how {what} was, and it cannot be read ({error}): set {what} as it shall be, then remove this file"
        ),
    })?;
    let rebooted = note.boot != read_boot_id()? && !lasts;
    if rebooted || note.is_of(session) {
        return Ok(());
    }
    match note.told()? {
        JournalState::Open => {
            let place = (note.journal != session.journal().dir()).then(|| note.state());
            return Err(ChangeError::Pending {
                what: what.to_owned(),
                label: note.label,
                place,
            });
        }
        JournalState::Closed => return Ok(()),
        JournalState::Nothing => {}
    }
    let now = knob.read(host)?;
    match knob.same(now.value.as_deref(), note.value.as_deref()) {
        true => Ok(()),
        false => Err(ChangeError::Orphan(Box::new(Orphan {
            what: what.to_owned(),
            label: note.label,
            journal: note.journal,
            original: note.shown,
            found: now.shown,
            note: lock.path().to_owned(),
        }))),
    }
}

/// Writes the path of the journal into the locks, before the change is made.
pub(crate) fn note(
    session: &ChangeSession,
    claim: &Claim,
    what: &str,
    identity: &str,
    original: &Original,
) -> Result<(), ChangeError> {
    let note = Note::of(session, what, identity, original);
    for lock in &claim.0 {
        let text = serde_json::to_string(&note)
            .map_err(|error| ChangeError::journal(lock.path())(error.into()))?;
        lock.note(&text)?;
    }
    Ok(())
}

/// Takes the locks of a setting that an ended session left changed, so that no other process begins to change the
/// setting.
///
/// # Errors
/// A live assay process works on the setting.
pub(crate) fn retake(
    session: &ChangeSession,
    host: &dyn HostMut,
    id: u64,
    setting: &Setting,
    identity: &str,
) -> Result<(), ChangeError> {
    let mut claims = session.claims();
    if claims.contains_key(&id) {
        return Ok(());
    }
    // The rollback continues even if the lock directory cannot be used.
    match attempt(host, setting, identity) {
        Ok(Some(LockAttempt::Busy { note })) => {
            Err(busy_error(&crate::setting::setting_name(setting), &note))
        }
        Ok(Some(LockAttempt::Taken(Claim(locks)))) => {
            // Notes of other processes stay.
            let ours = |lock: &Lock| {
                let note: Option<Note> = serde_json::from_str(lock.left()).ok();
                lock.left().is_empty() || note.is_some_and(|note| note.is_of(session))
            };
            claims.insert(id, Claim(locks.into_iter().filter(ours).collect()));
            Ok(())
        }
        Ok(None) | Err(_) => Ok(()),
    }
}

/// A setting that an assay process with another state directory left changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// Name of the setting, for messages.
    pub what: String,
    /// What the other process was doing.
    pub label: String,
    /// The state directory of that process.
    pub state: PathBuf,
    /// Value of the setting before the change.
    pub original: String,
    /// The lock file with the note; `None` if the journal exists.
    pub note: Option<PathBuf>,
}

impl Journal {
    /// Returns the settings that killed assay processes with other state directories left changed.
    ///
    /// # Errors
    /// The lock directories cannot be read.
    pub fn elsewhere(&self, host: &dyn HostMut) -> Result<Vec<Elsewhere>, ChangeError> {
        let (mut found, boot) = (Vec::new(), read_boot_id()?);
        for lasting in [false, true] {
            let Some(locks) = host.locks(lasting)? else {
                continue;
            };
            for (path, left) in locks.left()? {
                let Ok(note) = serde_json::from_str::<Note>(&left) else {
                    continue;
                };
                let told = note.told()?;
                let ours = note.journal == self.dir() && told != JournalState::Nothing;
                if ours || told == JournalState::Closed || !lasting && note.boot != boot {
                    continue;
                }
                // A setting with several locks is returned once.
                let told_of = |one: &Elsewhere| one.what == note.what && one.state == note.state();
                if found.iter().any(told_of) {
                    continue;
                }
                found.push(Elsewhere {
                    state: note.state(),
                    what: note.what,
                    label: note.label,
                    original: note.shown,
                    note: (told == JournalState::Nothing).then_some(path),
                });
            }
        }
        Ok(found)
    }
}

//! Rolls back the changes of a session: newest first, each one read back. A rollback that was interrupted at
//! any point can be repeated.

use crate::disk::{forget, read_boot_id};
use crate::error::ChangeError;
use crate::journal::{Journal, tell};
use crate::journal_format::{Entry, Line};
use crate::machine_claims;
use crate::never_kept::survives_reboot;
use crate::session::ChangeSession;
use crate::stored::{Stored, load};
use crate::switch::{Back, Trust, put_back};
use assay_host::HostMut;

/// What recovery does with a setting that another program changed, and with a change that cannot be rolled back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Foreign {
    /// Report the setting, and keep it in the journal.
    #[default]
    Leave,
    /// Roll the setting back anyway.
    Restore,
    /// Leave the setting unchanged and remove it from the journal. Also applies to a setting that cannot be rolled
    /// back.
    Accept,
}

/// Result of rolling back one setting or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryOutcome {
    /// The setting is in its original state. Contains the value that was read back.
    Restored(String),
    /// The object that assay created is removed.
    Removed,
    /// The kernel held the state in memory, and the machine has rebooted since.
    Rebooted,
    /// The kernel held the state in memory, and the device or mount no longer exists.
    Gone,
    /// Another program changed the setting.
    LeftAlone {
        /// The value that the setting has now.
        found: String,
        /// The value before assay changed it.
        original: String,
        /// Whether the setting was left unchanged and removed from the journal.
        accepted: bool,
    },
    /// The setting is in its original state, but a related attribute is not, or the journal is damaged. The text
    /// describes the difference with its path. The entry stays in the journal until the user removes it
    /// ([`Foreign::Accept`]).
    Doubtful(String),
    /// The rollback failed. The entry stays in the journal until the user removes it ([`Foreign::Accept`]).
    Failed(String),
}

/// A setting or object that an ended session left, with the result of its rollback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What the session did, for messages.
    pub label: String,
    /// Target on which the session worked.
    pub target: String,
    /// Description of the setting or object.
    pub what: String,
    /// What the rollback achieved.
    pub outcome: RecoveryOutcome,
}

impl Journal {
    /// Rolls back the changes of ended sessions, newest first. Usually no session left changes.
    ///
    /// # Errors
    /// The journal's directory cannot be read or written. The failure of one entry is reported in its
    /// [`RecoveryOutcome`]; the remaining entries are still rolled back.
    pub fn recover(
        &self,
        host: &dyn HostMut,
        foreign: Foreign,
    ) -> Result<Vec<Recovered>, ChangeError> {
        let mut recovered = Vec::new();
        let mut stored = Vec::new();
        {
            let _mutex = self.mutex()?;
            for dir in self.names()? {
                match load(dir) {
                    Ok(found) => stored.extend(found),
                    Err(error @ ChangeError::Foreign { .. }) => recovered.push(Recovered {
                        label: String::new(),
                        target: String::new(),
                        what: "journal".into(),
                        outcome: RecoveryOutcome::Failed(error.to_string()),
                    }),
                    Err(error) => return Err(error),
                }
            }
        }
        // A later session may depend on changes of an earlier one.
        stored.sort_by_key(|stored| {
            let begun = stored.found.as_ref().map(|found| found.header.begun);
            std::cmp::Reverse(begun.unwrap_or_default())
        });
        for stored in stored {
            recovered.extend(self.recover_stored(stored, host, foreign)?);
        }
        Ok(recovered)
    }

    /// Rolls back one session if its process has ended.
    pub(crate) fn recover_stored(
        &self,
        stored: Stored,
        host: &dyn HostMut,
        foreign: Foreign,
    ) -> Result<Vec<Recovered>, ChangeError> {
        let Stored { dir, found, locks } = stored;
        let (found, locks) = match (found, locks) {
            (_, None) => return Ok(Vec::new()),
            (None, Some(_)) => {
                forget(&dir)?;
                return Ok(Vec::new());
            }
            (Some(found), Some(locks)) => (found, locks),
        };
        let damage = found.damage.clone();
        let mut session = ChangeSession::resume(self.clone(), dir, found, locks)?;
        let mut recovered = take_back(&session, host, foreign, false)?;
        let doubtful = damage.iter().map(|what| doubtful_session(&session, what));
        recovered.extend(doubtful);
        // The contents of a damaged line are unknown, so the journal stays unless the user accepts the
        // loss.
        session.stays = !damage.is_empty() && foreign != Foreign::Accept;
        Ok(recovered)
    }
}

fn doubtful_session(session: &ChangeSession, damage: &str) -> Recovered {
    let what = format!(
        "{damage}; the readable part was reverted. What else was done is not known: look at what the session worked on; files ending in .saved in {} are configuration files as they were found",
        session.dir().display()
    );
    Recovered {
        label: session.header().label.clone(),
        target: session.header().target.clone(),
        what: "journal".into(),
        outcome: RecoveryOutcome::Doubtful(what),
    }
}

impl ChangeSession {
    /// Rolls back all open entries, newest first, as recovery does. Call this at the end of a session and after an
    /// interruption, when no other code of the process uses the session any more.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn close(self, host: &dyn HostMut) -> Result<Vec<Recovered>, ChangeError> {
        if !self.is_ours() {
            return Ok(Vec::new());
        }
        take_back(&self, host, Foreign::Leave, true)
    }
}

/// Rolls back all open entries of a session. With `own`, this process began the session, so the journal is known to be
/// complete.
pub(crate) fn take_back(
    session: &ChangeSession,
    host: &dyn HostMut,
    foreign: Foreign,
    own: bool,
) -> Result<Vec<Recovered>, ChangeError> {
    let rebooted = session.header().boot != read_boot_id()?;
    let state = session.state();
    let mut recovered = Vec::new();
    // The process was killed after it closed the setting and before it released the locks.
    let closed = state.entries.iter().filter(|(_, entry)| !entry.is_open());
    for (id, entry) in closed.filter(|_| !own) {
        if let Entry::Switched(switched) = entry
            && machine_claims::retake(session, host, *id, &switched.setting, &switched.identity)
                .is_ok()
            && let Some(lock) = session.claims().remove(id)
        {
            lock.release()?;
        }
    }
    let trust = match (foreign, own) {
        (Foreign::Restore, _) => Trust::Force,
        (_, true) => Trust::Own,
        (_, false) => Trust::Left,
    };
    for (id, entry) in state.open().rev() {
        let done = match entry {
            Entry::Made { thing, .. } if rebooted && !thing.survives_reboot() => {
                Ok(RecoveryOutcome::Rebooted)
            }
            Entry::Made { thing, .. } => {
                let gone = thing.unmake(host, &session.tag());
                gone.map(|()| RecoveryOutcome::Removed)
            }
            Entry::Switched(switched) => {
                let (setting, identity) = (&switched.setting, &switched.identity);
                let lasts = survives_reboot(setting);
                match machine_claims::retake(session, host, id, setting, identity) {
                    Err(error) => Err(error),
                    Ok(()) if rebooted && !lasts => Ok(RecoveryOutcome::Rebooted),
                    Ok(()) => match put_back(session, host, id, switched, trust) {
                        Err(ChangeError::Gone { .. }) if !lasts => Ok(RecoveryOutcome::Gone),
                        Ok(Back::Already(shown) | Back::Restored(shown)) => {
                            Ok(RecoveryOutcome::Restored(shown))
                        }
                        Ok(Back::Apart(what)) => Ok(RecoveryOutcome::Doubtful(what)),
                        Ok(Back::LeftAlone(found)) => Ok(RecoveryOutcome::LeftAlone {
                            found,
                            original: switched.original.shown.clone(),
                            accepted: foreign == Foreign::Accept,
                        }),
                        Err(error) => Err(error),
                    },
                }
            }
        };
        let outcome = done.unwrap_or_else(|error| RecoveryOutcome::Failed(error.to_string()));
        let open = matches!(
            outcome,
            RecoveryOutcome::Failed(_)
                | RecoveryOutcome::LeftAlone { .. }
                | RecoveryOutcome::Doubtful(_)
        );
        if !open || foreign == Foreign::Accept {
            match entry {
                Entry::Made { .. } => session.write(Line::Unmade { id })?,
                Entry::Switched(_) => session.closed(id, Line::Closed { id })?,
            }
        }
        recovered.push(Recovered {
            label: session.header().label.clone(),
            target: session.header().target.clone(),
            what: tell(entry),
            outcome,
        });
    }
    Ok(recovered)
}

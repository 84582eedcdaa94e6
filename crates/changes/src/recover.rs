//! Taking back what a session left: newest first, each thing read back, repeatable after having
//! been cut off anywhere.

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

/// What to do about a setting that somebody else changed meanwhile, and about what cannot be taken
/// back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Foreign {
    /// Say so, and keep it in the journal.
    #[default]
    Leave,
    /// Put it back all the same.
    Restore,
    /// Take it as it is, and forget it; also what cannot be taken back.
    Accept,
}

/// What became of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryOutcome {
    /// The setting is as it was found; what it reads.
    Restored(String),
    /// The thing that assay made is gone.
    Removed,
    /// The kernel held it in memory, and the machine was started again since.
    Rebooted,
    /// The kernel held it in memory, and the device or mount is no longer there.
    Gone,
    /// Somebody else changed it.
    LeftAlone {
        /// What it reads.
        found: String,
        /// What it was before assay came.
        original: String,
        /// It was taken as it is and forgotten.
        accepted: bool,
    },
    /// The setting is as it was found, but something beside it is not, or the journal itself is damaged:
    /// what, with the path. It stays until the user wishes it forgotten ([`Foreign::Accept`]).
    Doubtful(String),
    /// It could not be taken back. It stays in the journal, unless the user wishes it forgotten
    /// ([`Foreign::Accept`]).
    Failed(String),
}

/// Something that a dead session left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    /// What the session did.
    pub label: String,
    /// On what.
    pub target: String,
    /// The thing or setting, in words.
    pub what: String,
    /// What became of it.
    pub outcome: RecoveryOutcome,
}

impl Journal {
    /// Takes back what dead sessions left, newest first. Nothing is the usual case.
    ///
    /// # Errors
    /// The journal's directory cannot be read or written. What goes wrong with one thing is told
    /// in its [`Outcome`], and the others are still taken back.
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
        // A later session may have built on an earlier one.
        stored.sort_by_key(|stored| {
            let begun = stored.found.as_ref().map(|found| found.header.begun);
            std::cmp::Reverse(begun.unwrap_or_default())
        });
        for stored in stored {
            recovered.extend(self.recover_stored(stored, host, foreign)?);
        }
        Ok(recovered)
    }

    /// Takes back what one session left, when its process is gone.
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
        // Nobody knows what a damaged line said: it is not thrown away unasked.
        session.stays = !damage.is_empty() && foreign != Foreign::Accept;
        Ok(recovered)
    }
}

fn doubtful_session(session: &ChangeSession, damage: &str) -> Recovered {
    let what = format!(
        "{damage}; what could be read was taken back. What else was done is not known: look at what the session worked on; files ending in .saved in {} are configuration files as they were found",
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
    /// Takes back everything that is still open, newest first, as recovery would. To be called at
    /// the end and after an interruption, when all else that uses the session is gone.
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

/// Takes back everything of a session that is open.
///
/// `own`: this process began it, so that nothing of its journal is missing.
pub(crate) fn take_back(
    session: &ChangeSession,
    host: &dyn HostMut,
    foreign: Foreign,
    own: bool,
) -> Result<Vec<Recovered>, ChangeError> {
    let rebooted = session.header().boot != read_boot_id()?;
    let state = session.state();
    let mut recovered = Vec::new();
    // Killed before it could tell the machine.
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

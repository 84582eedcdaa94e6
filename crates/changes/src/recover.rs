//! Taking back what a session left: newest first, each thing read back, repeatable after having
//! been cut off anywhere.

use crate::error::ChangeError;
use crate::journal::{Journal, Stored, boot, forget, tell};
use crate::lines::{Entry, Header, Line, Read};
use crate::never::survives_reboot;
use crate::session::Session;
use crate::switch::{Back, put_back};
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
pub enum Outcome {
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
    pub outcome: Outcome,
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
                match self.load(dir) {
                    Ok(found) => stored.extend(found),
                    Err(error @ ChangeError::Foreign { .. }) => recovered.push(Recovered {
                        label: String::new(),
                        target: String::new(),
                        what: "journal".into(),
                        outcome: Outcome::Failed(error.to_string()),
                    }),
                    Err(error) => return Err(error),
                }
            }
        }
        stored.retain(|stored| stored.lock.is_some());
        // A later session may have built on an earlier one.
        stored.sort_by_key(|stored| match &stored.read {
            Read::Journal { header, .. } => std::cmp::Reverse(header.begun),
            Read::Unborn => std::cmp::Reverse(0),
        });
        for stored in stored {
            let Stored { dir, read, lock } = stored;
            match (read, lock) {
                (Read::Unborn, _) => forget(&dir)?,
                (
                    Read::Journal {
                        header,
                        state,
                        damaged,
                    },
                    Some(lock),
                ) => {
                    let told = header.clone();
                    if state.open().next().is_none() && damaged.is_none() {
                        forget(&dir)?;
                        continue;
                    }
                    let mut session = Session::resume(self.clone(), dir, *header, state, lock)?;
                    recovered.extend(take_back(&session, host, foreign)?);
                    if let Some(line) = damaged {
                        recovered.push(damage(&told, &session, line));
                        // Nobody knows what that line said: it is not thrown away unasked.
                        session.stays = foreign != Foreign::Accept;
                    }
                }
                (Read::Journal { .. }, None) => {}
            }
        }
        Ok(recovered)
    }
}

fn damage(header: &Header, session: &Session, line: usize) -> Recovered {
    let reason = format!(
        "line {line} of {} is damaged: what assay did then is not known",
        session.dir().join(crate::journal::LINES).display()
    );
    Recovered {
        label: header.label.clone(),
        target: header.target.clone(),
        what: "journal".into(),
        outcome: Outcome::Failed(reason),
    }
}

/// Takes back everything of a session that is open.
pub(crate) fn take_back(
    session: &Session,
    host: &dyn HostMut,
    foreign: Foreign,
) -> Result<Vec<Recovered>, ChangeError> {
    let rebooted = session.header().boot != boot()?;
    let state = session.state();
    let mut recovered = Vec::new();
    for (id, entry) in state.open().rev() {
        let done = match entry {
            Entry::Made { thing, .. } if rebooted && !thing.survives_reboot() => {
                Ok(Outcome::Rebooted)
            }
            Entry::Made { thing, .. } => {
                let gone = thing.unmake(host, &session.tag());
                gone.map(|()| Outcome::Removed)
            }
            Entry::Switched(switched) if rebooted && !survives_reboot(&switched.setting) => {
                Ok(Outcome::Rebooted)
            }
            Entry::Switched(switched) => {
                let lasts = survives_reboot(&switched.setting);
                match put_back(session, host, id, switched, foreign == Foreign::Restore) {
                    Err(ChangeError::Gone { .. }) if !lasts => Ok(Outcome::Gone),
                    Ok(Back::Already(shown) | Back::Restored(shown)) => {
                        Ok(Outcome::Restored(shown))
                    }
                    Ok(Back::LeftAlone(found)) => Ok(Outcome::LeftAlone {
                        found,
                        original: switched.original.shown.clone(),
                        accepted: foreign == Foreign::Accept,
                    }),
                    Err(error) => Err(error),
                }
            }
        };
        let outcome = done.unwrap_or_else(|error| Outcome::Failed(error.to_string()));
        let open = matches!(outcome, Outcome::Failed(_) | Outcome::LeftAlone { .. });
        if !open || foreign == Foreign::Accept {
            session.write(match entry {
                Entry::Made { .. } => Line::Unmade { id },
                Entry::Switched(_) => Line::Closed { id },
            })?;
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

//! Sets, reads back and rolls back one setting of a session.

use crate::error::ChangeError;
use crate::journal_format::{Line, Switched};
use crate::machine_claims;
use crate::never_kept::never_kept;
use crate::session::ChangeSession;
use crate::setting::{Original, Reading, SettingKind, Work, open_knob, place, setting_name};
use assay_host::{HostError, HostMut};
use assay_model::change::Setting;

/// Value that messages show for a setting whose file another program removed.
const REMOVED: &str = "missing: its file was removed";

/// An open setting. Dropping it restores the original state, unless the change was kept.
pub struct Switch<'a> {
    session: &'a ChangeSession,
    host: &'a dyn HostMut,
    id: u64,
    knob: Box<dyn SettingKind>,
    setting: Setting,
    name: String,
    original: Original,
    closed: bool,
}

/// Result of restoring a setting to its original state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// The setting was already in its original state. Contains its value.
    Already(String),
    /// The setting was restored and read back. Contains the value.
    Restored(String),
    /// Another program changed the setting, so it was not restored. Contains the present value.
    LeftAlone(String),
    /// The setting has its original value, but a related attribute differs. Contains a description.
    Apart(String),
}

/// How complete the journal is for a setting that is restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// This process wrote the journal, so no line is missing.
    Own,
    /// The process has ended, and the last lines of its journal may be missing. Therefore the state of the machine is
    /// checked.
    Left,
    /// The user wants the original state restored, whatever the present state is.
    Force,
}

impl<'a> Switch<'a> {
    /// Reads a setting and records its original state. Nothing is changed yet.
    ///
    /// # Errors
    /// The setting cannot be changed, another assay process works on it or left it changed, or the journal cannot be
    /// written.
    pub fn open(
        session: &'a ChangeSession,
        host: &'a dyn HostMut,
        setting: &Setting,
    ) -> Result<Self, ChangeError> {
        let name = setting_name(setting);
        let place = place(host, setting)?;
        let knob = open_knob(setting, &place);
        let identity = knob.identity();
        // The mutex prevents other processes from recording the same setting between the check and the record.
        let mutex = session.journal().mutex()?;
        let ours = |switched: &Switched| !switched.closed && switched.identity == identity;
        let own = session.dir();
        session.journal().free(&name, Some(own), |_, state| {
            state
                .open()
                .any(|(id, _)| state.switched(id).is_some_and(ours))
        })?;
        let state = session.state();
        if state
            .open()
            .any(|(id, _)| state.switched(id).is_some_and(ours))
        {
            let reason = "it is being changed already";
            return Err(ChangeError::refused(name, reason));
        }
        let lock = machine_claims::take(session, host, setting, &name, &*knob)?;
        let found = match knob.find(host) {
            Ok(found) => found,
            Err(error) => {
                if let Some(lock) = lock {
                    let _ = lock.release();
                }
                return Err(error);
            }
        };
        let id = state.next();
        let line = Line::Opened {
            id,
            setting: Box::new(setting.clone()),
            identity: identity.clone(),
            original: Box::new(found.original.clone()),
        };
        let enter = || {
            session.enter(id, &line)?;
            if let Some(contents) = &found.contents {
                session.save(id, contents)?;
            }
            if let Some(lock) = &lock {
                machine_claims::note(session, lock, &name, &identity, &found.original)?;
            }
            Ok(())
        };
        if let Err(error) = enter().and_then(|()| session.write(line.clone())) {
            session.withdraw(id);
            if let Some(lock) = lock {
                let _ = lock.release();
            }
            return Err(error);
        }
        if let Some(lock) = lock {
            session.claims().insert(id, lock);
        }
        drop(mutex);
        Ok(Self {
            session,
            host,
            id,
            knob,
            setting: setting.clone(),
            name,
            original: found.original,
            closed: false,
        })
    }

    /// Returns the state of the setting before assay changed it.
    #[must_use]
    pub fn original(&self) -> &Original {
        &self.original
    }

    /// Reads the present value, with its source if relevant.
    ///
    /// # Errors
    /// The setting cannot be read.
    pub fn read(&self) -> Result<String, ChangeError> {
        Ok(self.reading()?.shown)
    }

    /// Sets a value (`None` removes the setting), and returns the value that is read back. A setting that already has
    /// the value is not set again.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] before anything was changed; [`ChangeError::Meanwhile`] if another program changed the
    /// setting; [`ChangeError::ReadBack`] and [`ChangeError::NoEffect`] if another value is read back. After any error
    /// except [`ChangeError::Twice`], the setting is in its original state.
    pub fn set(&self, value: Option<&str>) -> Result<String, ChangeError> {
        self.knob.check(self.host, value)?;
        let before = self.reading()?;
        let known = self.known(&before);
        if !known {
            return Err(self.meanwhile(before.shown));
        }
        let touched = self.switched().is_some_and(|switched| switched.touched());
        if self.knob.same(before.value.as_deref(), value) {
            return Ok(before.shown);
        }
        if touched && self.knob.same(self.original.value.as_deref(), value) {
            return self.restore();
        }
        let work = session_work(self.session, self.id, false);
        self.knob.prepare(self.host, value, &work)?;
        self.session.write(Line::Set {
            id: self.id,
            value: value.map(str::to_owned),
        })?;
        let first = match self.knob.write(self.host, value, &work) {
            Ok(()) => match self.confirm(value, &before) {
                Ok(shown) => return Ok(shown),
                Err(error) => error,
            },
            // Nothing was written: a value that another program wrote at this moment stays.
            Err(ChangeError::Host(error)) if error.is_meanwhile() && !touched => {
                self.knob.tidy(self.host, &work)?;
                self.session.write(Line::Restored { id: self.id })?;
                return Err(ChangeError::Host(error));
            }
            Err(error) => error,
        };
        let raced = match &first {
            ChangeError::Host(error) => error.is_meanwhile(),
            error => matches!(error, ChangeError::Meanwhile { .. }),
        };
        let trust = match raced {
            true => Trust::Own,
            false => Trust::Force,
        };
        Err(match self.put_back(trust) {
            Ok(_) => first,
            Err(second) => ChangeError::Twice {
                first: Box::new(first),
                second: Box::new(second),
            },
        })
    }

    /// Reads back the value and records it.
    fn confirm(&self, value: Option<&str>, before: &Reading) -> Result<String, ChangeError> {
        let after = self.reading()?;
        let is_wanted = self.knob.same(after.value.as_deref(), value);
        if !is_wanted && after.value != before.value && self.knob.reads_as_written() {
            return Err(self.meanwhile(after.shown));
        }
        self.session.write(Line::Confirmed {
            id: self.id,
            reads: after.value.clone(),
        })?;
        if is_wanted {
            return Ok(after.shown);
        }
        let (what, wanted) = (self.name.clone(), value.unwrap_or("nothing").to_owned());
        let found = after.shown;
        Err(match after.value == before.value {
            true => ChangeError::NoEffect {
                what,
                wanted,
                found,
            },
            false => ChangeError::ReadBack {
                what,
                wanted,
                found,
            },
        })
    }

    /// Restores the original state, and returns the value that is read back. The setting may be set again.
    ///
    /// # Errors
    /// [`ChangeError::Meanwhile`] if another program changed the setting, which then stays unchanged. Any other error
    /// means that the setting could not be restored; the setting stays in the journal.
    pub fn restore(&self) -> Result<String, ChangeError> {
        if !self.switched().is_some_and(|switched| switched.touched()) {
            let now = self.reading()?;
            let original = self.original.value.as_deref();
            return match self.knob.same(now.value.as_deref(), original) {
                true => Ok(now.shown),
                false => Err(self.meanwhile(now.shown)),
            };
        }
        match self.put_back(Trust::Own)? {
            Back::Already(shown) | Back::Restored(shown) | Back::Apart(shown) => Ok(shown),
            Back::LeftAlone(found) => Err(self.meanwhile(found)),
        }
    }

    /// Sets a value that is not rolled back. [`crate::survives_reboot`] returns whether the value survives a reboot.
    ///
    /// # Errors
    /// [`ChangeError::Refused`] if the value is never kept ([`never_kept`]), and the errors of [`Switch::set`]. After
    /// an error the setting is restored.
    pub fn keep(mut self, value: Option<&str>) -> Result<String, ChangeError> {
        if let Some(reason) = never_kept(&self.setting, value) {
            let reason = format!("{} is never kept: {reason}", value.unwrap_or("nothing"));
            return Err(ChangeError::refused(&self.name, reason));
        }
        let shown = self.set(value)?;
        let kept = Line::Kept {
            id: self.id,
            value: value.map(str::to_owned),
        };
        self.session.closed(self.id, kept)?;
        self.closed = true;
        Ok(shown)
    }

    /// Ends the use of the setting without restoring it; the setting stays recorded in the journal. Call
    /// [`ChangeSession::put_by`] afterwards, which keeps all settings of the session together. Otherwise recovery
    /// restores the setting.
    pub fn leave(mut self) {
        self.closed = true;
    }

    fn switched(&self) -> Option<Switched> {
        self.session.state().switched(self.id).cloned()
    }

    fn known(&self, reading: &Reading) -> bool {
        self.switched()
            .is_some_and(|switched| is_known(&*self.knob, &switched, reading))
    }

    fn put_back(&self, trust: Trust) -> Result<Back, ChangeError> {
        let Some(switched) = self.switched() else {
            let reason = "is not in the journal";
            return Err(ChangeError::refused(&self.name, reason));
        };
        put_back(self.session, self.host, self.id, &switched, trust)
    }

    /// Reads the present value. The setting existed when it was opened, so another program removed a missing file.
    fn reading(&self) -> Result<Reading, ChangeError> {
        match self.knob.read(self.host) {
            Err(ChangeError::Host(HostError::NotFound { .. })) => {
                Err(self.meanwhile(REMOVED.to_owned()))
            }
            read => read,
        }
    }

    fn meanwhile(&self, found: String) -> ChangeError {
        ChangeError::Meanwhile {
            what: self.name.clone(),
            found,
            original: self.original.shown.clone(),
        }
    }
}

impl Drop for Switch<'_> {
    fn drop(&mut self) {
        // A setting that cannot be restored stays in the journal.
        if !self.closed
            && matches!(
                self.put_back(Trust::Own),
                Ok(Back::Already(_) | Back::Restored(_))
            )
        {
            let _ = self.session.closed(self.id, Line::Closed { id: self.id });
        }
    }
}

/// Whether a value is the original one or one that assay set.
fn is_known(knob: &dyn SettingKind, switched: &Switched, now: &Reading) -> bool {
    let now = now.value.as_deref();
    let same = |value: &Option<String>| knob.same(value.as_deref(), now);
    let unconfirmed = switched.unconfirmed.as_ref();
    same(&switched.original.value)
        || switched.ours.iter().any(same)
        || unconfirmed.is_some_and(|wanted| knob.may_become(wanted.as_deref(), now))
}

/// Restores a setting and reads it back. An interrupted call can be repeated.
pub(crate) fn put_back(
    session: &ChangeSession,
    host: &dyn HostMut,
    id: u64,
    switched: &Switched,
    trust: Trust,
) -> Result<Back, ChangeError> {
    let Switched {
        setting, original, ..
    } = switched;
    let knob = open_knob(setting, &original.place);
    let work = session_work(session, id, trust == Trust::Force);
    knob.tidy(host, &work)?;
    if !switched.touched() && trust == Trust::Own {
        return Ok(Back::Already(original.shown.clone()));
    }
    let now = match knob.read(host) {
        // Another process of assay may start before the file system of the file is mounted.
        Err(ChangeError::Host(HostError::NotFound { .. })) if trust == Trust::Own => {
            return Ok(Back::LeftAlone(REMOVED.to_owned()));
        }
        read => read?,
    };
    let as_found = knob.same(now.value.as_deref(), original.value.as_deref());
    if trust != Trust::Force && !is_known(&*knob, switched, &now) {
        let mut known = switched.ours.clone();
        known.extend(switched.unconfirmed.clone());
        let (before, present) = (original.value.as_deref(), now.value.as_deref());
        let Some(value) = knob.restore_ours(&known, before, present) else {
            return Ok(Back::LeftAlone(now.shown));
        };
        let partly = Original {
            value: Some(value),
            ..original.clone()
        };
        knob.restore(host, &partly, &work)?;
        return Ok(Back::LeftAlone(knob.read(host)?.shown));
    }
    let settled = match switched.touched() {
        true => knob.settled(host, original, &work)?,
        // Nothing was set: if the value is the original one, nothing is left to do.
        false => as_found,
    };
    if !settled {
        knob.restore(host, original, &work)?;
    }
    let after = knob.read(host)?;
    if !knob.same(after.value.as_deref(), original.value.as_deref()) {
        return Err(ChangeError::ReadBack {
            what: setting_name(setting),
            wanted: original.shown.clone(),
            found: after.shown,
        });
    }
    if switched.touched() {
        session.write(Line::Restored { id })?;
    }
    if trust == Trust::Left
        && let Some(what) = knob.apart(host, original, &work)?
    {
        return Ok(Back::Apart(what));
    }
    Ok(match settled {
        true => Back::Already(after.shown),
        false => Back::Restored(after.shown),
    })
}

fn session_work(session: &ChangeSession, id: u64, force: bool) -> Work {
    Work {
        saved: session.saved(id),
        aside: session.name(id.to_string()),
        force,
    }
}

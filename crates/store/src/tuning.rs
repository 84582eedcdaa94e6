//! Stores and reads tuning sessions. Each session is one record, which is written again completely after each step.

use crate::database::{Kind, Record};
use crate::{Store, StoreError, word};
use assay_model::Machine;
use assay_tune::{TuneId, TuneRecord, TuneState};

impl Store {
    /// Stores a session durably. Replaces an earlier state of the same session.
    ///
    /// # Errors
    /// The database reports an error, for example because it is full, locked or read-only.
    pub fn put_tune(&mut self, session: &TuneRecord) -> Result<TuneId, StoreError> {
        let record = self.tune_record(session)?;
        let here = self.here.as_ref();
        let (id, new) = self.sql.insert(Kind::Tune, &record, here, &[])?;
        if !new {
            self.sql.update(Kind::Tune, &record)?;
        }
        Ok(TuneId(id))
    }

    /// Stores a session of another machine. Returns whether the session is new, and whether it replaced an earlier
    /// state with fewer outcomes.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn import_tune(
        &mut self,
        session: &TuneRecord,
        machine: Option<&Machine>,
    ) -> Result<(bool, bool), StoreError> {
        let record = self.tune_record(session)?;
        let (id, new) = self.sql.insert(Kind::Tune, &record, machine, &[])?;
        if new {
            return Ok((true, false));
        }
        let known = self.tune(TuneId(id))?;
        let ended = known.state == TuneState::Running && session.state != TuneState::Running;
        let grown = session.seen.len() > known.seen.len() || ended;
        if grown {
            self.sql.update(Kind::Tune, &record)?;
        }
        Ok((false, grown))
    }

    /// Returns all tuning sessions, newest first.
    ///
    /// # Errors
    /// A session cannot be decoded, or the database reports an error.
    pub fn tunes(&self) -> Result<Vec<(TuneId, TuneRecord)>, StoreError> {
        let bodies = self.sql.bodies(Kind::Tune)?;
        let read = |(id, body): &(i64, Vec<u8>)| {
            Ok((TuneId(*id), self.unpack(&format!("session {id}"), body)?))
        };
        bodies.iter().map(read).collect()
    }

    /// Returns the tuning session with this number.
    ///
    /// # Errors
    /// The session does not exist or cannot be decoded.
    pub fn tune(&self, id: TuneId) -> Result<TuneRecord, StoreError> {
        self.read(Kind::Tune, id.0)
    }

    /// Returns the machine that a session tuned; `None` if unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn machine_of_tune(&self, id: TuneId) -> Result<Option<Machine>, StoreError> {
        self.sql.machine(Kind::Tune, id.0)
    }

    fn tune_record<'a>(&self, session: &'a TuneRecord) -> Result<Record<'a>, StoreError> {
        Ok(Record {
            uid: &session.uid,
            started: session.started,
            ended: session.ended,
            state: word(session.state),
            name: session.load.name(),
            about: session.target.clone(),
            planned: 0,
            body: self.pack("the session", session)?,
        })
    }
}

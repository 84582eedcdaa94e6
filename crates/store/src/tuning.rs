//! Sessions of tuning: one record each, whole, written anew after each step.

use crate::database::{Kind, Record};
use crate::{Store, StoreError, word};
use assay_model::Machine;
use assay_tune::{TuneId, TuneRecord, TuneState};

impl Store {
    /// Stores a session, or what has become of one that is stored: it is on the disk when this returns.
    ///
    /// # Errors
    /// What the database says: full, locked, read-only.
    pub fn put_tune(&mut self, session: &TuneRecord) -> Result<TuneId, StoreError> {
        let record = self.tune_record(session)?;
        let here = self.here.as_ref();
        let (id, new) = self.sql.insert(Kind::Tune, &record, here, &[])?;
        if !new {
            self.sql.update(Kind::Tune, &record)?;
        }
        Ok(TuneId(id))
    }

    /// Stores a session from elsewhere, as one of that machine: whether it is new, and whether one that was
    /// there had seen less.
    ///
    /// # Errors
    /// What the database says.
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

    /// All sessions, newest first.
    ///
    /// # Errors
    /// One does not read back, or what the database says.
    pub fn tunes(&self) -> Result<Vec<(TuneId, TuneRecord)>, StoreError> {
        let bodies = self.sql.bodies(Kind::Tune)?;
        let read = |(id, body): &(i64, Vec<u8>)| {
            Ok((TuneId(*id), self.unpack(&format!("session {id}"), body)?))
        };
        bodies.iter().map(read).collect()
    }

    /// A session.
    ///
    /// # Errors
    /// It is not there, or does not read back.
    pub fn tune(&self, id: TuneId) -> Result<TuneRecord, StoreError> {
        self.read(Kind::Tune, id.0)
    }

    /// The machine that a session tuned; none when that is not known.
    ///
    /// # Errors
    /// What the database says.
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

//! Stores and reads trials and their slots, in the same way as runs and their samples.

use crate::database::{Kind, Part, Record};
use crate::rows::PartRow;
use crate::{Store, StoreError, word};
use assay_model::Machine;
use assay_model::trial::{Slot, Trial, TrialId, TrialState};

impl Store {
    /// Stores a new trial and assigns its number.
    ///
    /// # Errors
    /// The database reports an error, for example because it is full, locked or read-only.
    pub fn create_trial(&mut self, trial: &mut Trial) -> Result<(), StoreError> {
        let record = self.trial_record(trial)?;
        trial.id = TrialId(self.create(Kind::Trial, &record)?);
        self.put_trial_rows(trial, trial.id, false)
    }

    /// Updates a trial without its slots.
    ///
    /// # Errors
    /// See [`Store::create_trial`]; or the trial does not exist.
    pub fn update_trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        let record = self.trial_record(trial)?;
        match self.sql.update(Kind::Trial, &record)? {
            true => {}
            false => return Err(self.missing(Kind::Trial, &trial.id.to_string())),
        }
        match self.sql.number(Kind::Trial, &trial.uid)? {
            Some(id) if trial.state != TrialState::Running => {
                self.put_trial_rows(trial, TrialId(id), true)
            }
            _ => Ok(()),
        }
    }

    /// Stores a slot durably. Replaces an earlier slot of the same side and pair.
    ///
    /// # Errors
    /// The trial does not exist, or the database reports an error, for example because it is full, locked or read-only.
    pub fn add_slot(&mut self, trial: TrialId, slot: &Slot) -> Result<(), StoreError> {
        let part = self.slot_part(slot)?;
        match self.sql.put_part(Kind::Trial, trial.0, &part)? {
            true => Ok(()),
            false => Err(self.missing(Kind::Trial, &trial.to_string())),
        }
    }

    /// Returns all trials, newest first.
    ///
    /// # Errors
    /// A trial cannot be read back, or the database reports an error.
    pub fn trials(&self) -> Result<Vec<Trial>, StoreError> {
        let bodies = self.sql.bodies(Kind::Trial)?;
        let read = |(id, body): &(i64, Vec<u8>)| {
            let trial: Trial = self.unpack(&format!("trial {id}"), body)?;
            let id = TrialId(*id);
            Ok(Trial { id, ..trial })
        };
        bodies.iter().map(read).collect()
    }

    /// Returns the trial with this number.
    ///
    /// # Errors
    /// The trial does not exist or cannot be read back.
    pub fn trial(&self, id: TrialId) -> Result<Trial, StoreError> {
        let trial: Trial = self.read(Kind::Trial, id.0)?;
        Ok(Trial { id, ..trial })
    }

    /// Returns the machine of a trial; `None` if unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn machine_of_trial(&self, id: TrialId) -> Result<Option<Machine>, StoreError> {
        self.sql.machine(Kind::Trial, id.0)
    }

    /// Returns the slots of a trial, ordered by pair and by time within a pair.
    ///
    /// # Errors
    /// A slot cannot be read back.
    pub fn slots(&self, id: TrialId) -> Result<Vec<Slot>, StoreError> {
        let parts = self.sql.parts(Kind::Trial, id.0)?;
        let read = |(pair, body): &(i64, Vec<u8>)| {
            self.unpack(&format!("a slot of pair {pair} of trial {id}"), body)
        };
        let mut slots: Vec<Slot> = parts.iter().map(read).collect::<Result<_, _>>()?;
        slots.sort_by_key(|slot| (slot.pair, slot.sample.slot));
        Ok(slots)
    }

    /// Stores a trial of another machine with all its slots, or stores nothing. A trial whose uid already exists is not
    /// stored again. Returns the trial's number in this store, and whether the trial is new.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn import_trial(
        &mut self,
        trial: &Trial,
        slots: &[Slot],
        machine: Option<&Machine>,
    ) -> Result<(TrialId, bool), StoreError> {
        let record = self.trial_record(trial)?;
        let parts = slots.iter().map(|slot| self.slot_part(slot));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let (id, new) = self.sql.insert(Kind::Trial, &record, machine, &parts)?;
        if new {
            self.put_trial_rows(trial, TrialId(id), true)?;
        }
        Ok((TrialId(id), new))
    }

    fn slot_part(&self, slot: &Slot) -> Result<Part, StoreError> {
        Ok(Part {
            at: slot.pair,
            side: word(slot.side),
            body: self.pack(&format!("a slot of pair {}", slot.pair), slot)?,
            row: PartRow::of_slot(slot, None),
        })
    }

    fn trial_record<'a>(&self, trial: &'a Trial) -> Result<Record<'a>, StoreError> {
        Ok(Record {
            uid: &trial.uid,
            started: trial.started,
            ended: trial.ended,
            state: word(trial.state),
            name: &trial.plan.advice,
            about: trial.plan.target.clone(),
            planned: 2 * trial.plan.max_pairs as usize,
            body: self.pack("the trial", trial)?,
        })
    }
}

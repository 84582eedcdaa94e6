//! Trials: one row each, and one row for each slot, as with runs and samples.

use crate::resolve::{Found, find};
use crate::{Store, StoreError};
use assay_model::trial::{Side, Slot, Trial, TrialId, TrialState};
use rusqlite::{OptionalExtension as _, params};

impl Store {
    /// Stores a new trial and gives it its number.
    ///
    /// # Errors
    /// What SQLite says: full, locked, read-only.
    pub fn create_trial(&mut self, trial: &mut Trial) -> Result<(), StoreError> {
        let body = self.pack("the trial", trial)?;
        let inserted = self.connection.execute(
            "INSERT INTO trial (uid, started, ended, state, advice, target, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![
                trial.uid,
                trial.started.to_string(),
                trial.ended.map(|at| at.to_string()),
                state_name(trial.state),
                trial.plan.advice,
                trial.plan.target,
                body
            ],
        );
        inserted.map_err(|source| self.fail(source))?;
        trial.id = TrialId(self.connection.last_insert_rowid());
        Ok(())
    }

    /// Replaces what is stored of a trial, its slots apart.
    ///
    /// # Errors
    /// As [`Store::create_trial`]; also when the trial is not there.
    pub fn update_trial(&mut self, trial: &Trial) -> Result<(), StoreError> {
        let body = self.pack("the trial", trial)?;
        let changed = self.connection.execute(
            "UPDATE trial SET ended = ?2, state = ?3, body = ?4 WHERE id = ?1",
            params![
                trial.id.0,
                trial.ended.map(|at| at.to_string()),
                state_name(trial.state),
                body
            ],
        );
        match changed.map_err(|source| self.fail(source))? {
            0 => Err(self.no_trial(&trial.id.to_string())),
            _ => Ok(()),
        }
    }

    /// Stores a slot; it is on the disk when this returns. The same side of the same pair is
    /// replaced.
    ///
    /// # Errors
    /// What SQLite says: full, locked, read-only, no such trial.
    pub fn add_slot(&mut self, trial: TrialId, slot: &Slot) -> Result<(), StoreError> {
        let body = self.pack(&format!("a slot of pair {}", slot.pair), slot)?;
        let inserted = self.connection.execute(
            "INSERT OR REPLACE INTO trial_slot (trial, pair, side, body) VALUES (?1, ?2, ?3, ?4)",
            params![trial.0, slot.pair, side_name(slot.side), body],
        );
        match inserted {
            Ok(_) => Ok(()),
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                Err(self.no_trial(&trial.to_string()))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// All trials, newest first.
    ///
    /// # Errors
    /// One does not read back, or what SQLite says.
    pub fn trials(&self) -> Result<Vec<Trial>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self
            .connection
            .prepare("SELECT id, body FROM trial ORDER BY id DESC")
            .map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        let mut trials = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            let id: i64 = row.get(0).map_err(fail)?;
            let body: Vec<u8> = row.get(1).map_err(fail)?;
            trials.push(self.unpack_trial(TrialId(id), &body)?);
        }
        Ok(trials)
    }

    /// A trial.
    ///
    /// # Errors
    /// It is not there, or does not read back.
    pub fn trial(&self, id: TrialId) -> Result<Trial, StoreError> {
        let body: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT body FROM trial WHERE id = ?1", [id.0], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|source| self.fail(source))?;
        let body = body.ok_or_else(|| self.no_trial(&id.to_string()))?;
        self.unpack_trial(id, &body)
    }

    fn unpack_trial(&self, id: TrialId, body: &[u8]) -> Result<Trial, StoreError> {
        let mut trial: Trial = self.unpack(&format!("trial {id}"), body)?;
        trial.id = id;
        Ok(trial)
    }

    /// The slots of a trial by pair, in the order they were measured.
    ///
    /// # Errors
    /// One does not read back.
    pub fn slots(&self, id: TrialId) -> Result<Vec<Slot>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self
            .connection
            .prepare("SELECT pair, body FROM trial_slot WHERE trial = ?1")
            .map_err(fail)?;
        let mut rows = statement.query([id.0]).map_err(fail)?;
        let mut slots: Vec<Slot> = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            let pair: i64 = row.get(0).map_err(fail)?;
            let body: Vec<u8> = row.get(1).map_err(fail)?;
            slots.push(self.unpack(&format!("a slot of pair {pair} of trial {id}"), &body)?);
        }
        slots.sort_by_key(|slot| (slot.pair, slot.sample.slot));
        Ok(slots)
    }

    /// The trial that a person means: `3`, `last`, `last~1`, the start of a uid.
    ///
    /// # Errors
    /// No trial, or several, fit; the error says which there are.
    pub fn resolve_trial(&self, asked: &str) -> Result<TrialId, StoreError> {
        let trials = self.trials()?;
        let names: Vec<(i64, &str)> = trials
            .iter()
            .map(|trial| (trial.id.0, trial.uid.as_str()))
            .collect();
        match find(&names, asked) {
            Found::One(id) => Ok(TrialId(id)),
            Found::None => Err(self.no_trial(asked)),
            Found::Several(ids) => Err(StoreError::Ambiguous {
                asked: asked.to_owned(),
                ids: ids.join(", "),
            }),
            Found::NoName => Err(StoreError::Name {
                asked: asked.escape_debug().to_string(),
            }),
        }
    }

    fn no_trial(&self, asked: &str) -> StoreError {
        let known = match self.trials() {
            Ok(trials) if trials.is_empty() => "nothing was tried yet: `assay advice`".to_owned(),
            _ => "`assay trial --list` shows them".to_owned(),
        };
        StoreError::NoTrial {
            asked: asked.escape_debug().to_string(),
            known,
        }
    }
}

fn state_name(state: TrialState) -> &'static str {
    match state {
        TrialState::Running => "running",
        TrialState::Complete => "complete",
        TrialState::Stopped => "stopped",
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Now => "now",
        Side::Changed => "changed",
    }
}

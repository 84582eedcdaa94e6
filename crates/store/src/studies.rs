//! Stores and reads study runs. Each run is one record.

use crate::database::{Kind, Record};
use crate::{Store, StoreError};
use assay_model::Machine;
use assay_model::study::StudyRun;

/// Number of a study run in one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct StudyId(pub i64);

impl std::fmt::Display for StudyId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Store {
    /// Stores a study run durably, or updates it.
    ///
    /// # Errors
    /// The database reports an error, for example because it is full, locked or read-only.
    pub fn put_study(&mut self, run: &StudyRun) -> Result<StudyId, StoreError> {
        let record = self.study_record(run)?;
        let here = self.here.as_ref();
        let (id, new) = self.sql.insert(Kind::Study, &record, here, &[])?;
        if !new {
            self.sql.update(Kind::Study, &record)?;
        }
        Ok(StudyId(id))
    }

    /// Stores a study run of another machine. Returns whether the run is new, and whether an existing unfinished run
    /// was extended.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn import_study(
        &mut self,
        run: &StudyRun,
        machine: Option<&Machine>,
    ) -> Result<(bool, bool), StoreError> {
        let record = self.study_record(run)?;
        let (id, new) = self.sql.insert(Kind::Study, &record, machine, &[])?;
        if new {
            return Ok((true, false));
        }
        let known = self.study(StudyId(id))?;
        let grown = run.complete && !known.complete;
        if grown {
            self.sql.update(Kind::Study, &record)?;
        }
        Ok((false, grown))
    }

    fn study_record<'a>(&self, run: &'a StudyRun) -> Result<Record<'a>, StoreError> {
        Ok(Record {
            uid: &run.uid,
            started: run.started,
            ended: run.ended,
            state: match run.complete {
                true => "complete".to_owned(),
                false => "stopped".to_owned(),
            },
            name: &run.study.name,
            about: String::new(),
            planned: 0,
            body: self.pack("the study", run)?,
        })
    }

    /// Returns all study runs, newest first.
    ///
    /// # Errors
    /// A run cannot be read back, or the database reports an error.
    pub fn studies(&self) -> Result<Vec<(StudyId, StudyRun)>, StoreError> {
        let bodies = self.sql.bodies(Kind::Study)?;
        let read = |(id, body): &(i64, Vec<u8>)| {
            Ok((StudyId(*id), self.unpack(&format!("study {id}"), body)?))
        };
        bodies.iter().map(read).collect()
    }

    /// Returns the study run with this number.
    ///
    /// # Errors
    /// The run does not exist or cannot be read back.
    pub fn study(&self, id: StudyId) -> Result<StudyRun, StoreError> {
        self.read(Kind::Study, id.0)
    }

    /// Returns the machine of a study run; `None` if unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn machine_of_study(&self, id: StudyId) -> Result<Option<Machine>, StoreError> {
        self.sql.machine(Kind::Study, id.0)
    }
}

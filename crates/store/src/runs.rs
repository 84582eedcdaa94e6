//! Runs and their samples.

use crate::database::{Kind, Listed, Part, Record};
use crate::error::Cause;
use crate::rows::PartRow;
use crate::{Store, StoreError, word};
use assay_model::run::{Run, RunId, RunState};
use assay_model::{Machine, Sample};
use jiff::Timestamp;
use serde::Serialize;

/// A run as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RunRow {
    /// Number.
    pub id: RunId,
    /// Its name in every store.
    pub uid: String,
    /// When it began.
    pub started: Timestamp,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// How far it got.
    pub state: RunState,
    /// Name of its plan.
    pub plan: String,
    /// Targets.
    pub targets: Vec<String>,
    /// Samples stored.
    pub samples: u64,
    /// Samples planned.
    pub planned: u64,
    /// What it was measured on, where that is known.
    pub machine: Option<Machine>,
}

impl Store {
    /// Stores a new run and gives it its number.
    ///
    /// # Errors
    /// What the database says: full, locked, read-only.
    pub fn create_run(&mut self, run: &mut Run) -> Result<(), StoreError> {
        let record = self.run_record(run)?;
        run.id = RunId(self.create(Kind::Run, &record)?);
        self.put_run_rows(run, run.id, false)
    }

    /// Replaces what is stored of a run, its samples apart.
    ///
    /// # Errors
    /// As [`Store::create_run`]; also when the run is not there.
    pub fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let record = self.run_record(run)?;
        match self.sql.update(Kind::Run, &record)? {
            true => {}
            false => return Err(self.missing(Kind::Run, &run.id.to_string())),
        }
        match self.sql.number(Kind::Run, &run.uid)? {
            Some(id) if run.state != RunState::Running => self.put_run_rows(run, RunId(id), true),
            _ => Ok(()),
        }
    }

    /// Stores a sample; it is on the disk when this returns. A sample of the same slot is replaced.
    ///
    /// # Errors
    /// What the database says: full, locked, read-only, no such run.
    pub fn add_sample(&mut self, run: RunId, sample: &Sample) -> Result<(), StoreError> {
        let part = self.sample_part(sample)?;
        match self.sql.put_part(Kind::Run, run.0, &part)? {
            true => Ok(()),
            false => Err(self.missing(Kind::Run, &run.to_string())),
        }
    }

    /// Says how a run ended.
    ///
    /// # Errors
    /// What the database says; also when the run is not there.
    pub fn finish(
        &mut self,
        id: RunId,
        state: RunState,
        ended: Timestamp,
    ) -> Result<(), StoreError> {
        let mut run = self.run(id)?;
        run.state = state;
        run.ended = Some(ended);
        self.update_run(&run)
    }

    /// All runs, newest first.
    ///
    /// # Errors
    /// What the database says.
    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let rows = self.sql.runs()?;
        rows.into_iter().map(|row| self.run_row(row)).collect()
    }

    fn run_row(&self, row: Listed) -> Result<RunRow, StoreError> {
        let fail = |reason: Cause| StoreError::row(self.path(), &format!("run {}", row.id), reason);
        let time = |text: &str| {
            text.parse::<Timestamp>()
                .map_err(|error| fail(error.into()))
        };
        let state = serde_json::Value::String(row.state);
        Ok(RunRow {
            id: RunId(row.id),
            started: time(&row.started)?,
            ended: row.ended.as_deref().map(time).transpose()?,
            state: serde_json::from_value(state).map_err(|error| fail(error.into()))?,
            targets: serde_json::from_str(&row.about).map_err(|error| fail(error.into()))?,
            planned: u64::try_from(row.planned).unwrap_or(0),
            samples: u64::try_from(row.stored).unwrap_or(0),
            uid: row.uid,
            plan: row.name,
            machine: row.machine,
        })
    }

    /// A run.
    ///
    /// # Errors
    /// It is not there, or does not read back.
    pub fn run(&self, id: RunId) -> Result<Run, StoreError> {
        let mut run: Run = self.read(Kind::Run, id.0)?;
        run.id = id;
        Ok(run)
    }

    /// The machine that a run was measured on; none when that is not known.
    ///
    /// # Errors
    /// What the database says.
    pub fn machine_of_run(&self, id: RunId) -> Result<Option<Machine>, StoreError> {
        self.sql.machine(Kind::Run, id.0)
    }

    /// The samples of a run, in the order of its plan.
    ///
    /// # Errors
    /// One does not read back.
    pub fn samples(&self, id: RunId) -> Result<Vec<Sample>, StoreError> {
        let parts = self.sql.parts(Kind::Run, id.0)?;
        let read = |(slot, body): &(i64, Vec<u8>)| {
            self.unpack(&format!("sample {slot} of run {id}"), body)
        };
        parts.iter().map(read).collect()
    }

    /// Removes a run and its samples.
    ///
    /// # Errors
    /// It is not there, or what the database says.
    pub fn delete_run(&mut self, id: RunId) -> Result<(), StoreError> {
        match self.sql.delete(Kind::Run, id.0)? {
            true => Ok(()),
            false => Err(self.missing(Kind::Run, &id.to_string())),
        }
    }

    /// Stores a run from elsewhere with its samples, whole or not at all, as one of that machine.
    /// The same run (by uid) is stored once: its number here is returned, and whether it is new.
    ///
    /// # Errors
    /// What the database says.
    pub fn import_run(
        &mut self,
        run: &Run,
        samples: &[Sample],
        machine: Option<&Machine>,
    ) -> Result<(RunId, bool), StoreError> {
        let record = self.run_record(run)?;
        let parts = samples.iter().map(|sample| self.sample_part(sample));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let (id, new) = self.sql.insert(Kind::Run, &record, machine, &parts)?;
        if new {
            self.put_run_rows(run, RunId(id), true)?;
        }
        Ok((RunId(id), new))
    }

    fn run_record<'a>(&self, run: &'a Run) -> Result<Record<'a>, StoreError> {
        let targets: Vec<&str> = run.targets.iter().map(|one| one.name.as_str()).collect();
        Ok(Record {
            uid: &run.uid,
            started: run.started,
            ended: run.ended,
            state: word(run.state),
            name: &run.plan.name,
            about: serde_json::json!(targets).to_string(),
            planned: run.plan.order.len(),
            body: self.pack("the run", run)?,
        })
    }

    fn sample_part(&self, sample: &Sample) -> Result<Part, StoreError> {
        let workload = sample.workload.escape_debug();
        let what = format!("the sample of {workload} in round {}", sample.round);
        Ok(Part {
            at: sample.slot,
            side: String::new(),
            body: self.pack(&what, sample)?,
            row: PartRow::of_sample(sample, None),
        })
    }
}

//! Stores and reads runs and their samples.

use crate::database::{Kind, Part, Record};
use crate::rows::PartRow;
use crate::{Store, StoreError, word};
use assay_model::run::{Run, RunId, RunState};
use assay_model::{Machine, Sample};
use jiff::Timestamp;

impl Store {
    /// Stores a new run and assigns its number.
    ///
    /// # Errors
    /// The database reports an error, for example because it is full, locked or read-only.
    pub fn create_run(&mut self, run: &mut Run) -> Result<(), StoreError> {
        let record = self.run_record(run)?;
        run.id = RunId(self.create(Kind::Run, &record)?);
        self.put_run_rows(run, run.id, false)
    }

    /// Updates a run without its samples.
    ///
    /// # Errors
    /// See [`Store::create_run`]; or the run does not exist.
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

    /// Stores a sample durably. Replaces an earlier sample of the same slot.
    ///
    /// # Errors
    /// The run does not exist, or the database reports an error, for example because it is full, locked or read-only.
    pub fn add_sample(&mut self, run: RunId, sample: &Sample) -> Result<(), StoreError> {
        let part = self.sample_part(sample)?;
        match self.sql.put_part(Kind::Run, run.0, &part)? {
            true => Ok(()),
            false => Err(self.missing(Kind::Run, &run.to_string())),
        }
    }

    /// Records how a run ended.
    ///
    /// # Errors
    /// The database reports an error, or the run does not exist.
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

    /// Returns the run with this number.
    ///
    /// # Errors
    /// The run does not exist or cannot be read back.
    pub fn run(&self, id: RunId) -> Result<Run, StoreError> {
        let mut run: Run = self.read(Kind::Run, id.0)?;
        run.id = id;
        Ok(run)
    }

    /// Returns the machine of a run; `None` if unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn machine_of_run(&self, id: RunId) -> Result<Option<Machine>, StoreError> {
        self.sql.machine(Kind::Run, id.0)
    }

    /// Returns the samples of a run, in the order of its plan.
    ///
    /// # Errors
    /// A sample cannot be read back.
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
    /// The run does not exist, or the database reports an error.
    pub fn delete_run(&mut self, id: RunId) -> Result<(), StoreError> {
        match self.sql.delete(Kind::Run, id.0)? {
            true => Ok(()),
            false => Err(self.missing(Kind::Run, &id.to_string())),
        }
    }

    /// Stores a run of another machine with all its samples, or stores nothing. A run whose uid already exists is not
    /// stored again. Returns the run's number in this store, and whether the run is new.
    ///
    /// # Errors
    /// The database reports an error.
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

//! Runs and samples in SQLite: raw, durable when a call returns, shared by many processes.
//!
//! A run is one row, a sample is one row; the body of both is the JSON of the model, compressed.
//! The columns beside it are only what lists need. Nothing derived is stored.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate owns its database file"
)]

mod error;
mod export;
mod open;
mod resolve;
mod studies;
mod trials;

pub use error::StoreError;
pub use export::{Export, from_json, to_json};
pub use studies::StudyId;

use assay_model::Sample;
use assay_model::run::{Run, RunId, RunState};
use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// zstd's level: 3 takes the bins of a histogram to a tenth at no noticeable time.
const COMPRESSION: i32 = 3;
/// A body that says it is longer than this is not ours.
const MAX_BODY: usize = 1 << 30;

/// A store of runs.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    connection: Connection,
}

/// A run as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
}

impl Store {
    /// Opens the store, making it when there is none.
    ///
    /// # Errors
    /// Another program's file, a newer assay's, or what SQLite says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.to_owned(),
            connection: open::open(path)?,
        })
    }

    /// Opens the store and makes nothing: none when there is no such file.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Ok(None);
        }
        Ok(Some(Self {
            path: path.to_owned(),
            connection: open::open_existing(path)?,
        }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn fail(&self, source: rusqlite::Error) -> StoreError {
        StoreError::sqlite(&self.path, source)
    }

    /// Packs a value, and proves that it can be read back: JSON has no NaN and no infinity, and what
    /// was measured must not be lost to one.
    fn pack<T: Serialize + DeserializeOwned>(
        &self,
        what: &str,
        value: &T,
    ) -> Result<Vec<u8>, StoreError> {
        let fail = |error: &dyn std::fmt::Display| self.row(what, error);
        let json = serde_json::to_vec(value).map_err(|error| fail(&error))?;
        serde_json::from_slice::<T>(&json).map_err(|error| fail(&error))?;
        zstd::bulk::compress(&json, COMPRESSION).map_err(|error| fail(&error))
    }

    fn unpack<T: DeserializeOwned>(&self, what: &str, body: &[u8]) -> Result<T, StoreError> {
        let mut reader = zstd::Decoder::new(body).map_err(|error| self.row(what, &error))?;
        let mut json = Vec::new();
        let mut limited = std::io::Read::take(&mut reader, MAX_BODY as u64);
        std::io::Read::read_to_end(&mut limited, &mut json)
            .map_err(|error| self.row(what, &error))?;
        serde_json::from_slice(&json).map_err(|error| self.row(what, &error))
    }

    fn row(&self, what: &str, reason: &dyn std::fmt::Display) -> StoreError {
        StoreError::Row {
            path: self.path.clone(),
            what: what.to_owned(),
            reason: reason.to_string(),
        }
    }

    /// Stores a new run and gives it its number.
    ///
    /// # Errors
    /// What SQLite says: full, locked, read-only.
    pub fn create_run(&mut self, run: &mut Run) -> Result<(), StoreError> {
        let body = self.pack("the run", run)?;
        let done = insert_run(&self.connection, run, &body);
        run.id = done.map_err(|source| self.fail(source))?;
        Ok(())
    }

    /// Replaces what is stored of a run, its samples apart.
    ///
    /// # Errors
    /// As [`Store::create_run`]; also when the run is not there.
    pub fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let body = self.pack("the run", run)?;
        let changed = self
            .connection
            .execute(
                "UPDATE run SET ended = ?2, state = ?3, body = ?4 WHERE id = ?1",
                params![
                    run.id.0,
                    run.ended.map(|at| at.to_string()),
                    state_name(run.state),
                    body
                ],
            )
            .map_err(|source| self.fail(source))?;
        match changed {
            0 => Err(self.no_run(&run.id.to_string())),
            _ => Ok(()),
        }
    }

    /// Stores a sample; it is on the disk when this returns. A sample of the same slot is replaced.
    ///
    /// # Errors
    /// What SQLite says: full, locked, read-only, no such run.
    pub fn add_sample(&mut self, run: RunId, sample: &Sample) -> Result<(), StoreError> {
        let body = self.pack(&label(sample), sample)?;
        match insert_sample(&self.connection, run, sample, &body) {
            Ok(()) => Ok(()),
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                Err(self.no_run(&run.to_string()))
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// Says how a run ended.
    ///
    /// # Errors
    /// What SQLite says; also when the run is not there.
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
    /// What SQLite says.
    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self
            .connection
            .prepare(
                "SELECT id, uid, started, ended, state, plan, targets, slots,
                        (SELECT count(*) FROM sample WHERE run = id)
                 FROM run ORDER BY id DESC",
            )
            .map_err(fail)?;
        let mut rows = statement.query([]).map_err(fail)?;
        let mut runs = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            runs.push(self.read_row(row)?);
        }
        Ok(runs)
    }

    fn read_row(&self, row: &rusqlite::Row<'_>) -> Result<RunRow, StoreError> {
        let text = |index: usize| {
            row.get::<_, String>(index)
                .map_err(|source| self.fail(source))
        };
        let number = |index: usize| row.get::<_, i64>(index).map_err(|source| self.fail(source));
        let id = RunId(number(0)?);
        let what = format!("run {id}");
        let time = |text: String| {
            text.parse::<Timestamp>()
                .map_err(|error| self.row(&what, &error))
        };
        let ended: Option<String> = row.get(3).map_err(|source| self.fail(source))?;
        let json = |text: String| serde_json::Value::String(text);
        Ok(RunRow {
            id,
            uid: text(1)?,
            started: time(text(2)?)?,
            ended: ended.map(time).transpose()?,
            state: serde_json::from_value(json(text(4)?))
                .map_err(|error| self.row(&what, &error))?,
            plan: text(5)?,
            targets: serde_json::from_str(&text(6)?).map_err(|error| self.row(&what, &error))?,
            planned: u64::try_from(number(7)?).unwrap_or(0),
            samples: u64::try_from(number(8)?).unwrap_or(0),
        })
    }

    /// A run.
    ///
    /// # Errors
    /// It is not there, or does not read back.
    pub fn run(&self, id: RunId) -> Result<Run, StoreError> {
        let body: Option<Vec<u8>> = self
            .connection
            .query_row("SELECT body FROM run WHERE id = ?1", [id.0], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|source| self.fail(source))?;
        let body = body.ok_or_else(|| self.no_run(&id.to_string()))?;
        let mut run: Run = self.unpack(&format!("run {id}"), &body)?;
        run.id = id;
        Ok(run)
    }

    /// The samples of a run, in the order of its plan.
    ///
    /// # Errors
    /// One does not read back.
    pub fn samples(&self, id: RunId) -> Result<Vec<Sample>, StoreError> {
        let fail = |source| self.fail(source);
        let mut statement = self
            .connection
            .prepare("SELECT slot, body FROM sample WHERE run = ?1 ORDER BY slot")
            .map_err(fail)?;
        let mut rows = statement.query([id.0]).map_err(fail)?;
        let mut samples = Vec::new();
        while let Some(row) = rows.next().map_err(fail)? {
            let slot: i64 = row.get(0).map_err(fail)?;
            let body: Vec<u8> = row.get(1).map_err(fail)?;
            samples.push(self.unpack(&format!("sample {slot} of run {id}"), &body)?);
        }
        Ok(samples)
    }

    /// Removes a run and its samples.
    ///
    /// # Errors
    /// It is not there, or what SQLite says.
    pub fn delete_run(&mut self, id: RunId) -> Result<(), StoreError> {
        let changed = self
            .connection
            .execute("DELETE FROM run WHERE id = ?1", [id.0]);
        match changed.map_err(|source| self.fail(source))? {
            0 => Err(self.no_run(&id.to_string())),
            _ => Ok(()),
        }
    }

    /// Stores a run from elsewhere with its samples, whole or not at all. The same run (by uid) is
    /// stored once: its number here is returned, and whether it is new.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn import_run(
        &mut self,
        run: &Run,
        samples: &[Sample],
    ) -> Result<(RunId, bool), StoreError> {
        let body = self.pack("the run", run)?;
        let bodies = samples
            .iter()
            .map(|sample| self.pack(&label(sample), sample))
            .collect::<Result<Vec<_>, _>>()?;
        let mut store = || {
            // The lock is taken before looking, so that two imports of one run store it once.
            let behavior = rusqlite::TransactionBehavior::Immediate;
            let transaction = self.connection.transaction_with_behavior(behavior)?;
            let known: Option<i64> = transaction
                .query_row("SELECT id FROM run WHERE uid = ?1", [&run.uid], |row| {
                    row.get(0)
                })
                .optional()?;
            if let Some(id) = known {
                return Ok((RunId(id), false));
            }
            let id = insert_run(&transaction, run, &body)?;
            for (sample, body) in samples.iter().zip(&bodies) {
                insert_sample(&transaction, id, sample, body)?;
            }
            transaction.commit()?;
            Ok((id, true))
        };
        let stored = store();
        stored.map_err(|source| self.fail(source))
    }
}

fn label(sample: &Sample) -> String {
    format!(
        "the sample of {} in round {}",
        sample.workload.escape_debug(),
        sample.round
    )
}

fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Complete => "complete",
        RunState::Interrupted => "interrupted",
        RunState::Failed => "failed",
    }
}

fn insert_run(connection: &Connection, run: &Run, body: &[u8]) -> rusqlite::Result<RunId> {
    let targets: Vec<&str> = run
        .targets
        .iter()
        .map(|target| target.name.as_str())
        .collect();
    connection.execute(
        "INSERT INTO run (uid, started, ended, state, plan, targets, slots, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![
            run.uid,
            run.started.to_string(),
            run.ended.map(|at| at.to_string()),
            state_name(run.state),
            run.plan.name,
            serde_json::json!(targets).to_string(),
            i64::try_from(run.plan.order.len()).unwrap_or(i64::MAX),
            body
        ],
    )?;
    Ok(RunId(connection.last_insert_rowid()))
}

fn insert_sample(
    connection: &Connection,
    run: RunId,
    sample: &Sample,
    body: &[u8],
) -> rusqlite::Result<()> {
    let mut statement = connection
        .prepare_cached("INSERT OR REPLACE INTO sample (run, slot, body) VALUES (?1, ?2, ?3)")?;
    statement.execute(params![run.0, sample.slot, body])?;
    Ok(())
}

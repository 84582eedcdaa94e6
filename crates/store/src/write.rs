//! Writing: every call is one transaction, durable when it returns.

use crate::{Store, StoreError, body};
use assay_model::run::{Origin, RunState};
use assay_model::sample::Outcome;
use assay_model::{Run, RunId, SCHEMA_VERSION, Sample};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

/// What became of a run that was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Imported {
    /// It is new here, under this number.
    New(RunId),
    /// A run of the same uid was here already; nothing was changed.
    Known(RunId),
}

impl Imported {
    /// Its number in this store.
    #[must_use]
    pub fn id(self) -> RunId {
        match self {
            Self::New(id) | Self::Known(id) => id,
        }
    }
}

impl Store {
    /// Stores a new run and gives it its number.
    ///
    /// # Errors
    /// The store refused, or it holds a run of the same uid.
    pub fn create_run(&mut self, run: &mut Run) -> Result<(), StoreError> {
        let doing = "store the run";
        let transaction = begin(&mut self.connection).map_err(|e| at(&self.path, doing, e))?;
        let id = insert_run(&transaction, run).map_err(|e| e.at(&self.path, doing))?;
        transaction
            .commit()
            .map_err(|source| self.fail(doing, source))?;
        run.id = id;
        Ok(())
    }

    /// Replaces the record of a run: when it is resumed, its environment and state have changed.
    ///
    /// # Errors
    /// No such run, or the store refused.
    pub fn update_run(&mut self, run: &Run) -> Result<(), StoreError> {
        let row = Row::of(run)?;
        let changed = self
            .connection
            .execute(
                "UPDATE runs SET started = ?2, ended = ?3, state = ?4, origin = ?5, plan = ?6,
                 targets = ?7, slots = ?8, remarks = ?9, schema = ?10, body = ?11 WHERE id = ?1",
                params![
                    run.id.0,
                    row.started,
                    row.ended,
                    row.state,
                    row.origin,
                    row.plan,
                    row.targets,
                    row.slots,
                    row.remarks,
                    SCHEMA_VERSION,
                    row.body
                ],
            )
            .map_err(|source| self.fail("store the run", source))?;
        if changed == 0 {
            return Err(self.no_such_run(&run.id.to_string())?);
        }
        Ok(())
    }

    /// Adds a sample to a run. It is durable when this returns.
    ///
    /// # Errors
    /// No such run, or the store refused; the samples before it are intact.
    pub fn add_sample(&mut self, run: RunId, sample: &Sample) -> Result<(), StoreError> {
        let doing = "store the sample";
        match insert_sample(&self.connection, run, sample) {
            Ok(()) => Ok(()),
            Err(Refused::Sqlite(error))
                if error.sqlite_error_code()
                    == Some(rusqlite::ErrorCode::ConstraintViolation) =>
            {
                Err(self.no_such_run(&run.to_string())?)
            }
            Err(error) => Err(error.at(&self.path, doing)),
        }
    }

    /// Records how a run ended.
    ///
    /// # Errors
    /// No such run, or the store refused.
    pub fn finish(
        &mut self,
        id: RunId,
        state: RunState,
        ended: jiff::Timestamp,
    ) -> Result<(), StoreError> {
        let mut run = self.run(id)?;
        run.state = state;
        run.ended = Some(ended);
        self.update_run(&run)
    }

    /// Removes a run and its samples. Its number is not given to another run.
    ///
    /// # Errors
    /// No such run, or the store refused.
    pub fn delete_run(&mut self, id: RunId) -> Result<(), StoreError> {
        let deleted = self
            .connection
            .execute("DELETE FROM runs WHERE id = ?1", [id.0])
            .map_err(|source| self.fail("delete the run", source))?;
        if deleted == 0 {
            return Err(self.no_such_run(&id.to_string())?);
        }
        Ok(())
    }

    /// Stores a run made elsewhere with all its samples, or nothing of it. A run whose uid is
    /// here already is left as it is.
    ///
    /// # Errors
    /// The store refused.
    pub fn import_run(&mut self, run: &Run, samples: &[Sample]) -> Result<Imported, StoreError> {
        let doing = "store the imported run";
        let path = self.path.clone();
        let transaction = begin(&mut self.connection).map_err(|e| at(&path, doing, e))?;
        let known: Option<i64> = transaction
            .query_row("SELECT id FROM runs WHERE uid = ?1", [&run.uid], |row| {
                row.get(0)
            })
            .optional()
            .map_err(|e| at(&path, doing, e))?;
        if let Some(id) = known {
            return Ok(Imported::Known(RunId(id)));
        }
        let id = insert_run(&transaction, run).map_err(|e| e.at(&path, doing))?;
        for sample in samples {
            insert_sample(&transaction, id, sample).map_err(|e| e.at(&path, doing))?;
        }
        transaction.commit().map_err(|e| at(&path, doing, e))?;
        Ok(Imported::New(id))
    }
}

fn at(path: &std::path::Path, doing: &'static str, source: rusqlite::Error) -> StoreError {
    StoreError::sqlite(path, doing, source)
}

/// Takes the write lock at once: a transaction that reads first and writes later can be refused
/// without waiting.
fn begin(connection: &mut Connection) -> rusqlite::Result<rusqlite::Transaction<'_>> {
    connection.transaction_with_behavior(TransactionBehavior::Immediate)
}

enum Refused {
    Sqlite(rusqlite::Error),
    Store(StoreError),
}

impl From<rusqlite::Error> for Refused {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Refused {
    fn at(self, path: &std::path::Path, doing: &'static str) -> StoreError {
        match self {
            Self::Sqlite(source) => at(path, doing, source),
            Self::Store(error) => error,
        }
    }
}

/// The columns of a run.
struct Row {
    started: String,
    ended: Option<String>,
    state: &'static str,
    origin: &'static str,
    plan: String,
    targets: String,
    slots: i64,
    remarks: String,
    body: Vec<u8>,
}

impl Row {
    fn of(run: &Run) -> Result<Self, StoreError> {
        let targets: Vec<&str> = run.targets.iter().map(|t| t.name.as_str()).collect();
        Ok(Self {
            started: run.started.to_string(),
            ended: run.ended.map(|time| time.to_string()),
            state: match run.state {
                RunState::Running => "running",
                RunState::Complete => "complete",
                RunState::Interrupted => "interrupted",
                RunState::Failed => "failed",
            },
            origin: match run.origin {
                Origin::Measured => "measured",
                Origin::Imported { .. } => "imported",
            },
            plan: run.plan.name.clone(),
            targets: serde_json::json!(targets).to_string(),
            slots: run.plan.order.len() as i64,
            remarks: serde_json::json!(run.remarks).to_string(),
            body: encode(run, || "the run".to_owned())?,
        })
    }
}

fn encode<T: serde::Serialize + serde::de::DeserializeOwned>(
    value: &T,
    what: impl Fn() -> String,
) -> Result<Vec<u8>, StoreError> {
    body::encode(value).map_err(|reason| StoreError::Unstorable {
        what: what(),
        reason,
    })
}

fn insert_run(connection: &Connection, run: &Run) -> Result<RunId, Refused> {
    let row = Row::of(run)?;
    connection.execute(
        "INSERT INTO runs (uid, started, ended, state, origin, plan, targets, slots, remarks,
         schema, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            run.uid,
            row.started,
            row.ended,
            row.state,
            row.origin,
            row.plan,
            row.targets,
            row.slots,
            row.remarks,
            SCHEMA_VERSION,
            row.body
        ],
    )?;
    Ok(RunId(connection.last_insert_rowid()))
}

fn insert_sample(connection: &Connection, run: RunId, sample: &Sample) -> Result<(), Refused> {
    let what = || format!("the sample of {} in round {}", sample.workload, sample.round);
    let body = encode(sample, what)?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO samples (run, slot, round, workload, target, outcome, schema, body)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    statement.execute(params![
        run.0,
        sample.slot,
        sample.round,
        sample.workload,
        sample.target,
        match sample.outcome {
            Outcome::Completed => "completed",
            Outcome::Interrupted => "interrupted",
            Outcome::Failed { .. } => "failed",
            Outcome::TimedOut { .. } => "timed-out",
        },
        SCHEMA_VERSION,
        body
    ])?;
    Ok(())
}

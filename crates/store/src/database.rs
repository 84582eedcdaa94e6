//! What a database has to do for a store. Everything else in this crate speaks in records, so that SQLite and
//! PostgreSQL can stand here alike.

use crate::StoreError;
use crate::rows::{PartRow, Rows};
use crate::spans::{Ask, Changes, Host, Row, Span};
use crate::tables::{Table, Value};
use assay_model::Machine;
use jiff::Timestamp;
use std::path::Path;

/// What is stored. All kinds have the same columns; each counts its own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Trial,
    Study,
    Tune,
}

impl Kind {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Trial => "trial",
            Self::Study => "study",
            Self::Tune => "tune",
        }
    }

    /// Sets `tabled` to null, for records that have rows, once the state is an end. They are written anew then.
    pub(crate) fn without_rows_when_ended(self, state: &str) -> String {
        match self {
            Self::Study | Self::Tune => String::new(),
            _ => format!(", tabled = CASE WHEN {state} = 'running' THEN tabled END"),
        }
    }
}

/// One that is to be stored: its body, and beside it what lists need.
pub(crate) struct Record<'a> {
    pub(crate) uid: &'a str,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) state: String,
    pub(crate) name: &'a str,
    /// Targets of a run as JSON, the target of a trial.
    pub(crate) about: String,
    /// How many parts it has when it is complete.
    pub(crate) planned: usize,
    pub(crate) body: Vec<u8>,
}

/// A record as lists show it.
pub(crate) struct Listed {
    pub(crate) id: i64,
    pub(crate) uid: String,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) planned: i64,
    pub(crate) stored: i64,
    pub(crate) machine: Option<Machine>,
}

/// A part of a record: a sample of a run, or one side of a pair of a trial.
pub(crate) struct Part {
    /// Slot of the run, pair of the trial.
    pub(crate) at: u32,
    /// Side of the pair; empty for a run.
    pub(crate) side: String,
    pub(crate) body: Vec<u8>,
    /// The same for SQL.
    pub(crate) row: PartRow,
}

/// What a database has to do for what is true of machines over time.
pub(crate) trait Timeline {
    /// A machine.
    fn host(&self, name: &str) -> Result<Option<Host>, StoreError>;

    /// All machines, by name.
    fn hosts(&self) -> Result<Vec<Host>, StoreError>;

    /// The rows of a machine by key and time, or only the newest of each key.
    fn rows(&self, name: &str, newest: bool) -> Result<Vec<Row>, StoreError>;

    /// Writes all of it or nothing; false when the machine is not as it was expected to be.
    fn write(&mut self, changes: &Changes<'_>) -> Result<bool, StoreError>;

    /// A listing.
    fn spans(&self, ask: &Ask<'_>) -> Result<Vec<Span>, StoreError>;

    /// Removes a machine with its rows; false when it is not there.
    fn forget_host(&mut self, name: &str) -> Result<bool, StoreError>;

    /// How long what is over is kept, where that was said.
    fn days(&self) -> Result<Option<u32>, StoreError>;

    /// Says it.
    fn keep_days(&mut self, days: u32) -> Result<(), StoreError>;
}

/// What a database has to do for queries.
pub(crate) trait RowStore {
    /// Numbers of the records whose rows are not written, or are those of before they ended.
    fn without_rows(&self, kind: Kind) -> Result<Vec<i64>, StoreError>;

    /// Writes the rows of a record in place of those that it has; of its parts those that are given.
    fn put_rows(&mut self, kind: Kind, id: i64, rows: &Rows) -> Result<(), StoreError>;

    /// Returns the rows of a table that belong to a record or a machine.
    fn table_rows(&self, table: &Table, of: &str) -> Result<Vec<Vec<Value>>, StoreError>;
}

/// An open database.
pub(crate) trait Database: Timeline + RowStore + std::fmt::Debug + Send {
    /// Where it is, as it may be shown: without a password.
    fn path(&self) -> &Path;

    /// Stores a record with its parts, whole or not at all: its number, and whether it is new. One
    /// that is there already, by its uid, is left as it is.
    fn insert(
        &mut self,
        kind: Kind,
        record: &Record<'_>,
        machine: Option<&Machine>,
        parts: &[Part],
    ) -> Result<(i64, bool), StoreError>;

    /// Replaces what changes of a record while it is measured; false when it is not there.
    fn update(&mut self, kind: Kind, record: &Record<'_>) -> Result<bool, StoreError>;

    /// Stores a part, or another one in its place; false when there is no such record.
    fn put_part(&mut self, kind: Kind, id: i64, part: &Part) -> Result<bool, StoreError>;

    /// Removes a record and its parts; false when it is not there.
    fn delete(&mut self, kind: Kind, id: i64) -> Result<bool, StoreError>;

    /// The body of a record.
    fn body(&self, kind: Kind, id: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// The number of a record.
    fn number(&self, kind: Kind, uid: &str) -> Result<Option<i64>, StoreError>;

    /// Numbers and bodies of all records, newest first.
    fn bodies(&self, kind: Kind) -> Result<Vec<(i64, Vec<u8>)>, StoreError>;

    /// Numbers, uids and names of all records, newest first.
    fn names(&self, kind: Kind) -> Result<Vec<(i64, String, String)>, StoreError>;

    /// Where each part belongs and its body.
    fn parts(&self, kind: Kind, id: i64) -> Result<Vec<(i64, Vec<u8>)>, StoreError>;

    /// All runs, newest first.
    fn runs(&self) -> Result<Vec<Listed>, StoreError>;

    /// The machine of a record, where it is known.
    fn machine(&self, kind: Kind, id: i64) -> Result<Option<Machine>, StoreError>;
}

//! Interface between the store and its database. The rest of the crate works with records, and supports SQLite and
//! PostgreSQL through this interface.

use crate::StoreError;
use crate::rows::{PartRow, Rows};
use crate::spans::{Ask, Changes, Host, Row, Span};
use crate::tables::{Table, Value};
use assay_model::Machine;
use jiff::Timestamp;
use std::path::Path;

/// Kind of a record. The tables of all kinds have the same columns. Each kind has its own sequence of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Run,
    Trial,
    Study,
    Tune,
    Observation,
}

impl Kind {
    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Trial => "trial",
            Self::Study => "study",
            Self::Tune => "tune",
            Self::Observation => "observation",
        }
    }

    /// Returns the table that contains the parts of records of this kind, and the column with the record's number;
    /// `None` if records of this kind have no parts.
    pub(crate) fn parts_table(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Run => Some(("sample", "run")),
            Self::Trial => Some(("trial_slot", "trial")),
            Self::Study | Self::Tune | Self::Observation => None,
        }
    }

    /// Returns SQL that sets the column `tabled` to null if the state is final. This causes the SQL rows of the record
    /// to be written again.
    pub(crate) fn without_rows_when_ended(self, state: &str) -> String {
        match self {
            Self::Study | Self::Tune | Self::Observation => String::new(),
            _ => format!(", tabled = CASE WHEN {state} = 'running' THEN tabled END"),
        }
    }
}

/// A record to store: its body, and the columns that lists need.
pub(crate) struct Record<'a> {
    pub(crate) uid: &'a str,
    pub(crate) started: Timestamp,
    pub(crate) ended: Option<Timestamp>,
    pub(crate) state: String,
    pub(crate) name: &'a str,
    /// Subject of the record: the targets of a run as JSON, the target of a trial, or the subject of an observation as
    /// JSON.
    pub(crate) about: String,
    /// Number of parts of the complete record.
    pub(crate) planned: usize,
    pub(crate) body: Vec<u8>,
}

/// A record as lists contain it, without its body.
pub(crate) struct Listed {
    pub(crate) id: i64,
    pub(crate) uid: String,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) state: String,
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) planned: i64,
    pub(crate) machine: Option<Machine>,
}

/// Selection of the records that a list contains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listing<'a> {
    /// Only records whose number is smaller than this.
    pub(crate) before: i64,
    /// Maximum number of records.
    pub(crate) most: usize,
    pub(crate) name: Option<&'a str>,
    pub(crate) about: Option<&'a str>,
}

impl Listing<'_> {
    /// Selects all records of a kind.
    pub(crate) const ALL: Listing<'static> = Listing {
        before: i64::MAX,
        most: usize::MAX,
        name: None,
        about: None,
    };

    /// Returns the maximum number of records as an SQL integer.
    pub(crate) fn limit(&self) -> i64 {
        i64::try_from(self.most).unwrap_or(i64::MAX)
    }
}

/// Start time of a sample as stored, and its duration in nanoseconds. Rows of an old store have no value.
pub(crate) type PartTime = (Option<String>, Option<i64>);

/// A part of a record: a sample of a run, or one side of a pair of a trial.
pub(crate) struct Part {
    /// Number of the slot of a run, or of the pair of a trial.
    pub(crate) at: u32,
    /// Side of the pair; empty for a sample of a run.
    pub(crate) side: String,
    pub(crate) body: Vec<u8>,
    /// Columns of the part for SQL queries.
    pub(crate) row: PartRow,
}

/// Database operations for the history of machines.
pub(crate) trait Timeline {
    /// Returns the state of a machine; `None` if the machine is unknown.
    fn host(&self, name: &str) -> Result<Option<Host>, StoreError>;

    /// Returns the states of all machines, ordered by name.
    fn hosts(&self) -> Result<Vec<Host>, StoreError>;

    /// Returns the rows of a machine, ordered by key and time, or only the newest row of each key.
    fn rows(&self, name: &str, newest: bool) -> Result<Vec<Row>, StoreError>;

    /// Writes all changes or none. Returns false if the stored machine differs from the expected state.
    fn write(&mut self, changes: &Changes<'_>) -> Result<bool, StoreError>;

    /// Returns the rows of a query.
    fn spans(&self, ask: &Ask<'_>) -> Result<Vec<Span>, StoreError>;

    /// Removes a machine with its rows. Returns false if the machine does not exist.
    fn forget_host(&mut self, name: &str) -> Result<bool, StoreError>;

    /// Returns how many days ended rows are kept; `None` if this is not configured.
    fn days(&self) -> Result<Option<u32>, StoreError>;

    /// Sets how many days ended rows are kept.
    fn keep_days(&mut self, days: u32) -> Result<(), StoreError>;
}

/// Database operations for the tables of SQL queries.
pub(crate) trait RowStore {
    /// Returns the records whose SQL rows are missing, or were written before the record ended.
    fn without_rows(&self, kind: Kind) -> Result<Vec<i64>, StoreError>;

    /// Replaces the rows of a record, and of the given parts.
    fn put_rows(&mut self, kind: Kind, id: i64, rows: &Rows) -> Result<(), StoreError>;

    /// Returns the rows of a table that belong to a record or machine.
    fn table_rows(&self, table: &Table, of: &str) -> Result<Vec<Vec<Value>>, StoreError>;
}

/// Database operations for lists of records, without bodies.
pub(crate) trait RecordLists {
    /// Returns the records that a listing selects, newest first.
    fn list(&self, kind: Kind, listing: &Listing<'_>) -> Result<Vec<Listed>, StoreError>;

    /// Returns the record with this number as lists show it.
    fn head(&self, kind: Kind, id: i64) -> Result<Option<Listed>, StoreError>;

    /// Returns the numbers of at most `most` records, newest first, after skipping the `skipped` newest.
    fn newest(&self, kind: Kind, skipped: usize, most: usize) -> Result<Vec<i64>, StoreError>;

    /// Returns the numbers of at most `most` records whose uid starts with these hexadecimal digits, ascending.
    fn starting_with(&self, kind: Kind, digits: &str, most: usize) -> Result<Vec<i64>, StoreError>;

    /// Returns the number of samples of each of these runs. Runs without samples are omitted.
    fn count_samples(&self, runs: &[i64]) -> Result<Vec<(i64, i64)>, StoreError>;

    /// Returns the times of the first and the last sample of a run, in the order of slots.
    fn sample_times(&self, run: i64) -> Result<Option<[PartTime; 2]>, StoreError>;

    /// Returns a mark of the content. As long as this connection returns the same mark, the store is unchanged.
    fn mark(&self) -> Result<String, StoreError>;
}

/// An open database with all operations that the store needs.
pub(crate) trait Database:
    Timeline + RowStore + RecordLists + std::fmt::Debug + Send
{
    /// Returns the location for display, without a password.
    fn path(&self) -> &Path;

    /// Stores a record with all its parts, or stores nothing. Returns the record's number and whether the record is
    /// new. An existing record with the same uid stays unchanged.
    fn insert(
        &mut self,
        kind: Kind,
        record: &Record<'_>,
        machine: Option<&Machine>,
        parts: &[Part],
    ) -> Result<(i64, bool), StoreError>;

    /// Updates a record during its measurement. Returns false if the record does not exist.
    fn update(&mut self, kind: Kind, record: &Record<'_>) -> Result<bool, StoreError>;

    /// Stores or replaces a part. Returns false if the record does not exist.
    fn put_part(&mut self, kind: Kind, id: i64, part: &Part) -> Result<bool, StoreError>;

    /// Removes a record and its parts. Returns false if the record does not exist.
    fn delete(&mut self, kind: Kind, id: i64) -> Result<bool, StoreError>;

    /// Returns the body of a record.
    fn body(&self, kind: Kind, id: i64) -> Result<Option<Vec<u8>>, StoreError>;

    /// Returns the number of the record with this uid.
    fn number(&self, kind: Kind, uid: &str) -> Result<Option<i64>, StoreError>;

    /// Returns numbers and bodies of all records, newest first.
    fn bodies(&self, kind: Kind) -> Result<Vec<(i64, Vec<u8>)>, StoreError>;

    /// Returns numbers, uids and names of all records, newest first.
    fn names(&self, kind: Kind) -> Result<Vec<(i64, String, String)>, StoreError>;

    /// Returns the position and the body of each part of a record.
    fn parts(&self, kind: Kind, id: i64) -> Result<Vec<(i64, Vec<u8>)>, StoreError>;

    /// Returns the number and the size of every record. The size is the number of bytes of the record's body and its
    /// parts.
    fn sizes(&self, kind: Kind) -> Result<Vec<(i64, u64)>, StoreError>;

    /// Removes records with their parts, all or none. Returns how many of them existed.
    fn delete_many(&mut self, kind: Kind, ids: &[i64]) -> Result<u64, StoreError>;

    /// Returns unused space to the file system if there is much unused space. Returns the number of freed bytes; `None`
    /// if the database frees space automatically, or cannot free space now.
    fn compact(&mut self) -> Result<Option<u64>, StoreError>;

    /// Returns the machine of a record; `None` if unknown.
    fn machine(&self, kind: Kind, id: i64) -> Result<Option<Machine>, StoreError>;
}

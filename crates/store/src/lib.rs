//! Runs, trials, studies and sessions of tuning with all that was measured: raw, durable when a call returns, shared by
//! many processes.
//!
//! A record is one row, each of its parts (sample, slot) is one row; the body of both is the JSON of
//! the model, compressed. Columns and rows beside it hold what lists and SQL need ([`tables`]); they are derived, and
//! nothing is read back from them.
//! Each record belongs to the machine that it was measured on, and has a uid that is the same in
//! every store. Beside them stands what was true of machines over time, in rows of their own ([`Look`],
//! [`Span`]): they are derived, small, and asked by key. Only `sqlite` and `postgres` know which database this is.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate owns its database file"
)]

mod body;
mod database;
mod error;
mod export;
mod merge;
mod postgres;
mod resolve;
mod rows;
mod runs;
mod spans;
mod sqlite;
mod studies;
pub mod tables;
mod trials;
mod tuning;

pub use error::StoreError;
pub use export::{Export, from_json, to_json};
pub use merge::{Merged, merge};
pub use postgres::{is_url, shown};
pub use runs::RunRow;
pub use spans::{About, Ask, DAYS, Key, Span, SpanLook, SpanValue};
pub use studies::StudyId;

use assay_model::Machine;
use database::{Database, Kind, Record};
use postgres::Postgres;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlite::Sqlite;
use std::path::Path;

/// A store of runs, trials and studies.
#[derive(Debug)]
pub struct Store {
    sql: Box<dyn Database>,
    here: Option<Machine>,
}

impl Store {
    /// Opens the store, making it when there is none: a file of SQLite, or PostgreSQL by its URL
    /// (`postgresql://…`).
    ///
    /// # Errors
    /// Another program's file, a newer assay's, or what the database says.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        match is_url(path) {
            true => Self::of(Postgres::open(path)?),
            false => Self::of(Sqlite::open(path)?),
        }
        .fill_rows()
    }

    /// Opens the store and makes nothing: none when there is no such file.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if is_url(path) {
            let store = Postgres::open_existing(path)?.map(Self::of);
            return store.map(Self::fill_rows).transpose();
        }
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Ok(None);
        }
        Self::of(Sqlite::open_existing(path)?).fill_rows().map(Some)
    }

    fn of(sql: impl Database + 'static) -> Self {
        Self {
            sql: Box::new(sql),
            here: None,
        }
    }

    /// Says on which machine is measured what is stored from now on. Without it, that is not known.
    #[must_use]
    pub fn on(mut self, machine: Option<Machine>) -> Self {
        self.here = machine;
        self
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.sql.path()
    }

    fn pack<T: Serialize + DeserializeOwned>(
        &self,
        what: &str,
        value: &T,
    ) -> Result<Vec<u8>, StoreError> {
        body::pack(self.path(), what, value)
    }

    fn unpack<T: DeserializeOwned>(&self, what: &str, body: &[u8]) -> Result<T, StoreError> {
        body::unpack(self.path(), what, body)
    }

    /// Stores a new record that is measured here, and gives it its number.
    fn create(&mut self, kind: Kind, record: &Record<'_>) -> Result<i64, StoreError> {
        match self.sql.insert(kind, record, self.here.as_ref(), &[])? {
            (id, true) => Ok(id),
            (id, false) => {
                let reason = format!("number {id} has the same uid");
                Err(StoreError::row(self.path(), "what is new", reason.into()))
            }
        }
    }

    /// The body of a record, unpacked.
    fn read<T: DeserializeOwned>(&self, kind: Kind, id: i64) -> Result<T, StoreError> {
        let body = self.sql.body(kind, id)?;
        let body = body.ok_or_else(|| self.missing(kind, &id.to_string()))?;
        self.unpack(&format!("{} {id}", kind.noun()), &body)
    }
}

/// The name that the model gives to a state or a side.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

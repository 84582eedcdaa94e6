//! Stores runs, trials, studies, tuning sessions and observations with all raw data. Data is durable when a call
//! returns, and many processes can use a store at the same time.
//!
//! A record is one row, and each of its parts (sample, slot) is one row. Bodies are the model's JSON, compressed.
//! Further columns and rows exist for lists and SQL ([`tables`]). They are derived from the bodies and never read back.
//! A record belongs to the machine on which it was measured, and has a uid that is the same in every store.
//!
//! The history of machines is stored in separate rows ([`SpanSurvey`], [`Span`]), which are derived, small and queried
//! by key. Only the modules `sqlite` and `postgres` depend on the database; `postgres` is a feature.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate owns its database file"
)]

mod body;
mod database;
mod error;
mod export;
mod merge;
mod observations;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(not(feature = "postgres"))]
#[path = "postgres_not_built.rs"]
mod postgres;
mod prune;
mod resolve;
mod rows;
mod run_lists;
mod runs;
mod spans;
mod sqlite;
mod store_url;
mod studies;
pub mod tables;
mod trials;
mod tuning;

pub use error::StoreError;
pub use export::{Export, from_json, to_json};
pub use merge::{Merged, merge};
pub use observations::{Observation, ObservationId, ObservationRow, Observer};
pub use prune::{PrunableKind, PrunableRecord, PruneRule};
pub use run_lists::{RunFilter, RunHead, RunProgress, RunRow};
pub use spans::{About, Ask, DAYS, Key, Span, SpanSurvey, SpanValue};
pub use store_url::{is_url, shown};
pub use studies::StudyId;

use assay_model::Machine;
use database::{Database, Kind, Record};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlite::Sqlite;
use std::path::Path;

/// A store of runs, trials, studies, tuning sessions and observations.
#[derive(Debug)]
pub struct Store {
    sql: Box<dyn Database>,
    here: Option<Machine>,
}

impl Store {
    /// Opens the store and creates it if necessary: an SQLite file, or PostgreSQL by its URL
    /// (`postgresql://…`).
    ///
    /// # Errors
    /// The file belongs to another program or a newer version of assay, or the database reports an error.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        match is_url(path) {
            true => Self::of(postgres::open(path)?),
            false => Self::of(Box::new(Sqlite::open(path)?)),
        }
        .fill_rows()
    }

    /// Opens an existing store; returns `None` if the file does not exist.
    ///
    /// # Errors
    /// See [`Store::open`].
    pub fn open_existing(path: &Path) -> Result<Option<Self>, StoreError> {
        if is_url(path) {
            let store = postgres::open_existing(path)?.map(Self::of);
            return store.map(Self::fill_rows).transpose();
        }
        if let Err(error) = std::fs::metadata(path)
            && error.kind() == std::io::ErrorKind::NotFound
        {
            return Ok(None);
        }
        Self::of(Box::new(Sqlite::open_existing(path)?))
            .fill_rows()
            .map(Some)
    }

    fn of(sql: Box<dyn Database>) -> Self {
        Self { sql, here: None }
    }

    /// Sets the machine to which records belong that are stored from now on. By default, their machine is unknown.
    #[must_use]
    pub fn on(mut self, machine: Option<Machine>) -> Self {
        self.here = machine;
        self
    }

    /// Returns the location of the store: a path, or a URL.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.sql.path()
    }

    /// Returns a mark of the content. As long as this opened store returns the same mark, its content is the same.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn content_mark(&self) -> Result<String, StoreError> {
        self.sql.mark()
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

    /// Stores a new record of this machine and assigns its number.
    fn create(&mut self, kind: Kind, record: &Record<'_>) -> Result<i64, StoreError> {
        match self.sql.insert(kind, record, self.here.as_ref(), &[])? {
            (id, true) => Ok(id),
            (id, false) => {
                let reason = format!("number {id} has the same uid");
                Err(StoreError::row(self.path(), "what is new", reason.into()))
            }
        }
    }

    /// Reads and decodes the body of a record.
    fn read<T: DeserializeOwned>(&self, kind: Kind, id: i64) -> Result<T, StoreError> {
        let body = self.sql.body(kind, id)?;
        let body = body.ok_or_else(|| self.missing(kind, &id.to_string()))?;
        self.unpack(&format!("{} {id}", kind.noun()), &body)
    }
}

/// Returns the serialised name of a state or side, which `assay_model` defines.
fn word(value: impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

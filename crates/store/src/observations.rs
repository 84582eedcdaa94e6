//! Observations, made without an experiment: answers of `assay why`, runs of `assay net` and checks of Wi-Fi. Each is
//! stored as one record.

use crate::database::{Kind, Listing, Record};
use crate::error::Cause;
use crate::{Store, StoreError};
use assay_model::Machine;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Number of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObservationId(pub i64);

impl std::fmt::Display for ObservationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// The verb that made the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Observer {
    /// `assay why`.
    Why,
    /// `assay net run`.
    Net,
    /// `assay check wifi`.
    Wifi,
}

impl Observer {
    /// Returns the name of the verb.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Why => "why",
            Self::Net => "net",
            Self::Wifi => "wifi",
        }
    }
}

/// An observation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Uid, the same in every store.
    pub uid: String,
    /// The verb that made the observation.
    pub by: Observer,
    /// Start time.
    pub started: Timestamp,
    /// End time.
    pub ended: Timestamp,
    /// What was observed: a machine, unit, process, path or plan. Not escaped.
    pub subject: String,
    /// The result in one line. Not escaped.
    pub summary: String,
    /// Result of the verb as JSON; the report is rendered from this document.
    pub document: serde_json::Value,
}

/// An observation in a list.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ObservationRow {
    /// Number in this store.
    #[schemars(with = "i64")]
    pub id: ObservationId,
    /// Uid, the same in every store.
    pub uid: String,
    /// The verb that made the observation.
    pub by: Observer,
    /// Start time.
    pub started: Timestamp,
    /// What was observed. Not escaped.
    pub subject: String,
    /// The result in one line. Not escaped.
    pub summary: String,
    /// The machine; none if unknown.
    pub machine: Option<Machine>,
}

/// Columns of a list, stored as JSON.
#[derive(Serialize, Deserialize)]
struct ListedAbout {
    subject: String,
    summary: String,
}

impl Store {
    /// Stores an observation of this machine.
    ///
    /// # Errors
    /// The database reports an error: full, locked, read-only.
    pub fn add_observation(&mut self, one: &Observation) -> Result<ObservationId, StoreError> {
        let record = self.observation_record(one)?;
        self.create(Kind::Observation, &record).map(ObservationId)
    }

    /// Stores an observation of another machine. Returns whether it is new.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn import_observation(
        &mut self,
        one: &Observation,
        machine: Option<&Machine>,
    ) -> Result<bool, StoreError> {
        let record = self.observation_record(one)?;
        let (_, is_new) = self.sql.insert(Kind::Observation, &record, machine, &[])?;
        Ok(is_new)
    }

    /// Returns the newest observations, newest first.
    ///
    /// # Errors
    /// A row cannot be read back, or the database reports an error.
    pub fn observations(&self, most: usize) -> Result<Vec<ObservationRow>, StoreError> {
        let listing = Listing {
            most,
            ..Listing::ALL
        };
        let rows = self.sql.list(Kind::Observation, &listing)?;
        let read = |row: crate::database::Listed| {
            let what = format!("observation {}", row.id);
            let fail = |reason: Cause| StoreError::row(self.path(), &what, reason);
            let about: ListedAbout =
                serde_json::from_str(&row.about).map_err(|error| fail(error.into()))?;
            let by = serde_json::from_value(serde_json::Value::String(row.name));
            Ok(ObservationRow {
                id: ObservationId(row.id),
                by: by.map_err(|error| fail(error.into()))?,
                started: row
                    .started
                    .parse()
                    .map_err(|error: jiff::Error| fail(error.into()))?,
                uid: row.uid,
                subject: about.subject,
                summary: about.summary,
                machine: row.machine,
            })
        };
        rows.into_iter().map(read).collect()
    }

    /// Returns an observation.
    ///
    /// # Errors
    /// It does not exist or cannot be read back.
    pub fn observation(&self, id: ObservationId) -> Result<Observation, StoreError> {
        self.read(Kind::Observation, id.0)
    }

    /// Returns the machine of an observation; `None` if unknown.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn machine_of_observation(&self, id: ObservationId) -> Result<Option<Machine>, StoreError> {
        self.sql.machine(Kind::Observation, id.0)
    }

    fn observation_record<'a>(&self, one: &'a Observation) -> Result<Record<'a>, StoreError> {
        let about = serde_json::to_string(&ListedAbout {
            subject: one.subject.clone(),
            summary: one.summary.clone(),
        });
        Ok(Record {
            uid: &one.uid,
            started: one.started,
            ended: Some(one.ended),
            state: "complete".to_owned(),
            name: one.by.name(),
            about: about
                .map_err(|error| StoreError::row(self.path(), "the observation", error.into()))?,
            planned: 0,
            body: self.pack("the observation", one)?,
        })
    }
}

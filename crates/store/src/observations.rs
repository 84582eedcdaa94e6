//! Observations, which are made without an experiment: answers of `assay why`, runs of `assay net` and checks of Wi-Fi.
//! Each observation is stored as one record.

use crate::database::{Kind, Listing, Record};
use crate::error::Cause;
use crate::{Store, StoreError};
use assay_model::Machine;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Number of an observation in one store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ObservationId(pub i64);

impl std::fmt::Display for ObservationId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Command that made an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Observer {
    /// `assay why`, which explains what a machine waits for.
    Why,
    /// `assay net run`, which measures a network for several people.
    Net,
    /// `assay check wifi`, which checks files about Wi-Fi networks.
    Wifi,
}

impl Observer {
    /// Returns the name of the command.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Why => "why",
            Self::Net => "net",
            Self::Wifi => "wifi",
        }
    }
}

/// Result of an observation, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// Unique id, which is the same in every store.
    pub uid: String,
    /// Command that made the observation.
    pub by: Observer,
    /// Time at which the observation began.
    pub started: Timestamp,
    /// Time at which the observation ended.
    pub ended: Timestamp,
    /// Observed machine, unit, process, path or plan. Control characters are not escaped.
    pub subject: String,
    /// Result in one line. Control characters are not escaped.
    pub summary: String,
    /// Result of the command as JSON, from which the report is rendered.
    pub document: serde_json::Value,
}

/// An observation in a list, without its document.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ObservationRow {
    /// Number of the observation in this store.
    #[schemars(with = "i64")]
    pub id: ObservationId,
    /// Unique id, which is the same in every store.
    pub uid: String,
    /// Command that made the observation.
    pub by: Observer,
    /// Time at which the observation began.
    pub started: Timestamp,
    /// Observed machine, unit, process, path or plan. Control characters are not escaped.
    pub subject: String,
    /// Result in one line. Control characters are not escaped.
    pub summary: String,
    /// Machine on which the observation was made; `None` if unknown.
    pub machine: Option<Machine>,
}

/// Columns that only lists of observations need, stored as JSON.
#[derive(Serialize, Deserialize)]
struct ListedAbout {
    subject: String,
    summary: String,
}

impl Store {
    /// Stores an observation of this machine.
    ///
    /// # Errors
    /// The database reports an error, for example because it is full, locked or read-only.
    pub fn add_observation(&mut self, one: &Observation) -> Result<ObservationId, StoreError> {
        let record = self.observation_record(one)?;
        self.create(Kind::Observation, &record).map(ObservationId)
    }

    /// Stores an observation of another machine. Returns whether the observation is new.
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

    /// Returns at most `most` observations, newest first.
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

    /// Returns the observation with this number.
    ///
    /// # Errors
    /// The observation does not exist or cannot be read back.
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

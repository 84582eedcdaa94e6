//! Listing runs and finding one by the name a user gave, without reading any record whole.

use crate::{Store, StoreError};
use assay_model::RunId;
use rusqlite::types::Type;
use serde::Serialize;

/// Fewer characters of a uid name nothing.
const UID_CHARS: usize = 4;

/// Which runs to list. The default is all of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Only runs of the plan with this name.
    pub plan: Option<String>,
    /// Only runs on the target with this name.
    pub target: Option<String>,
    /// Only the newest so many.
    pub newest: Option<u32>,
}

/// A run as a line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// Number in the store.
    pub id: RunId,
    /// Its name in every store.
    pub uid: String,
    /// When it began, RFC 3339 in UTC.
    pub started: jiff::Timestamp,
    /// When it ended.
    pub ended: Option<jiff::Timestamp>,
    /// `running`, `complete`, `interrupted` or `failed`.
    pub state: String,
    /// `measured` or `imported`.
    pub origin: String,
    /// Name of the plan.
    pub plan: String,
    /// Names of the targets.
    pub targets: Vec<String>,
    /// Samples stored.
    pub samples: u64,
    /// Samples the plan asks for; 0 for an imported run.
    pub slots: u64,
    /// Things said about the run as a whole.
    pub remarks: Vec<String>,
}

impl Store {
    /// The runs that pass the filter, oldest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let fail = |source| self.fail("list the runs", source);
        let mut statement = self
            .connection
            .prepare_cached(
                "SELECT id, uid, started, ended, state, origin, plan, targets,
                        (SELECT count(*) FROM samples WHERE samples.run = runs.id), slots, remarks
                 FROM runs
                 WHERE (?1 IS NULL OR plan = ?1)
                   AND (?2 IS NULL OR EXISTS (SELECT 1 FROM json_each(targets) WHERE value = ?2))
                 ORDER BY id DESC LIMIT ?3",
            )
            .map_err(fail)?;
        let newest = filter.newest.map_or(-1, i64::from);
        let rows = statement
            .query_map((&filter.plan, &filter.target, newest), |row| {
                Ok(RunRow {
                    id: RunId(row.get(0)?),
                    uid: row.get(1)?,
                    started: parse(2, &row.get::<_, String>(2)?)?,
                    ended: match row.get::<_, Option<String>>(3)? {
                        Some(text) => Some(parse(3, &text)?),
                        None => None,
                    },
                    state: row.get(4)?,
                    origin: row.get(5)?,
                    plan: row.get(6)?,
                    targets: list(7, &row.get::<_, String>(7)?)?,
                    samples: row.get::<_, i64>(8)? as u64,
                    slots: row.get::<_, i64>(9)? as u64,
                    remarks: list(10, &row.get::<_, String>(10)?)?,
                })
            })
            .map_err(fail)?;
        let mut runs: Vec<RunRow> = rows.collect::<Result<_, _>>().map_err(fail)?;
        runs.reverse();
        Ok(runs)
    }

    /// The run that the user means: its number, `last`, `last~N` (N before the last), or the first
    /// characters of its uid.
    ///
    /// # Errors
    /// Nothing or more than one run goes by this name; the error says what there is.
    pub fn resolve(&self, name: &str) -> Result<RunId, StoreError> {
        let before = match name.strip_prefix("last") {
            Some("") => Some(0),
            Some(rest) => rest.strip_prefix('~').and_then(|n| n.parse::<u32>().ok()),
            None => None,
        };
        if let Some(before) = before {
            let ids = self.ids()?;
            let at = ids.len().checked_sub(before as usize + 1);
            return match at {
                Some(at) => Ok(RunId(ids[at])),
                None => Err(self.no_such_run(name)?),
            };
        }
        if let Ok(id) = name.parse::<i64>()
            && self.ids()?.binary_search(&id).is_ok()
        {
            return Ok(RunId(id));
        }
        let hex = name.bytes().all(|c| c.is_ascii_hexdigit());
        let number = name.bytes().all(|c| c.is_ascii_digit()) && !name.is_empty();
        if !hex || (name.len() < UID_CHARS && !number) {
            return Err(StoreError::BadName {
                wanted: name.to_owned(),
                min: UID_CHARS,
            });
        }
        let fits = match name.len() {
            UID_CHARS.. => self.ids_where(
                "SELECT id FROM runs WHERE substr(uid, 1, length(?1)) = lower(?1) ORDER BY id",
                [name],
            )?,
            _ => Vec::new(),
        };
        match fits[..] {
            [id] => Ok(RunId(id)),
            [] => Err(self.no_such_run(name)?),
            _ => Err(StoreError::Ambiguous {
                wanted: name.to_owned(),
                ids: fits,
            }),
        }
    }

    fn ids(&self) -> Result<Vec<i64>, StoreError> {
        self.ids_where("SELECT id FROM runs ORDER BY id", [])
    }

    fn ids_where(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Vec<i64>, StoreError> {
        let fail = |source| self.fail("look a run up", source);
        let mut statement = self.connection.prepare_cached(sql).map_err(fail)?;
        let rows = statement.query_map(params, |row| row.get(0)).map_err(fail)?;
        rows.collect::<Result<_, _>>().map_err(fail)
    }

    /// The error for a run that is not there; itself an error when the store cannot be read.
    pub(crate) fn no_such_run(&self, wanted: &str) -> Result<StoreError, StoreError> {
        Ok(StoreError::NoSuchRun {
            wanted: wanted.to_owned(),
            path: self.path.clone(),
            have: self.ids()?,
        })
    }
}

fn misread(
    column: usize,
    error: impl std::error::Error + Send + Sync + 'static,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}

fn parse(column: usize, text: &str) -> rusqlite::Result<jiff::Timestamp> {
    text.parse().map_err(|error| misread(column, error))
}

fn list(column: usize, text: &str) -> rusqlite::Result<Vec<String>> {
    serde_json::from_str(text).map_err(|error| misread(column, error))
}

//! Lists of runs, and the progress of a run. Bodies are not read for these.

use crate::database::{Kind, Listed, Listing, PartTime};
use crate::error::Cause;
use crate::{Store, StoreError};
use assay_model::run::{RunId, RunState};
use assay_model::{Machine, Nanos};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// A run in a list, without its body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RunRow {
    /// Number of the run in this store.
    pub id: RunId,
    /// Unique id, which is the same in every store.
    pub uid: String,
    /// Time at which the run began.
    pub started: Timestamp,
    /// Time at which the run ended; `None` while it is running.
    pub ended: Option<Timestamp>,
    /// Whether the run is running, complete or interrupted.
    pub state: RunState,
    /// Name of the plan.
    pub plan: String,
    /// Targets of the run, as the user named them.
    pub targets: Vec<String>,
    /// Number of stored samples.
    pub samples: u64,
    /// Number of planned samples.
    pub planned: u64,
    /// Machine of the run; `None` if unknown.
    pub machine: Option<Machine>,
}

/// A run without the number of its samples, because counting samples takes time.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// Number of the run in this store.
    pub id: RunId,
    /// Unique id, which is the same in every store.
    pub uid: String,
    /// Time at which the run began.
    pub started: Timestamp,
    /// Time at which the run ended; `None` while it is running.
    pub ended: Option<Timestamp>,
    /// Whether the run is running, complete or interrupted.
    pub state: RunState,
    /// Name of the plan.
    pub plan: String,
    /// Targets of the run, as the user named them.
    pub targets: Vec<String>,
    /// Number of planned samples.
    pub planned: u64,
    /// Machine of the run; `None` if unknown.
    pub machine: Option<Machine>,
}

impl RunHead {
    fn into_row(self, samples: u64) -> RunRow {
        RunRow {
            id: self.id,
            uid: self.uid,
            started: self.started,
            ended: self.ended,
            state: self.state,
            plan: self.plan,
            targets: self.targets,
            samples,
            planned: self.planned,
            machine: self.machine,
        }
    }
}

/// Conditions that a run in a list must meet. `None` means any value.
#[derive(Clone, Copy, Debug)]
pub struct RunFilter<'a> {
    /// Name of the plan of the run.
    pub plan: Option<&'a str>,
    /// A target that the run must have.
    pub target: Option<&'a str>,
    /// All targets that the run must have, in this order.
    pub targets: Option<&'a [String]>,
    /// Maximum number of runs.
    pub most: usize,
}

impl Default for RunFilter<'_> {
    fn default() -> Self {
        Self {
            plan: None,
            target: None,
            targets: None,
            most: usize::MAX,
        }
    }
}

/// Progress of a run, for displays of a running measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunProgress {
    /// Whether the run is running, complete or interrupted.
    pub state: RunState,
    /// Number of planned samples.
    pub planned: u64,
    /// Number of stored samples.
    pub samples: u64,
    /// Time at which the first sample began; `None` without samples.
    pub first: Option<Timestamp>,
    /// Start time and duration of the last sample; `None` without samples.
    pub last: Option<(Timestamp, Nanos)>,
}

/// Maximum number of runs that one query reads.
const MOST_AT_ONCE: usize = 1_000;

impl Store {
    /// Returns all runs, newest first.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        self.find_runs(&RunFilter::default())
    }

    /// Returns the newest runs that a filter accepts, newest first. Counts the samples of these runs only.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn find_runs(&self, filter: &RunFilter<'_>) -> Result<Vec<RunRow>, StoreError> {
        if filter.most == 0 {
            return Ok(Vec::new());
        }
        let mut heads = Vec::new();
        let targets = filter.targets.map(|all| serde_json::json!(all).to_string());
        let listing = Listing {
            name: filter.plan,
            about: targets.as_deref(),
            ..Listing::ALL
        };
        self.visit(&listing, filter.most, |head| {
            if filter
                .target
                .is_none_or(|target| head.targets.iter().any(|one| one == target))
            {
                heads.push(head);
            }
            heads.len() < filter.most
        })?;
        let ids: Vec<RunId> = heads.iter().map(|head| head.id).collect();
        let counts = self.count_samples(&ids)?;
        let row = |head: RunHead| {
            let samples = counts.get(&head.id).copied().unwrap_or(0);
            head.into_row(samples)
        };
        Ok(heads.into_iter().map(row).collect())
    }

    /// Passes all runs to `visit`, newest first. Only a part of the runs is in memory at a time.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn visit_runs(&self, mut visit: impl FnMut(RunHead)) -> Result<(), StoreError> {
        self.visit(&Listing::ALL, usize::MAX, |head| {
            visit(head);
            true
        })
    }

    /// Passes runs to `visit` until `visit` returns false. `wanted` limits the first query.
    fn visit(
        &self,
        listing: &Listing<'_>,
        wanted: usize,
        mut visit: impl FnMut(RunHead) -> bool,
    ) -> Result<(), StoreError> {
        let mut listing = Listing {
            most: wanted.clamp(1, MOST_AT_ONCE),
            ..*listing
        };
        loop {
            let rows = self.sql.list(Kind::Run, &listing)?;
            let is_last = rows.len() < listing.most;
            for row in rows {
                listing.before = row.id;
                if !visit(self.run_head(row)?) {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            listing.most = MOST_AT_ONCE;
        }
    }

    /// Returns the number of stored samples of each run. Runs without samples are omitted.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn count_samples(&self, runs: &[RunId]) -> Result<BTreeMap<RunId, u64>, StoreError> {
        let mut counts = BTreeMap::new();
        for some in runs.chunks(MOST_AT_ONCE) {
            let ids: Vec<i64> = some.iter().map(|run| run.0).collect();
            for (run, count) in self.sql.count_samples(&ids)? {
                counts.insert(RunId(run), u64::try_from(count).unwrap_or(0));
            }
        }
        Ok(counts)
    }

    /// Returns the progress of a run without reading its samples.
    ///
    /// # Errors
    /// The run does not exist, or the database reports an error.
    pub fn run_progress(&self, id: RunId) -> Result<RunProgress, StoreError> {
        let head = self.sql.head(Kind::Run, id.0)?;
        let head = head.ok_or_else(|| self.missing(Kind::Run, &id.to_string()))?;
        let head = self.run_head(head)?;
        let samples = self.count_samples(&[id])?.remove(&id).unwrap_or(0);
        let times = self.sql.sample_times(id.0)?;
        let read = |(started, wall): PartTime| {
            let started = started?.parse().ok()?;
            Some((started, Nanos(u64::try_from(wall?).unwrap_or(0))))
        };
        let [first, last] = times.map_or([None, None], |times| times.map(read));
        Ok(RunProgress {
            state: head.state,
            planned: head.planned,
            samples,
            first: first.map(|(started, _)| started),
            last,
        })
    }

    fn run_head(&self, row: Listed) -> Result<RunHead, StoreError> {
        let fail = |reason: Cause| StoreError::row(self.path(), &format!("run {}", row.id), reason);
        let time = |text: &str| {
            text.parse::<Timestamp>()
                .map_err(|error| fail(error.into()))
        };
        let state = serde_json::Value::String(row.state);
        Ok(RunHead {
            id: RunId(row.id),
            started: time(&row.started)?,
            ended: row.ended.as_deref().map(time).transpose()?,
            state: serde_json::from_value(state).map_err(|error| fail(error.into()))?,
            targets: serde_json::from_str(&row.about).map_err(|error| fail(error.into()))?,
            planned: u64::try_from(row.planned).unwrap_or(0),
            uid: row.uid,
            plan: row.name,
            machine: row.machine,
        })
    }
}

//! Removes old runs and observations. Trials, studies and tuning sessions are never removed, because kept changes and
//! notebooks refer to them.

use crate::database::{Kind, Listed, Listing};
use crate::error::Cause;
use crate::{Store, StoreError};
use assay_model::Machine;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::HashMap;

/// Kind of records that can be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PrunableKind {
    /// Answers of `assay why`, runs of `assay net` and checks of Wi-Fi.
    Observations,
    /// Runs with their samples.
    Runs,
}

impl PrunableKind {
    fn kind(self) -> Kind {
        match self {
            Self::Observations => Kind::Observation,
            Self::Runs => Kind::Run,
        }
    }
}

/// Rule that selects the records to remove. A record is removed only if it began before `before` and is not among the
/// newest `keep` records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PruneRule {
    /// Records that began before this time.
    pub before: Timestamp,
    /// Number of newest records to keep. For observations, this is the number per command and machine; for runs, per
    /// plan, targets and machine.
    pub keep: usize,
}

/// A record that a rule removes.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct PrunableRecord {
    /// Number of the record in this store.
    pub id: i64,
    /// Unique id, which is the same in every store.
    pub uid: String,
    /// Command of the observation, or plan of the run. Control characters are not escaped.
    pub name: String,
    /// Machine of the record; `None` if unknown.
    pub machine: Option<Machine>,
    /// Time at which the record began.
    pub started: Timestamp,
    /// Compressed size in bytes, without the derived SQL rows.
    pub bytes: u64,
}

impl Store {
    /// Returns the records that a rule removes, oldest first. Runs that are running or were interrupted are not
    /// included.
    ///
    /// # Errors
    /// A row cannot be decoded, or the database reports an error.
    pub fn list_prunable(
        &self,
        kind: PrunableKind,
        rule: PruneRule,
    ) -> Result<Vec<PrunableRecord>, StoreError> {
        let kind = kind.kind();
        let sizes: HashMap<i64, u64> = self.sql.sizes(kind)?.into_iter().collect();
        let mut rows = Vec::new();
        for row in self.sql.list(kind, &Listing::ALL)? {
            let started: Timestamp = row.started.parse().map_err(|error: jiff::Error| {
                let cause: Cause = error.into();
                StoreError::row(self.path(), &format!("{} {}", kind.noun(), row.id), cause)
            })?;
            rows.push((started, row));
        }
        // By time, because numbers count the imports of a copied store.
        rows.sort_by_key(|(started, row)| std::cmp::Reverse((*started, row.id)));
        let mut newer: HashMap<_, usize> = HashMap::new();
        let mut pruned = Vec::new();
        for (started, row) in rows {
            if row.state == "running" {
                continue;
            }
            let newer = newer.entry(group_key(kind, &row)).or_default();
            *newer += 1;
            if *newer > rule.keep && started < rule.before {
                pruned.push(PrunableRecord {
                    bytes: sizes.get(&row.id).copied().unwrap_or(0),
                    id: row.id,
                    uid: row.uid,
                    name: row.name,
                    machine: row.machine,
                    started,
                });
            }
        }
        pruned.reverse();
        Ok(pruned)
    }

    /// Removes records by their numbers, all or none. Returns how many of them existed.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn prune(
        &mut self,
        kind: PrunableKind,
        records: &[PrunableRecord],
    ) -> Result<u64, StoreError> {
        let ids: Vec<i64> = records.iter().map(|record| record.id).collect();
        self.sql.delete_many(kind.kind(), &ids)
    }

    /// Rewrites the file if much of it is unused, and returns by how many bytes the file shrank. Returns `None` if the
    /// space stays available for later records: in PostgreSQL, or while other processes use the file.
    ///
    /// # Errors
    /// The database reports an error.
    pub fn compact(&mut self) -> Result<Option<u64>, StoreError> {
        self.sql.compact()
    }
}

/// Returns the key of a record's group. The newest records of each group are kept.
fn group_key(kind: Kind, row: &Listed) -> (Option<String>, String, String) {
    let machine = row.machine.as_ref().map(|machine| machine.id.clone());
    let targets = match kind {
        Kind::Run => row.about.clone(),
        _ => String::new(),
    };
    (machine, row.name.clone(), targets)
}

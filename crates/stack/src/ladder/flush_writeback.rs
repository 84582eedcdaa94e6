//! Flushes dirty pages between samples, so that their writeback does not slow down the next sample.

use super::PreparedLadder;
use super::rungs::Recipe;
use assay_host::{Host, Limits};
use assay_model::Workload;
use assay_model::workload::Durability;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Limits of `sync`. The time limit is long because a slow machine may have many dirty pages.
const SYNC_LIMITS: Limits = Limits {
    timeout: Duration::from_secs(120),
};

/// File systems and pools that are flushed between two samples.
pub(super) struct WritebackFlusher {
    /// Pools to flush. ZFS writes even data that is already durable in the intent log again, in a transaction group
    /// some seconds later.
    pools: BTreeSet<String>,
}

impl WritebackFlusher {
    pub(super) fn new(prepared: &PreparedLadder<'_>) -> Self {
        use super::sibling_layers::Volume::{Dataset, Zvol};
        let pool = |recipe: &Recipe| match recipe {
            Recipe::Home(Dataset { parent, .. } | Zvol { parent, .. })
            | Recipe::Volume(Dataset { parent, .. } | Zvol { parent, .. }) => {
                parent.split('/').next().map(str::to_owned)
            }
            _ => None,
        };
        Self {
            pools: prepared.recipes.iter().filter_map(pool).collect(),
        }
    }

    /// Returns whether a workload leaves dirty pages behind.
    pub(super) fn leaves_dirty(workload: &Workload) -> bool {
        workload.pattern.writes() && workload.durability == Durability::None
    }

    /// Flushes the file system of a directory and the pools. If the flush fails, the sample is taken anyway, because
    /// its doubts (reasons to distrust a figure) detect other load on the devices.
    pub(super) fn host(&self, host: &dyn Host, dir: &Path) {
        let sync = ["sync", "--file-system", "--"].map(OsStr::new);
        let sync: Vec<&OsStr> = sync.into_iter().chain([dir.as_os_str()]).collect();
        let _ = host.run(&sync, SYNC_LIMITS);
        for pool in &self.pools {
            let _ = host.run(&["zpool", "sync", pool].map(OsStr::new), SYNC_LIMITS);
        }
    }
}

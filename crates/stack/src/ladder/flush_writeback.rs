//! What one sample leaves in memory is on the disks before the next one begins, or it would be
//! written out during that one and be counted as its.

use super::PreparedLadder;
use super::rungs::Recipe;
use assay_host::{Host, Limits};
use assay_model::Workload;
use assay_model::workload::Durability;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

/// Much may have been written through the page cache of a slow machine.
const SYNC_LIMITS: Limits = Limits {
    timeout: Duration::from_secs(120),
};

/// What is written out between samples.
pub(super) struct Settle {
    /// ZFS keeps writes until their transaction group, seconds later, also those that are durable.
    pools: BTreeSet<String>,
}

impl Settle {
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

    /// Whether a workload leaves writes that nobody has waited for.
    pub(super) fn leaves_dirty(workload: &Workload) -> bool {
        workload.pattern.writes() && workload.durability == Durability::None
    }

    /// Writes out what lies in memory for a directory's file system and for the pools. Where that
    /// fails the sample is taken all the same: its doubts see other load on the devices.
    pub(super) fn host(&self, host: &dyn Host, dir: &Path) {
        let sync = ["sync", "--file-system", "--"].map(OsStr::new);
        let sync: Vec<&OsStr> = sync.into_iter().chain([dir.as_os_str()]).collect();
        let _ = host.run(&sync, SYNC_LIMITS);
        for pool in &self.pools {
            let _ = host.run(&["zpool", "sync", pool].map(OsStr::new), SYNC_LIMITS);
        }
    }
}

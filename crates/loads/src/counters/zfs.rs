//! Reads ZFS counters from /proc/spl/kstat/zfs, summed over all pools.

use assay_host::kstat;
use assay_model::Bytes;
use assay_model::sample::{ArcDelta, ZilDelta};

/// Counters of the ZFS read cache (ARC) at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arc {
    demand_data_hits: u64,
    demand_data_misses: u64,
    prefetch_data_misses: u64,
    l2_hits: u64,
    size: u64,
    c_max: u64,
}

/// Counters of the ZFS intent log (ZIL) at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zil {
    /// Number of calls that waited until logged data was durable.
    pub commits: u64,
    itxs: u64,
    normal: u64,
    slog: u64,
    indirect: u64,
}

impl Arc {
    /// Parses `arcstats`. Counters that are missing in this version of ZFS are 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let count = |name| kstat::find_counter(text, name).unwrap_or(0);
        Self {
            // Reads that waited for data that was already being fetched: counted separately since OpenZFS 2.2,
            // and as hits before (module/zfs/arc.c, arc_read).
            demand_data_hits: count("demand_data_hits") + count("demand_data_iohits"),
            demand_data_misses: count("demand_data_misses"),
            prefetch_data_misses: count("prefetch_data_misses"),
            l2_hits: count("l2_hits"),
            size: count("size"),
            c_max: count("c_max"),
        }
    }

    /// Returns by how much the counters grew from `self` to the later `end`. `size` and `c_max` are the values at
    /// `end`.
    #[must_use]
    pub fn until(self, end: Self) -> ArcDelta {
        ArcDelta {
            demand_data_hits: end.demand_data_hits.saturating_sub(self.demand_data_hits),
            demand_data_misses: end
                .demand_data_misses
                .saturating_sub(self.demand_data_misses),
            prefetch_data_misses: end
                .prefetch_data_misses
                .saturating_sub(self.prefetch_data_misses),
            l2_hits: end.l2_hits.saturating_sub(self.l2_hits),
            size: Bytes(end.size),
            c_max: Bytes(end.c_max),
        }
    }
}

impl Zil {
    /// Parses `zil`. Since OpenZFS 2.2, also parses the statistics of one dataset
    /// (`/proc/spl/kstat/zfs/POOL/objset-0x…`). Returns `None` if the text contains no log counters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let count = |name| kstat::find_counter(text, name).unwrap_or(0);
        Some(Self {
            commits: kstat::find_counter(text, "zil_commit_count")?,
            itxs: count("zil_itx_count"),
            normal: count("zil_itx_metaslab_normal_bytes"),
            slog: count("zil_itx_metaslab_slog_bytes"),
            indirect: count("zil_itx_indirect_bytes"),
        })
    }

    /// Returns by how much the counters grew from `self` to the later `end`.
    #[must_use]
    pub fn until(self, end: Self) -> ZilDelta {
        ZilDelta {
            commits: end.commits.saturating_sub(self.commits),
            itxs: end.itxs.saturating_sub(self.itxs),
            normal_bytes: Bytes(end.normal.saturating_sub(self.normal)),
            slog_bytes: Bytes(end.slog.saturating_sub(self.slog)),
            indirect_bytes: Bytes(end.indirect.saturating_sub(self.indirect)),
        }
    }
}

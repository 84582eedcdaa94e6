//! Reads that asked for `direct=1` but did not come from the device: the ARC of ZFS, a host's cache, a
//! caching layer, or a file without data.

use crate::doubts::{ENOUGH, Evidence, HALF, suspect, void};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "cache-hit-read";
const REMEDY: &str = "Use a file several times as large as the cache, or set primarycache=metadata on a dataset made for the test.";
/// Fewer reads than this say nothing about a hit rate.
const ARC_READS: u64 = 100;

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let direct = evidence.options.is_some_and(|options| options.direct);
    if direct
        && let Some(share) = evidence.device_read_share()
        && share.value < ENOUGH
    {
        let seen = format!("direct=1, but {}", share.seen);
        return Some(if share.value < HALF {
            void(CODE, seen, REMEDY)
        } else {
            suspect(CODE, seen, REMEDY)
        });
    }
    let arc = evidence.counters?.arc.as_ref()?;
    let on_zfs = evidence
        .target
        .is_some_and(|target| target.fs_type.as_deref() == Some("zfs"));
    let all = arc.demand_data_hits.saturating_add(arc.demand_data_misses);
    if !on_zfs || all < ARC_READS || evidence.bytes_read() == 0 {
        return None;
    }
    let hits = arc.demand_data_hits as f64 / all as f64;
    let seen = format!(
        "{:.1} % of {all} reads were answered by the ARC ({} of at most {})",
        hits * 100.0,
        arc.size,
        arc.c_max
    );
    if hits > HALF {
        Some(void(CODE, seen, REMEDY))
    } else if hits > 1.0 - ENOUGH {
        Some(suspect(CODE, seen, REMEDY))
    } else {
        None
    }
}

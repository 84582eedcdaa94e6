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
    let all = arc.demand_data_hits.saturating_add(arc.demand_data_misses);
    if !evidence.on_zfs() || all < ARC_READS || evidence.bytes_read() == 0 {
        return None;
    }
    // Records that were read, and those of them that came from a disk. What was read ahead counts
    // as a hit when it is asked for, and so does a record's second part.
    let records = all as f64 * share_of_record(evidence)?;
    let fetched = arc
        .demand_data_misses
        .saturating_add(arc.prefetch_data_misses);
    let hits = (1.0 - fetched as f64 / records).max(0.0);
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

/// How much of a record one read takes: all of another one each time when reads are random; none
/// when that is not known.
fn share_of_record(evidence: &Evidence) -> Option<f64> {
    let Some(options) = evidence.options else {
        return Some(1.0);
    };
    if options.access.random {
        return Some(1.0);
    }
    let record: f64 = evidence.dataset_property("recordsize")?.parse().ok()?;
    Some((options.block_size.0.0 as f64 / record).min(1.0))
}

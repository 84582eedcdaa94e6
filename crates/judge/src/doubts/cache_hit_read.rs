//! Rule `cache-hit-read`: the job reads with `direct=1`, but its data did not come from the device. The data came from
//! the ARC of ZFS, the cache of a host or a caching layer, or the file contained no data.

use crate::doubts::{DoubtEvidence, ENOUGH, HALF, suspect_doubt, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "cache-hit-read";
const REMEDY: &str = "Use a file several times as large as the cache, or set primarycache=metadata \
    on a dataset made for the test.";
/// Minimum number of ARC reads from which a hit rate is computed.
const ARC_READS: u64 = 100;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let direct = evidence.options.is_some_and(|options| options.direct);
    if direct
        && let Some(share) = evidence.device_read_share()
        && share.value < ENOUGH
    {
        let seen = format!("direct=1, but {}", share.seen);
        return Some(if share.value < HALF {
            void_doubt(CODE, seen, REMEDY)
        } else {
            suspect_doubt(CODE, seen, REMEDY)
        });
    }
    let arc = evidence.counters?.arc.as_ref()?;
    let all = arc.demand_data_hits.saturating_add(arc.demand_data_misses);
    if !evidence.is_on_zfs() || all < ARC_READS || evidence.bytes_read() == 0 {
        return None;
    }
    // Records read, and records that came from a disk. A record that was read ahead counts as a hit
    // when it is requested, and so does the second part of a record.
    let records = all as f64 * share_of_record_read(evidence)?;
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
        Some(void_doubt(CODE, seen, REMEDY))
    } else if hits > 1.0 - ENOUGH {
        Some(suspect_doubt(CODE, seen, REMEDY))
    } else {
        None
    }
}

/// Returns the fraction (0 to 1) of a ZFS record that one read uses. A random read needs another record each time, so
/// the fraction is 1. `None` if the record size is unknown.
fn share_of_record_read(evidence: &DoubtEvidence) -> Option<f64> {
    let Some(options) = evidence.options else {
        return Some(1.0);
    };
    if options.access.random {
        return Some(1.0);
    }
    let record: f64 = evidence.dataset_property("recordsize")?.parse().ok()?;
    Some((options.block_size.0.0 as f64 / record).min(1.0))
}

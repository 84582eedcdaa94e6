//! Rule `prefetched-read`: ZFS prefetches data for sequential reads, also with `direct=1` if ZFS ignores this option.
//! The latency then describes RAM, and the disks have a deeper queue than requested. Observed with OpenZFS 2.1.11: of
//! 384 records of a file read from end to end, 382 were prefetched.

use crate::doubts::{DoubtEvidence, HALF, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "prefetched-read";
/// Minimum number of reads from which the rule draws a conclusion.
const LEAST: u64 = 20;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let arc = evidence.counters?.arc.as_ref()?;
    let fetched = arc
        .demand_data_misses
        .saturating_add(arc.prefetch_data_misses);
    let share = arc.prefetch_data_misses as f64 / fetched.max(1) as f64;
    if !evidence.is_on_zfs()
        || !options.direct
        || options.access.random
        || evidence.bytes_read() == 0
        || fetched < LEAST
        || share <= HALF
    {
        return None;
    }
    Some(suspect_doubt(
        CODE,
        format!(
            "ZFS fetched {} of {fetched} records before they were asked for",
            arc.prefetch_data_misses
        ),
        "Read the bandwidth, not the latency or the queue depth; the module parameter \
         zfs_prefetch_disable=1 switches it off for all pools.",
    ))
}

//! Rule `l2arc-read`: reads that missed the ARC were served by a cache device (L2ARC). The figure therefore describes
//! this device, as long as the data fits into it.

use crate::doubts::{DoubtEvidence, ENOUGH, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "l2arc-read";
/// Minimum number of reads from which the rule draws a conclusion.
const LEAST: u64 = 20;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let arc = evidence.counters?.arc.as_ref()?;
    let fetched = arc
        .demand_data_misses
        .saturating_add(arc.prefetch_data_misses);
    // Metadata may hit as well.
    let hits = arc.l2_hits.min(fetched);
    let share = hits as f64 / fetched.max(1) as f64;
    if !evidence.is_on_zfs()
        || evidence.bytes_read() == 0
        || fetched < LEAST
        || share <= 1.0 - ENOUGH
    {
        return None;
    }
    Some(suspect_doubt(
        CODE,
        format!("{hits} of {fetched} reads that missed the ARC were answered by a cache device"),
        "To measure the pool's own disks, set secondarycache=none on a dataset made for the test; \
         to measure the cache, say how full it was.",
    ))
}

//! Reads that the ARC missed and a cache device (L2ARC) answered: a figure of that device, as long as
//! it holds what is read.

use crate::doubts::{ENOUGH, Evidence, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "l2arc-read";
/// Fewer reads than this say nothing about a share.
const LEAST: u64 = 20;

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let arc = evidence.counters?.arc.as_ref()?;
    let fetched = arc
        .demand_data_misses
        .saturating_add(arc.prefetch_data_misses);
    // Metadata may hit as well.
    let hits = arc.l2_hits.min(fetched);
    let share = hits as f64 / fetched.max(1) as f64;
    if !evidence.on_zfs() || evidence.bytes_read() == 0 || fetched < LEAST || share <= 1.0 - ENOUGH
    {
        return None;
    }
    Some(suspect(
        CODE,
        format!("{hits} of {fetched} reads that missed the ARC were answered by a cache device"),
        "To measure the pool's own disks, set secondarycache=none on a dataset made for the test; to measure the cache, say how full it was.",
    ))
}

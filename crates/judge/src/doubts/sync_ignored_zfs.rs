//! A write that waits for durability on ZFS commits the intent log (ZIL). Observed with OpenZFS 2.1.11
//! and `fsync=1`: 255 commits for 256 writes; with sync=disabled none, and the flushes are answered
//! from memory.

use crate::doubts::{Evidence, HALF, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "sync-ignored-zfs";
/// Fewer flushes than this say nothing.
const LEAST: u64 = 20;

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let zil = evidence.counters?.zil.as_ref()?;
    let waited = evidence.flushes_waited();
    if !evidence.on_zfs() || waited < LEAST || zil.commits as f64 >= waited as f64 * HALF {
        return None;
    }
    // A trial's own dataset below it may have another value than the one that is known.
    let why = match evidence.dataset_property("sync").as_deref() {
        Some("disabled") => ": the dataset has sync=disabled",
        _ => "",
    };
    Some(suspect(
        CODE,
        format!(
            "fio waited for {waited} flushes, and ZFS committed its intent log {} times{why}",
            zil.commits
        ),
        "What was acknowledged is not durable: set sync=standard (`zfs inherit sync DATASET`) and measure again.",
    ))
}

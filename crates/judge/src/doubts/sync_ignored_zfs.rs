//! Rule `sync-ignored-zfs`: a write that waits for durability on ZFS commits the intent log (ZIL).
//! Observed with OpenZFS 2.1.11 and `fsync=1`: 255 commits for 256 writes; with sync=disabled no
//! commit, and flushes are answered from memory.

use crate::doubts::{DoubtEvidence, HALF, suspect_doubt};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "sync-ignored-zfs";
/// Fewest flushes for a conclusion.
const LEAST: u64 = 20;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let zil = evidence.counters?.zil.as_ref()?;
    let waited = evidence.count_flushes();
    if !evidence.is_on_zfs() || waited < LEAST || zil.commits as f64 >= waited as f64 * HALF {
        return None;
    }
    // A trial's own child dataset may have another value than the known one.
    let why = match evidence.dataset_property("sync").as_deref() {
        Some("disabled") => ": the dataset has sync=disabled",
        _ => "",
    };
    Some(suspect_doubt(
        CODE,
        format!(
            "fio waited for {waited} flushes, and ZFS committed its intent log {} times{why}",
            zil.commits
        ),
        "What was acknowledged is not durable: set sync=standard (`zfs inherit sync DATASET`) and measure again.",
    ))
}

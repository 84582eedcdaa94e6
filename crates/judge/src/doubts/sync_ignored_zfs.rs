//! Rule `sync-ignored-zfs`: writes waited for durability, but ZFS did not commit its intent log (ZIL). A durable write
//! needs one commit. Observed with OpenZFS 2.1.11 and `fsync=1`: 255 commits for 256 writes; with sync=disabled no
//! commit, and flushes returned at once.

use crate::doubts::{DoubtEvidence, HALF, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "sync-ignored-zfs";
/// Minimum number of flushes from which the rule draws a conclusion.
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
        "What was acknowledged is not durable: run `zfs set sync=standard DATASET` and measure again.",
    ))
}

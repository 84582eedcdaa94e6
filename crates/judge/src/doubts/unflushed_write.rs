//! Rule `unflushed-write`: buffered writes without any flush. The job ends while the data is still in RAM, so even its
//! total time does not include the time of the device.

use crate::doubts::{DoubtEvidence, ENOUGH, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "unflushed-write";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if !options.access.writes
        || options.direct
        || options.flushes()
        || options.end_fsync
        || evidence.bypasses_kernel()
    {
        return None;
    }
    let reached = evidence.device_write_share();
    if reached.is_some_and(|share| share.value >= ENOUGH) {
        return None;
    }
    Some(suspect_doubt(
        CODE,
        "direct=0 and no end_fsync: the job ends before its data is on the device".to_owned(),
        "Add end_fsync=1, so that the bandwidth includes the time to write everything out.",
    ))
}

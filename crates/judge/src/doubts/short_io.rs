//! Rule `short-io`: reads or writes that moved less than requested count as whole I/Os in IOPS and
//! latency.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "short-io";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let (mut short, mut dropped) = (0u64, 0u64);
    let flushes = evidence
        .options
        .is_some_and(|options| options.fsync > 0 || options.fdatasync > 0);
    for io in evidence.directions() {
        // A flush moves no data, and asynchronous engines count a flush as short among the reads
        // (fio 3.33, randrw with fdatasync=1: 35 short of 22 reads with io_uring).
        if !flushes {
            short = short.saturating_add(io.short);
        }
        dropped = dropped.saturating_add(io.dropped);
    }
    (short > 0 || dropped > 0).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "{short} short and {dropped} dropped I/Os of {}",
                evidence.count_ios()
            ),
            "Keep offsets and sizes within the file and aligned to the device's blocks.",
        )
    })
}

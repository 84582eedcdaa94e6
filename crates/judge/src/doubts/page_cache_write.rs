//! Rule `page-cache-write`: writes without `direct=1` and without a flush per write return as soon as the data is in
//! RAM. IOPS and latency therefore describe memory, until the kernel throttles the writer.

use crate::doubts::{DoubtEvidence, HALF, suspect_doubt, void_doubt};
use assay_model::Bytes;
use assay_model::Doubt;
use std::fmt::Write as _;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "page-cache-write";
const BELOW: &str = "Something below the file system kept the data (ZFS's ARC, a host's cache): use \
    sync=dsync or fdatasync=1, or run until it is full.";
const REMEDY: &str = "Add direct=1 for the speed of the device; sync=dsync or fdatasync=1 for the \
    time until a write is durable.";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if !options.access.writes || evidence.bypasses_kernel() {
        return None;
    }
    let share = evidence.device_write_share();
    if options.direct {
        // A layer below the file system absorbed the data.
        let share = share.filter(|share| share.value < HALF)?;
        return Some(void_doubt(
            CODE,
            format!("direct=1, but {}", share.seen),
            BELOW,
        ));
    }
    if options.flushes() {
        return None;
    }
    // The flush at the end is part of the time, so the rate of a sequential write is that of the
    // device; its latencies are of no interest.
    if options.end_fsync && !options.access.random && evidence.results.is_empty() {
        return None;
    }
    if let Some(share) = share.filter(|share| share.value < HALF) {
        return Some(void_doubt(
            CODE,
            format!("direct=0, and {}", share.seen),
            REMEDY,
        ));
    }
    let mut seen =
        String::from("direct=0 and no sync, fsync or fdatasync: a write returns when it is in RAM");
    if matches!(options.given("ioengine"), Some("sync" | "psync")) {
        let _ = write!(
            seen,
            "; ioengine={} means one call at a time, not durable writes",
            options.engine
        );
    }
    if let Some(size) = options.size {
        let total = size.0.saturating_mul(options.numjobs);
        let _ = write!(seen, "; {} in all may fit there", Bytes(total));
    }
    Some(suspect_doubt(CODE, seen, REMEDY))
}

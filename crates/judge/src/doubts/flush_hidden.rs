//! Rule `flush-hidden`: with `fsync` or `fdatasync` fio reports the latencies of the write and of the flush separately,
//! so that the latency of the write alone looks fast. Observed: 5 µs for a write that waited 455 µs for its flush.

use crate::doubts::{DoubtEvidence, EvidenceOrigin, clean_text, suspect_doubt};
use assay_model::Doubt;
use assay_model::Nanos;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "flush-hidden";
/// Minimum number of flushes per write for this rule. A single flush at the end (end_fsync) has no effect on latencies.
const OFTEN: f64 = 0.01;
/// Flush time ÷ write time from which the latency of the write alone misleads.
const PART: f64 = 0.1;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    // assay itself adds the flush to the write.
    if evidence.source == EvidenceOrigin::Measured {
        return None;
    }
    if evidence.results.is_empty()
        && let Some(options) = evidence.options
        && options.access.writes
        && (options.fsync > 0 || options.fdatasync > 0)
    {
        let key = if options.fsync > 0 {
            "fsync"
        } else {
            "fdatasync"
        };
        return Some(suspect_doubt(
            CODE,
            format!(
                "{key}: fio reports the flush apart, so the latency of the write leaves it out"
            ),
            "Read the `sync` percentiles as well, or use sync=dsync, which measures both as one.",
        ));
    }
    for job in evidence.results {
        let (Some(write), Some(flushes)) = (job.write(), job.flush()) else {
            continue;
        };
        let per_write = flushes.count as f64 / write.count.max(1) as f64;
        let write_mean = if write.lat.mean > 0.0 {
            write.lat.mean
        } else {
            write.clat.mean
        };
        if per_write >= OFTEN && flushes.lat.mean * per_write > write_mean * PART {
            return Some(suspect_doubt(
                CODE,
                format!(
                    "the write latency of `{}` ({} mean) leaves the flushes out: {} of {} mean",
                    clean_text(&job.name),
                    Nanos(write_mean as u64),
                    flushes.count,
                    Nanos(flushes.lat.mean as u64)
                ),
                "Add the `sync` latency to that of the write, or use sync=dsync, which measures both as one.",
            ));
        }
    }
    None
}

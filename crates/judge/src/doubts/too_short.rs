//! Rule `too-short`: a sample of a few seconds does not predict the next minute. It ends before the write cache of a
//! drive, or the space for dirty pages in the kernel, has been filled.

use crate::doubts::{DoubtEvidence, EvidenceOrigin, suspect_doubt};
use assay_model::Doubt;
use assay_model::Nanos;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "too-short";
/// Minimum duration of a single sample that is more than a burst: Linux writes dirty pages back after 5 to 30 s, ZFS
/// every 5 s.
const LEAST: Nanos = Nanos(10_000_000_000);

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    // assay repeats its own short samples and shows their variation.
    if evidence.source == EvidenceOrigin::Measured {
        return None;
    }
    let seen = match evidence.longest_runtime() {
        Some(took) if took.0 > 0 && took.0 < LEAST.0 => format!("it ran for {took}"),
        Some(_) => return None,
        None => {
            let runtime = evidence.options?.runtime.filter(|time| time.0 < LEAST.0)?;
            format!("runtime={runtime}")
        }
    };
    Some(suspect_doubt(
        CODE,
        seen,
        "Run it for a minute or more after a ramp_time, and several times.",
    ))
}

//! Rule `small-target`: the target is small enough for the cache of the drive, which then serves reads and absorbs
//! writes until a flush. `direct=1` bypasses the page cache, but not the cache of the drive.

use crate::doubts::{DoubtEvidence, EvidenceOrigin, suspect_doubt};
use assay_model::{Bytes, Doubt};

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "small-target";
/// Size of the largest cache of a hard disk on the market (2026: 512 MB). Controllers with a battery and SSDs have
/// larger caches.
const LARGEST_CACHE: Bytes = Bytes(512 << 20);

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    // assay's own runs print their size, and the user chose it.
    if evidence.source == EvidenceOrigin::Measured {
        return None;
    }
    let options = evidence.options.filter(|options| options.direct)?;
    let size = options.size.filter(|size| size.0 > 0)?;
    let cached = options.access.reads || (options.access.writes && !options.flushes());
    // With a file or a part of a file of its own, each job adds to the size.
    let apart = options.given("filename").is_none() || options.given("offset_increment").is_some();
    let jobs = if apart { options.numjobs } else { 1 };
    let all = Bytes(size.0.saturating_mul(jobs));
    (cached && all <= LARGEST_CACHE).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "all that it touches is {all}, which fits into the cache of a drive or controller"
            ),
            "Use a size of several GiB, larger than every cache below.",
        )
    })
}

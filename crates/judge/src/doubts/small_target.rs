//! A target that fits into the cache of the drive: reads are answered by it, and writes that are not
//! flushed end in it. `direct=1` goes past the page cache, not past that of the drive.

use crate::doubts::{Evidence, Origin, suspect};
use assay_model::{Bytes, Doubt};

/// Name of the rule.
pub const CODE: &str = "small-target";
/// The largest caches of hard disks that are sold (2026: 512 MB); controllers with a battery and SSDs
/// have more.
const LARGEST_CACHE: Bytes = Bytes(512 << 20);

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    // assay's own runs say their size, and it is the user's choice.
    if evidence.source == Origin::Measured {
        return None;
    }
    let options = evidence.options.filter(|options| options.direct)?;
    let size = options.size.filter(|size| size.0 > 0)?;
    let cached = options.access.reads || (options.access.writes && !options.flushes());
    // With a file of its own, or a part of one, each job adds to it.
    let apart = options.given("filename").is_none() || options.given("offset_increment").is_some();
    let jobs = if apart { options.numjobs } else { 1 };
    let all = Bytes(size.0.saturating_mul(jobs));
    (cached && all <= LARGEST_CACHE).then(|| {
        suspect(
            CODE,
            format!(
                "all that it touches is {all}, which fits into the cache of a drive or controller"
            ),
            "Use a size of several GiB, larger than every cache below.",
        )
    })
}

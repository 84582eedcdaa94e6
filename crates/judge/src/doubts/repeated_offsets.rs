//! Rule `repeated-offsets`: fio's random offsets are the same in every run unless `randrepeat=0` or
//! another seed is set. The second run then reads data that the first run left in a cache.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "repeated-offsets";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if !options.access.random || options.given("randseed").is_some() {
        return None;
    }
    let seen = match options.given("randrepeat") {
        Some(_) if !options.is_on("randrepeat", true) => return None,
        Some(_) => "randrepeat=1: every run uses the same offsets",
        // With direct=1 only a cache below the kernel could hold the data.
        None if options.direct || !options.access.reads => return None,
        None => "randrepeat is on by default: the next run reads the same offsets, from RAM",
    };
    Some(suspect_doubt(
        CODE,
        seen.to_owned(),
        "Add randrepeat=0, or another randseed in each run.",
    ))
}

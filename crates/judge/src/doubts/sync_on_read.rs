//! Rule `sync-on-read`: `sync`, `fsync` and `fdatasync` affect writes. They do not make reads bypass a cache.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_fio::options::SyncOption;
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "sync-on-read";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if options.access.writes || options.access.trims {
        return None;
    }
    let what = if options.sync != SyncOption::No {
        "sync"
    } else if options.fsync > 0 {
        "fsync"
    } else if options.fdatasync > 0 {
        "fdatasync"
    } else {
        return None;
    };
    Some(suspect_doubt(
        CODE,
        format!(
            "{what} has no effect on rw={}",
            clean_text(options.given("rw").unwrap_or("read"))
        ),
        "Leave it out; to read from the device and not from RAM, add direct=1.",
    ))
}

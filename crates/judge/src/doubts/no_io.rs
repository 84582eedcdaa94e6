//! A job that moved nothing measured nothing.

use crate::doubts::{Evidence, clean, void};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "no-io";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let first = evidence.results.first()?;
    let idle = evidence.ios() == 0 && evidence.bytes_read() == 0 && evidence.bytes_written() == 0;
    let trims = evidence.results.iter().any(|job| job.trim().is_some());
    (idle && !trims).then(|| {
        void(
            CODE,
            format!("job `{}` completed no I/O", clean(&first.name)),
            "Look at what fio printed on stderr; give the job a file, a size and time to run.",
        )
    })
}

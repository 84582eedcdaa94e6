//! fio stopped at an error of the kernel; the figures end where it happened.

use crate::doubts::{Evidence, clean, void};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "io-error";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let failed = evidence.results.iter().find(|job| job.fio.error != 0)?;
    Some(void(
        CODE,
        format!(
            "job `{}` ended with error {} after {}",
            clean(&failed.name),
            failed.fio.error,
            failed.runtime
        ),
        "Find the cause first (errno of the number above, kernel log); measure again when it is gone.",
    ))
}

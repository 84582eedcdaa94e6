//! Rule `io-error`: fio stopped at an I/O error, so the figures cover only the time before it.

use crate::doubts::{DoubtEvidence, clean_text, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "io-error";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let failed = evidence.results.iter().find(|job| job.fio.error != 0)?;
    Some(void_doubt(
        CODE,
        format!(
            "job `{}` ended with error {} after {}",
            clean_text(&failed.name),
            failed.fio.error,
            failed.runtime
        ),
        "Find the cause first (errno of the number above, kernel log); measure again when it is gone.",
    ))
}

//! Rule `jobs-overlap`: several sequential jobs on one file all start at its beginning. Observed:
//! four jobs wrote the same 1,024 offsets.

use crate::doubts::{DoubtEvidence, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "jobs-overlap";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let apart = options
        .given("offset_increment")
        .is_some_and(|step| step != "0");
    (options.numjobs > 1 && !options.access.random && options.given("filename").is_some() && !apart).then(|| {
        void_doubt(
            CODE,
            format!(
                "{} sequential jobs share one file and start at the same offset: they do the same blocks",
                options.numjobs
            ),
            "Give each its own part with offset_increment and size, or its own file with directory.",
        )
    })
}

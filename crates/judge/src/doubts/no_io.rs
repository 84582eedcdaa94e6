//! Rule `no-io`: a job that moved no data measured nothing.

use crate::doubts::{DoubtEvidence, clean_text, void_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "no-io";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let first = evidence.results.first()?;
    // Other programs print rates without counts.
    let rates = |io: &assay_model::sample::Operations| io.per_s > 0.0 || io.bytes_per_s > 0.0;
    let idle = evidence.count_ios() == 0
        && evidence.bytes_read() == 0
        && evidence.bytes_written() == 0
        && !evidence.directions().any(rates);
    let trims = evidence.results.iter().any(|job| job.trim().is_some());
    (idle && !trims).then(|| {
        void_doubt(
            CODE,
            format!("job `{}` completed no I/O", clean_text(&first.name)),
            "Look at what fio printed on stderr; give the job a file, a size and time to run.",
        )
    })
}

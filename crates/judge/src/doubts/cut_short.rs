//! Rule `cut-short`: a job with a fixed time ended earlier, because it was interrupted, killed or
//! out of space. fio reports error 0 after Ctrl-C.

use crate::doubts::{DoubtEvidence, ENOUGH, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "cut-short";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    let asked = options.runtime?;
    if !options.is_on("time_based", false) || options.given("steadystate").is_some() {
        return None;
    }
    let took = evidence.longest_runtime()?;
    ((took.0 as f64) < asked.0 as f64 * ENOUGH).then(|| {
        suspect_doubt(
            CODE,
            format!("{asked} were asked for, the job ended after {took}"),
            "Run it again and let it end by itself.",
        )
    })
}

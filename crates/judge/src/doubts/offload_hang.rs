//! Rule `offload-hang`: `io_submit_mode=offload` with a queue hung in four of four attempts with
//! fio 3.33.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "offload-hang";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    (options.given("io_submit_mode") == Some("offload")
        && options.iodepth > 1
        && evidence.results.is_empty())
    .then(|| {
        suspect_doubt(
            CODE,
            format!(
                "io_submit_mode=offload with iodepth={} can hang",
                options.iodepth
            ),
            "Leave io_submit_mode out, or run it under `timeout`.",
        )
    })
}

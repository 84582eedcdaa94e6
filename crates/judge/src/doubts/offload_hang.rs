//! `io_submit_mode=offload` with a queue hung in four of four tries with fio 3.33.

use crate::doubts::{Evidence, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "offload-hang";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let options = evidence.options?;
    (options.given("io_submit_mode") == Some("offload")
        && options.iodepth > 1
        && evidence.results.is_empty())
    .then(|| {
        suspect(
            CODE,
            format!(
                "io_submit_mode=offload with iodepth={} can hang",
                options.iodepth
            ),
            "Leave io_submit_mode out, or run it under `timeout`.",
        )
    })
}

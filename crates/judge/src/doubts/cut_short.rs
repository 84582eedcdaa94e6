//! A job with a fixed time that ended earlier was interrupted, killed or ran out of something. fio
//! reports error 0 after Ctrl-C.

use crate::doubts::{ENOUGH, Evidence, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "cut-short";

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let options = evidence.options?;
    let asked = options.runtime?;
    if !options.is_on("time_based", false) || options.given("steadystate").is_some() {
        return None;
    }
    let took = evidence.longest_runtime()?;
    ((took.0 as f64) < asked.0 as f64 * ENOUGH).then(|| {
        suspect(
            CODE,
            format!("{asked} were asked for, the job ended after {took}"),
            "Run it again and let it end by itself.",
        )
    })
}

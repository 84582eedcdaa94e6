//! Rule `overrun`: a job that runs longer than its `runtime` waits for earlier I/O, so the rates are averaged over a
//! time without new I/O. Observed: a buffered write with a runtime of 3 s took 3.56 s.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;
use assay_model::Nanos;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "overrun";
/// Minimum overrun that counts, as actual ÷ requested time.
const FACTOR: f64 = 1.1;
/// Minimum overrun that counts, as a duration, because one slow I/O at the end of a short job is normal.
const SLACK: Nanos = Nanos(300_000_000);

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let asked = evidence.options?.runtime?;
    let took = evidence.longest_runtime()?;
    let limit = (asked.0 as f64 * FACTOR).max(asked.0 as f64 + SLACK.0 as f64);
    (took.0 as f64 > limit).then(|| {
        suspect_doubt(
            CODE,
            format!("runtime={asked} was asked for, the job took {took}"),
            "Look for stalls in the latency maximum; use direct=1, and a longer runtime.",
        )
    })
}

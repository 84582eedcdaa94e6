//! A job that runs on after its time waits for I/O that was issued before; rates are then averaged over
//! a time in which nothing new was asked for. Observed: a buffered write of 3 s took 3.56 s.

use crate::doubts::{Evidence, suspect};
use assay_model::Doubt;
use assay_model::Nanos;

/// Name of the rule.
pub const CODE: &str = "overrun";
/// Overrun that counts, as a factor.
const FACTOR: f64 = 1.1;
/// And at least this long: one slow I/O at the end of a short job is normal.
const SLACK: Nanos = Nanos(300_000_000);

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let asked = evidence.options?.runtime?;
    let took = evidence.longest_runtime()?;
    let limit = (asked.0 as f64 * FACTOR).max(asked.0 as f64 + SLACK.0 as f64);
    (took.0 as f64 > limit).then(|| {
        suspect(
            CODE,
            format!("runtime={asked} was asked for, the job took {took}"),
            "Look for stalls in the latency maximum; use direct=1, and a longer runtime.",
        )
    })
}

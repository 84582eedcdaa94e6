//! Rule `rate-capped`: a job reached its own rate limit, so it measured the limit and not the storage.

use crate::doubts::{DoubtEvidence, ENOUGH, clean_text, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "rate-capped";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    if let Some(pause) = options
        .given("thinktime")
        .filter(|_| options.count_of("thinktime") != Some(0))
    {
        return Some(suspect_doubt(
            CODE,
            format!(
                "thinktime={} makes each job wait on purpose: the rate is that of the pauses",
                clean_text(pause)
            ),
            "Leave thinktime out to see what the storage can do.",
        ));
    }
    let iops: f64 = evidence.directions().map(|io| io.per_s).sum();
    let rate: f64 = evidence.directions().map(|io| io.bytes_per_s).sum();
    let jobs = evidence.results.len().max(1) as f64;
    let (cap, got, what) = if let Some(cap) = options.first_bytes("rate_iops") {
        (cap as f64 * jobs, iops, "IOPS")
    } else {
        (
            options.first_bytes("rate")? as f64 * jobs,
            rate,
            "bytes per second",
        )
    };
    (got >= cap * ENOUGH).then(|| {
        suspect_doubt(
            CODE,
            format!("{got:.0} {what} is the limit that was set ({cap:.0})"),
            "Leave the rate limit out to see what the storage can do.",
        )
    })
}

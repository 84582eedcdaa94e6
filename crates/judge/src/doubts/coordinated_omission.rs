//! Rule `coordinated-omission`: with a rate limit fio's latencies are too low for independent users, because fio stops
//! issuing I/O while it waits. Observed: a stall of 1 s in 6 s at rate_iops=500 means a p99 of about 0.94 s; fio
//! printed 3.2 ms. `rate_process=poisson` and a deep queue do not help.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_model::Doubt;
use assay_model::Nanos;
use std::fmt::Write as _;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "coordinated-omission";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let options = evidence.options?;
    // Without a rate `rate_process` has no effect.
    let key = ["rate_iops", "rate"]
        .into_iter()
        .find(|key| options.given(key).is_some())?;
    let mut seen = format!(
        "{key}={}: fio stops issuing during a stall, so the percentiles hide it",
        clean_text(options.given(key).unwrap_or_default())
    );
    if let Some(longest) = evidence
        .directions()
        .map(|io| io.clat.max.max(io.lat.max))
        .max()
    {
        let _ = write!(seen, "; the longest I/O took {}", Nanos(longest));
    }
    Some(suspect_doubt(
        CODE,
        seen,
        "Read the maximum and the stalls, not p99, as what a user would see.",
    ))
}

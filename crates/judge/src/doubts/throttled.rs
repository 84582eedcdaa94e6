//! Rule `throttled`: the processor or the drive was throttled because of heat while the sample ran.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "throttled";

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let throttle = evidence.counters?.throttle.as_ref()?;
    let seen = match (throttle.cpu_events, throttle.nvme_celsius) {
        (Some(events), _) if events > 0 => {
            format!("the processor was throttled {events} times for heat")
        }
        (_, Some((celsius, limit))) if limit > 0.0 && celsius >= limit => {
            format!("the drive was at {celsius:.0} °C, its limit is {limit:.0} °C")
        }
        _ => return None,
    };
    Some(suspect_doubt(
        CODE,
        seen,
        "Let it cool down, improve the airflow, measure again.",
    ))
}

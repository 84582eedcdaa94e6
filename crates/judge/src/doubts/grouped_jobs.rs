//! `group_reporting` sums jobs up: a straggler disappears (observed: one with 50 IOPS), options and name
//! come from different jobs, `job_runtime` is a sum.

use crate::doubts::{Evidence, suspect};
use assay_model::Doubt;

/// Name of the rule.
pub const CODE: &str = "grouped-jobs";
/// `job_runtime` of a group is the sum over its jobs.
const SUMMED: f64 = 1.5;

pub(super) fn check(evidence: &Evidence) -> Option<Doubt> {
    let options = evidence.options?;
    if options.numjobs < 2 {
        return None;
    }
    let by_flag = options.is_on("group_reporting", false);
    let by_runtime = evidence.results.iter().any(|job| {
        let longest = [job.read(), job.write(), job.trim()]
            .into_iter()
            .flatten()
            .map(|io| io.runtime.0)
            .max();
        longest.is_some_and(|longest| longest > 0 && job.runtime.0 as f64 > longest as f64 * SUMMED)
    });
    (by_flag || by_runtime).then(|| {
        suspect(
            CODE,
            format!(
                "{} jobs are reported as one: differences between them are hidden",
                options.numjobs
            ),
            "Leave group_reporting out and sum up the jobs yourself.",
        )
    })
}

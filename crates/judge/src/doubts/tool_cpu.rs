//! Rule `tool-cpu`: the load generator had no CPU time left, so the figure is the limit of the
//! tool. `refill_buffers` costs time too: at high rates fio generates random data instead of
//! writing.

use crate::doubts::{DoubtEvidence, clean_text, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "tool-cpu";
/// Percentage of one CPU from which the CPU counts as full. fio measures CPU time in clock ticks.
const FULL: f64 = 95.0;
/// Percentage of a CPU in user mode from which filling buffers takes more time than waiting for
/// I/O.
const REFILL: f64 = 50.0;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    for job in evidence.results {
        let busy = job.usr_cpu + job.sys_cpu;
        let refills = evidence
            .options
            .is_some_and(|options| options.access.writes && options.is_on("refill_buffers", false));
        if busy >= FULL {
            return Some(suspect_doubt(
                CODE,
                format!(
                    "`{}` used {busy:.0} % of a CPU ({:.0} % user, {:.0} % kernel): fio was the \
                     limit, the storage may do more",
                    clean_text(&job.name),
                    job.usr_cpu,
                    job.sys_cpu
                ),
                "Use more jobs on more CPUs, larger blocks, or io_uring.",
            ));
        }
        if refills && job.usr_cpu >= REFILL {
            return Some(suspect_doubt(
                CODE,
                format!(
                    "`{}` spent {:.0} % of its time making random data (refill_buffers)",
                    clean_text(&job.name),
                    job.usr_cpu
                ),
                "Use more jobs, so that making data and writing overlap.",
            ));
        }
    }
    None
}

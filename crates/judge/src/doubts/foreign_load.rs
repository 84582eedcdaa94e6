//! Rule `foreign-load`: other programs used the CPU while the sample ran. Only time in user mode counts, because kernel
//! threads (encryption, checksums, completion) work for the load and spend no time in user mode.

use crate::doubts::{DoubtEvidence, suspect_doubt};
use assay_model::Doubt;

/// Stable code of this doubt in results and in the book.
pub const CODE: &str = "foreign-load";
/// If other programs use at least this fraction of the time of all CPUs, the load generator sometimes waits for a CPU.
const MUCH: f64 = 0.2;

pub(super) fn check(evidence: &DoubtEvidence) -> Option<Doubt> {
    let counters = evidence.counters?;
    let cpu = counters.cpu.as_ref()?;
    let all = counters.elapsed.as_secs_f64() * f64::from(cpu.cpus);
    if all <= 0.0 {
        return None;
    }
    // CPU time of the load beyond the kernel time of its jobs: the jobs' user time, and the tool's
    // start and end.
    let kernel: f64 = evidence
        .results
        .iter()
        .map(|job| job.sys_cpu / 100.0 * job.runtime.as_secs_f64())
        .sum();
    let own = (counters.tool_cpu?.as_secs_f64() - kernel).max(0.0) / all;
    let foreign = cpu.user - own;
    (foreign >= MUCH).then(|| {
        suspect_doubt(
            CODE,
            format!(
                "other programs used {:.0} % of the time of all {} CPUs, the load {:.0} %",
                foreign * 100.0,
                cpu.cpus,
                counters.tool_cpu.unwrap_or_default().as_secs_f64() / all * 100.0
            ),
            "Measure again when the machine is quiet; or keep the figure as that of a busy machine.",
        )
    })
}

//! Measures the CPU cost of a generator thread.

use crate::tally::Tally;

/// A reading of this thread's CPU time, from which the CPU time of the load is computed.
pub struct Used {
    cpu: u64,
    waited: Option<u64>,
    ended: bool,
}

impl Used {
    pub fn now() -> Self {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        // Time on a CPU, time spent waiting for one, and time slices
        // (Documentation/scheduler/sched-stats.rst).
        let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
        Self {
            cpu: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            waited: schedstat.and_then(|text| text.split_whitespace().nth(1)?.parse().ok()),
            ended: false,
        }
    }

    /// Adds the CPU time since the reading to the counts. Further calls add nothing.
    pub fn end(&mut self, tally: &mut Tally) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let now = Self::now();
        tally.cpu = now.cpu.saturating_sub(self.cpu);
        tally.cpu_waited = now
            .waited
            .zip(self.waited)
            .map(|(now, then)| now.saturating_sub(then));
    }
}

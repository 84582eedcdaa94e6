//! Measures the resources that the machine of the load generator used between two readings of its counters.

use crate::procfs::{counter, read};
use assay_model::Nanos;
use assay_model::web::MachineUse;
use std::time::Instant;

/// Nanoseconds per tick of `/proc/stat` (USER_HZ in proc_stat(5), which is 100 per second on every Linux).
pub(crate) const TICK: u64 = 10_000_000;

/// Counters of the machine at one time.
pub struct MachineCounters {
    at: Instant,
    busy: u64,
    stolen: u64,
    cpus: u32,
    overflows: u64,
    drops: u64,
    retransmitted: u64,
    segments: u64,
}

impl MachineCounters {
    pub fn now() -> Self {
        let stat = read("/proc/stat").unwrap_or_default();
        let (busy, stolen) = ticks(&stat).unwrap_or_default();
        // Counters of the network namespace of this thread.
        let netstat = read("/proc/thread-self/net/netstat").unwrap_or_default();
        let snmp = read("/proc/thread-self/net/snmp").unwrap_or_default();
        let count = |text: &str, prefix: &str, name: &str| counter(text, prefix, name).unwrap_or(0);
        Self {
            at: Instant::now(),
            busy,
            stolen,
            cpus: stat.lines().filter(|line| is_cpu(line)).count() as u32,
            overflows: count(&netstat, "TcpExt", "ListenOverflows"),
            drops: count(&netstat, "TcpExt", "ListenDrops"),
            retransmitted: count(&snmp, "Tcp", "RetransSegs"),
            segments: count(&snmp, "Tcp", "OutSegs"),
        }
    }

    /// Returns the resources that were used since the earlier reading `then`.
    pub fn since(&self, then: &Self) -> MachineUse {
        MachineUse {
            cpus: self.cpus,
            window: Nanos::from(self.at - then.at),
            busy: Nanos(self.busy.saturating_sub(then.busy) * TICK),
            stolen: Nanos(self.stolen.saturating_sub(then.stolen) * TICK),
            listen_overflows: self.overflows.saturating_sub(then.overflows),
            listen_drops: self.drops.saturating_sub(then.drops),
            retransmitted: self.retransmitted.saturating_sub(then.retransmitted),
            segments: self.segments.saturating_sub(then.segments),
        }
    }
}

/// Returns the number of online CPUs.
pub fn cpus() -> u32 {
    MachineCounters::now().cpus.max(1)
}

fn is_cpu(line: &str) -> bool {
    line.strip_prefix("cpu")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Parses the number of ticks in which a CPU worked, and the number of ticks that the hypervisor stole.
pub(crate) fn ticks(stat: &str) -> Option<(u64, u64)> {
    // Fields: user nice system idle iowait irq softirq steal …; user includes guests.
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let values: Vec<u64> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let [user, nice, system, _, _, irq, softirq, steal, ..] = values[..] else {
        return None;
    };
    let busy = [nice, system, irq, softirq];
    Some((busy.into_iter().fold(user, u64::saturating_add), steal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_is_not_work() {
        let stat = "cpu  10 1 5 900 40 2 3 7 0 0\ncpu0 5 0 2 450 20 1 1 3 0 0\ncpu1 1\nintr 5\n";
        assert_eq!(ticks(stat), Some((21, 7)));
        assert_eq!(stat.lines().filter(|line| is_cpu(line)).count(), 2);
        assert_eq!(ticks("cpu 1 2\n"), None);
    }

    #[test]
    fn this_machine_does_something() {
        let then = MachineCounters::now();
        let begin = Instant::now();
        let mut x = 0u64;
        while begin.elapsed().as_millis() < 60 {
            x = std::hint::black_box(x + 1);
        }
        let used = MachineCounters::now().since(&then);
        assert!(used.cpus > 0 && used.busy.0 > 0 && used.window.0 >= 60_000_000);
    }
}

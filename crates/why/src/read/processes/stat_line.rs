//! A line of `/proc/PID/stat` (proc_pid_stat(5)). The name may contain spaces, brackets and line feeds.

/// Fields of the line that assay uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatLine {
    pub(super) name: String,
    pub(super) state: char,
    pub(super) parent: u32,
    flags: u64,
    pub(super) major_faults: u64,
    /// CPU time of the process in user and kernel mode, in ticks.
    pub(super) cpu_ticks: u64,
    /// CPU time of the process in kernel mode, in ticks.
    pub(super) system_ticks: u64,
    /// CPU time of ended children for which the process has waited, in ticks.
    pub(super) children_ticks: u64,
    /// CPU time of the process and of its ended children, in ticks.
    pub(super) busy_ticks: u64,
    /// Nice value from -20 to 19; a larger value means lower priority.
    pub(super) nice: i64,
    policy: u64,
    pub(super) threads: u64,
    /// Start time in ticks since boot.
    pub(super) start: u64,
    pub(super) resident_pages: u64,
}

/// PF_KTHREAD in the flags (include/linux/sched.h).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// Returns the state of a thread, and whether the kernel owns it; `None` if the line is damaged. Samples need nothing
/// else of a line, and there are many.
pub(super) fn parse_state(text: &str) -> Option<(char, bool)> {
    let close = text.rfind(')')?;
    let mut words = text.get(close + 1..)?.trim_start().splitn(8, ' ');
    let state = words.next()?.chars().next()?;
    // The flags are field 9 of the manual, the state is field 3.
    let flags: u64 = words.nth(5)?.parse().ok()?;
    Some((state, flags & KERNEL_THREAD != 0))
}

impl StatLine {
    /// Parses a line; None if it is damaged.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let open = text.find('(')?;
        let close = text.rfind(')')?;
        let name = text.get(open + 1..close)?;
        let words: Vec<&str> = text.get(close + 1..)?.trim().split(' ').collect();
        // The state is field 3 of the manual.
        let number = |field: usize| words.get(field - 3)?.parse::<u64>().ok();
        let cpu_ticks = number(14)?.saturating_add(number(15)?);
        let signed = |field: usize| words.get(field - 3)?.parse::<i64>().ok();
        let children = signed(16)?
            .saturating_add(signed(17)?)
            .max(0)
            .unsigned_abs();
        Some(Self {
            name: name.to_owned(),
            state: words.first()?.chars().next()?,
            parent: words.get(1)?.parse().ok()?,
            flags: number(9)?,
            major_faults: number(12)?,
            cpu_ticks,
            system_ticks: number(15)?,
            children_ticks: children,
            busy_ticks: cpu_ticks.saturating_add(children),
            nice: signed(19)?,
            // Missing in shortened lines of captures.
            policy: number(41).unwrap_or(0),
            threads: number(20)?,
            start: number(22)?,
            resident_pages: number(24)?,
        })
    }

    /// Returns whether the process has a low priority: nice value 5 or more, SCHED_BATCH or SCHED_IDLE.
    pub(super) fn is_low_priority(&self) -> bool {
        const BATCH: u64 = 3;
        const IDLE: u64 = 5;
        self.nice >= 5 || matches!(self.policy, BATCH | IDLE)
    }

    /// Returns whether the process is a kernel thread.
    pub(super) fn is_kernel(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_name_moves_no_field() {
        let line = "7 (a) R 1 (\n) S 4 7 7 0 -1 4194304 10 0 3 0 5 6 7 8 20 0 2 0 99 1000 12 0\n";
        let stat = StatLine::parse(line).unwrap();
        assert_eq!(
            (stat.name.as_str(), stat.state, stat.parent),
            ("a) R 1 (\n", 'S', 4)
        );
        assert_eq!(
            (stat.cpu_ticks, stat.children_ticks, stat.start),
            (11, 15, 99)
        );
        assert_eq!((stat.major_faults, stat.resident_pages), (3, 12));
        assert_eq!(parse_state(line), Some(('S', false)));
        for end in 0..line.len() {
            let _ = (StatLine::parse(&line[..end]), parse_state(&line[..end]));
        }
        assert!(StatLine::parse(")(").is_none());
        let thread = "2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0\n";
        assert_eq!(parse_state(thread), Some(('S', true)));
    }
}

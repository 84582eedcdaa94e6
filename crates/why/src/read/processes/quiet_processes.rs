//! Processes that use no CPU and yet may be a cause or wait: all their files are open, or they sleep where they cannot
//! go on by themselves. A part of all processes is looked at in each list.

use super::super::MachineReader;
use super::super::sleep_class::{FUTEX, classify_sleep};
use super::sampled_states::read_wchan;
use std::collections::BTreeMap;
use std::path::Path;

/// Most quiet processes that are looked at in one list.
const MOST: usize = 250;
/// With fewer open files than this, no limit is near.
const FEW_FILES: u64 = 16;

/// Which quiet processes were looked at.
#[derive(Default)]
pub(super) struct QuietProcesses {
    /// The last one of the last list.
    last: u32,
    /// Limit of open files by process number and start.
    limits: BTreeMap<(u32, u64), Option<f64>>,
}

impl QuietProcesses {
    /// Returns those of these sleeping processes (number and start) that are to be looked at closely.
    pub(super) fn choose(&mut self, reader: &mut MachineReader, all: &[(u32, u64)]) -> Vec<u32> {
        let first = all.partition_point(|(pid, _)| *pid <= self.last);
        let order = all.iter().cycle().skip(first).take(all.len().min(MOST));
        let mut chosen = Vec::new();
        for (pid, start) in order {
            self.last = *pid;
            let wchan = read_wchan(reader, &format!("/proc/{pid}"));
            let waits = classify_sleep(&wchan).is_some_and(|class| class != FUTEX);
            if waits || self.has_no_free_file(reader, *pid, *start) {
                chosen.push(*pid);
            }
        }
        if self.limits.len() > 4 * MOST {
            self.limits.clear();
        }
        chosen
    }

    fn has_no_free_file(&mut self, reader: &mut MachineReader, pid: u32, start: u64) -> bool {
        // The size of this directory is the number of open files since Linux 6.2, and 0 before.
        let Some(open) = reader.file_size(Path::new(&format!("/proc/{pid}/fd"))) else {
            return false;
        };
        if open < FEW_FILES {
            return false;
        }
        let limit = match self.limits.get(&(pid, start)) {
            Some(limit) => *limit,
            None => {
                let limit = super::lasting::read_open_files_limit(reader, pid);
                self.limits.insert((pid, start), limit);
                limit
            }
        };
        limit.is_some_and(|limit| open as f64 >= 0.98 * limit)
    }
}

//! Processes that use no CPU and may nevertheless be a cause or wait: they are at a limit, or sleep in a function from
//! which they cannot wake by themselves. Each scan of all processes examines a part of them.

use super::super::MachineReader;
use super::super::sleep_class::waits_for_others;
use super::database_sessions::read_state;
use super::lasting::ProcessLimits;
use super::list_threads;
use super::user_tasks::UserTasks;
use std::collections::BTreeMap;
use std::path::Path;

/// Maximum number of quiet processes that one scan examines.
const MOST: usize = 250;
/// Maximum number of threads of a quiet process, besides the first, that one scan examines.
const MOST_THREADS: usize = 4;
/// Number of open files below which no limit is near.
const FEW_FILES: u64 = 16;

/// A process that sleeps.
#[derive(Clone, Copy)]
pub(super) struct SleepingProcess {
    pub(super) pid: u32,
    pub(super) start: u64,
    pub(super) threads: u64,
    /// Whether the process may be a database session.
    pub(super) is_database: bool,
}

/// Which quiet processes have been examined.
#[derive(Default)]
pub(super) struct QuietProcesses {
    /// Id of the process that the last scan examined last.
    last: u32,
    /// Limits by process id and start time.
    limits: BTreeMap<(u32, u64), ProcessLimits>,
}

impl QuietProcesses {
    /// Returns those of these sleeping processes that should be tracked.
    pub(super) fn choose(
        &mut self,
        reader: &mut MachineReader,
        all: &[SleepingProcess],
        users: &mut UserTasks,
    ) -> Vec<u32> {
        let first = all.partition_point(|one| one.pid <= self.last);
        let order = all.iter().cycle().skip(first).take(all.len().min(MOST));
        let mut chosen = Vec::new();
        for one in order {
            if reader.is_late() {
                break;
            }
            self.last = one.pid;
            if is_held(reader, &format!("/proc/{}", one.pid))
                || has_held_thread(reader, one)
                || (one.is_database && read_state(reader, one.pid).is_some())
                || self.is_at_limit(reader, one, users)
            {
                chosen.push(one.pid);
            }
        }
        if self.limits.len() > 4 * MOST {
            self.limits.clear();
        }
        chosen
    }

    /// Returns whether a process cannot open more files, or its user cannot start more tasks.
    fn is_at_limit(
        &mut self,
        reader: &mut MachineReader,
        one: &SleepingProcess,
        users: &mut UserTasks,
    ) -> bool {
        let dir = format!("/proc/{}", one.pid);
        let limits = *self
            .limits
            .entry((one.pid, one.start))
            .or_insert_with(|| ProcessLimits::read(reader, one.pid));
        if let Some(most) = limits.processes
            && let Some(uid) = reader.owner(Path::new(&dir))
            && users.is_at_limit(uid, most)
        {
            return true;
        }
        // The size of this directory is the number of open files since Linux 6.2, and 0 before.
        let open = reader.file_size(Path::new(&format!("{dir}/fd")));
        let open = open.filter(|open| *open >= FEW_FILES);
        let share = open.zip(limits.files);
        share.is_some_and(|(open, most)| open as f64 >= 0.98 * most)
    }
}

/// Returns whether a task waits for another program. `dir` is its directory below `/proc`.
fn is_held(reader: &mut MachineReader, dir: &str) -> bool {
    let wchan = reader.text_once(&format!("{dir}/wchan"));
    let wchan = wchan.unwrap_or_default();
    waits_for_others(wchan.trim(), || reader.text_once(&format!("{dir}/syscall")))
}

/// Returns whether a thread besides the first waits for another program. Each scan examines a part of the threads.
fn has_held_thread(reader: &mut MachineReader, one: &SleepingProcess) -> bool {
    if one.threads < 2 {
        return false;
    }
    let threads = list_threads(reader, one.pid);
    let others = threads.iter().filter(|thread| **thread != one.pid);
    let looks = usize::try_from(reader.looks).unwrap_or(0);
    let first = looks * MOST_THREADS % threads.len().max(1);
    let part = others
        .cycle()
        .skip(first)
        .take(MOST_THREADS.min(threads.len()));
    part.into_iter()
        .any(|thread| is_held(reader, &format!("/proc/{}/task/{thread}", one.pid)))
}

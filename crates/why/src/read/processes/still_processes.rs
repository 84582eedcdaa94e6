//! Processes that did not run between two snapshots. Such a process waited for the same thing all the time, so one
//! sample represents the whole interval.

use super::MOST_THREADS;
use std::collections::{BTreeMap, BTreeSet};

/// Whether the threads of a process have run, according to their time slices.
#[derive(Clone, Copy)]
struct Runs {
    /// Number of time slices so far, summed over all threads.
    slices: f64,
    is_still: bool,
}

/// Processes that are read at each snapshot.
#[derive(Default)]
pub(super) struct StillProcesses {
    runs: BTreeMap<u32, Runs>,
}

impl StillProcesses {
    /// Records the time slices of a process's threads. The process does not count as still if it is running, if the
    /// kernel does not count time slices, or if it has more threads than are read.
    pub(super) fn note(&mut self, pid: u32, state: char, slices: f64, threads: usize) {
        let before = self.runs.get(&pid).map(|runs| runs.slices);
        let is_counted = slices > 0.0 && threads < MOST_THREADS;
        let is_still = is_counted && state != 'R' && before == Some(slices);
        self.runs.insert(pid, Runs { slices, is_still });
    }

    /// Returns whether no thread of the process ran between the last two snapshots.
    pub(super) fn is_still(&self, pid: u32) -> bool {
        self.runs.get(&pid).is_some_and(|runs| runs.is_still)
    }

    /// Removes the processes that are no longer tracked.
    pub(super) fn retain(&mut self, tracked: &BTreeSet<u32>) {
        self.runs.retain(|pid, _| tracked.contains(pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_known_not_to_have_run_is_still() {
        let mut still = StillProcesses::default();
        let mut note = |state, slices, threads| {
            still.note(1, state, slices, threads);
            still.is_still(1)
        };
        assert!(!note('S', 5.0, 1));
        assert!(note('S', 5.0, 1) && note('D', 5.0, 1));
        assert!(!note('R', 5.0, 1), "it computes without a break");
        assert!(!note('S', 6.0, 1));
        assert!(!note('S', 6.0, MOST_THREADS), "more threads than are read");
        assert!(!note('S', 0.0, 1) && !note('S', 0.0, 1), "not counted");
        still.retain(&BTreeSet::new());
        assert!(!still.is_still(1));
    }
}

//! Processes that did not run between two looks: what they wait for did not change then, so that one sample stands for
//! all.

use super::MOST_THREADS;
use std::collections::{BTreeMap, BTreeSet};

/// How often the threads of a process have run.
#[derive(Clone, Copy)]
struct Runs {
    /// Time slices so far.
    slices: f64,
    is_still: bool,
}

/// The processes that are read at each look.
#[derive(Default)]
pub(super) struct StillProcesses {
    runs: BTreeMap<u32, Runs>,
}

impl StillProcesses {
    /// Notes the time slices of the threads of a process. It is not still if not all of them are read, if the kernel
    /// does not count them, or if the process is running.
    pub(super) fn note(&mut self, pid: u32, state: char, slices: f64, threads: usize) {
        let before = self.runs.get(&pid).map(|runs| runs.slices);
        let is_counted = slices > 0.0 && threads < MOST_THREADS;
        let is_still = is_counted && state != 'R' && before == Some(slices);
        self.runs.insert(pid, Runs { slices, is_still });
    }

    /// Whether no thread ran between the last two looks.
    pub(super) fn is_still(&self, pid: u32) -> bool {
        self.runs.get(&pid).is_some_and(|runs| runs.is_still)
    }

    /// Forgets the processes that are no longer read.
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

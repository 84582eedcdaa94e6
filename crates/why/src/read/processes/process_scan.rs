//! A scan of all processes that is not finished yet, with what it has found so far.

use super::super::MachineReader;
use super::Last;
use super::quiet_processes::SleepingProcess;
use std::collections::BTreeMap;

/// What a scan has found so far.
#[derive(Default)]
pub(super) struct ProcessScan {
    /// Ids of all processes at the start of the scan, sorted, so that parents mostly stand before their children.
    pids: Vec<u32>,
    /// Number of processes read so far.
    pub(super) read: usize,
    pub(super) all: BTreeMap<u32, Last>,
    /// Processes that may be tracked, each with its rank.
    pub(super) ranked: Vec<(u64, u32)>,
    /// Number of processes by state.
    pub(super) states: BTreeMap<char, f64>,
    pub(super) sleeping: Vec<SleepingProcess>,
    /// Number of zombies by parent.
    pub(super) zombies: BTreeMap<u32, u32>,
    /// CPU time of the scan in seconds.
    pub(super) cost: f64,
}

impl ProcessScan {
    /// Lists the processes.
    pub(super) fn begin(reader: &mut MachineReader) -> Self {
        let names = reader.names("/proc");
        let mut pids: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        pids.sort_unstable();
        Self {
            pids,
            ..Self::default()
        }
    }

    /// Returns the next process.
    pub(super) fn next_pid(&mut self) -> Option<u32> {
        let pid = *self.pids.get(self.read)?;
        self.read += 1;
        Some(pid)
    }

    /// Returns whether all processes are read.
    pub(super) fn is_complete(&self) -> bool {
        self.read >= self.pids.len()
    }
}

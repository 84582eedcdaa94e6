//! Number of tasks of each user, compared with the limit `RLIMIT_NPROC`. The kernel counts all threads of a user.

use super::super::MachineReader;
use super::lasting::Lasting;
use crate::machine_snapshot::Entity;
use std::collections::BTreeMap;
use std::path::Path;

/// Number of tasks of those users whose limit could be reached.
#[derive(Default)]
pub(super) struct UserTasks {
    /// Number of tasks of each such user in the last scan; `None` before the first scan.
    counts: BTreeMap<u32, Option<f64>>,
    counting: BTreeMap<u32, f64>,
    /// Number of tasks of all users in the last scan.
    all: f64,
    counting_all: f64,
}

impl UserTasks {
    /// Begins a scan of all processes.
    pub(super) fn restart(&mut self) {
        self.counting = self.counts.keys().map(|uid| (*uid, 0.0)).collect();
        self.counting_all = 0.0;
    }

    /// Counts the threads of a process.
    pub(super) fn count(&mut self, reader: &MachineReader, pid: u32, threads: u64) {
        self.counting_all += threads as f64;
        // Without such a limit, the owners of processes are of no interest.
        if self.counting.is_empty() {
            return;
        }
        let owner = reader.owner(Path::new(&format!("/proc/{pid}")));
        if let Some(tasks) = owner.and_then(|uid| self.counting.get_mut(&uid)) {
            *tasks += threads as f64;
        }
    }

    /// Ends a scan.
    pub(super) fn finish(&mut self) {
        let counted = std::mem::take(&mut self.counting);
        let counted = counted.into_iter().map(|(uid, tasks)| (uid, Some(tasks)));
        self.counts.extend(counted);
        self.all = self.counting_all;
    }

    /// Returns whether a user has reached this limit according to the last scan.
    pub(super) fn is_at_limit(&mut self, uid: u32, limit: f64) -> bool {
        // Root and its like are exempt.
        if uid == 0 || limit > self.all {
            return false;
        }
        let tasks = self.counts.entry(uid).or_insert(None);
        tasks.is_some_and(|tasks| tasks >= limit)
    }

    /// Adds the limit and the number of tasks of a process's user to the entity.
    pub(super) fn describe(&mut self, lasting: &Lasting, entity: &mut Entity) {
        let (Some(limit), Some(uid)) = (lasting.limits.processes, lasting.uid) else {
            return;
        };
        self.is_at_limit(uid, limit);
        if let Some(Some(tasks)) = self.counts.get(&uid) {
            entity.set("user.tasks", *tasks);
            entity.set("user.tasks_limit", limit);
            entity.texts.insert("uid".to_owned(), uid.to_string());
        }
    }
}

//! Decides which processes and groups belong to the watched subject, and which others are tracked because processes
//! wait for them.

use super::stat_line::StatLine;
use super::users_of_path::count_uses;
use super::{MOST, MachineReader, ProcessTable};
use crate::WatchSubject;
use crate::watch_subject::is_below;
use std::collections::BTreeSet;

impl ProcessTable {
    /// Adds processes for which others wait to the tracked processes.
    pub(in super::super) fn want(&mut self, pids: impl IntoIterator<Item = u32>) {
        for pid in pids {
            if self.wanted.len() < MOST / 4 && self.wanted.insert(pid) {
                self.tracked.insert(pid);
            }
        }
    }

    /// Returns the ids of all processes, the tracked ones first.
    pub(in super::super) fn list_busiest_first(&self) -> Vec<u32> {
        let others = self.all.keys().filter(|pid| !self.tracked.contains(pid));
        self.tracked.iter().chain(others).copied().collect()
    }

    /// Returns whether a process belongs to the watched subject.
    pub(super) fn is_asked(
        &mut self,
        reader: &mut MachineReader,
        pid: u32,
        stat: &StatLine,
    ) -> bool {
        if let Some((start, asked)) = self.asked.get(&pid)
            && *start == stat.start
        {
            return *asked;
        }
        let asked = match reader.thing.clone() {
            WatchSubject::Machine => return false,
            WatchSubject::Path { path, .. } => {
                let count = count_uses(reader, pid, &path);
                self.uses.insert(pid, count);
                // Files are opened and closed: it is asked again in the next list.
                return count > 0.0;
            }
            WatchSubject::Group(path) => {
                let text = reader.text_once(&format!("/proc/{pid}/cgroup"));
                let text = text.unwrap_or_default();
                let mut groups = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
                groups.any(|group| is_below(group, &path))
            }
            // Processes are listed by their numbers, so that parents stand before their children.
            WatchSubject::Process(above) => {
                pid == above
                    || self
                        .asked
                        .get(&stat.parent)
                        .is_some_and(|(_, asked)| *asked)
            }
            WatchSubject::Named(name) => stat.name == name,
        };
        self.asked.insert(pid, (stat.start, asked));
        asked
    }

    /// Returns the ids of a process and of its ancestors, separated by spaces: ` 12 1 `.
    pub(super) fn list_ancestors(&self, pid: u32, parent: u32) -> String {
        let mut text = format!("{pid}");
        let mut next = parent;
        for _ in 0..32 {
            if next == 0 {
                break;
            }
            text.push_str(&format!(" {next}"));
            next = self.all.get(&next).map_or(0, |last| last.parent);
        }
        text
    }

    /// Returns the groups of the tracked processes with all their ancestors, and the watched group if there is one.
    pub(in super::super) fn group_paths(&self, thing: &WatchSubject) -> BTreeSet<String> {
        let mut paths = BTreeSet::new();
        let asked = match thing {
            WatchSubject::Group(path) => Some(path),
            _ => None,
        };
        for path in self.groups.iter().chain(asked) {
            let mut rest = path.as_str();
            while !rest.is_empty() && rest != "/" {
                paths.insert(rest.to_owned());
                rest = rest.rsplit_once('/').map_or("", |(above, _)| above);
            }
        }
        paths
    }
}

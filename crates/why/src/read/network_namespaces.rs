//! Network namespaces of containers and sandboxes. Their sockets are not in the socket tables of assay's own namespace.

use super::MachineReader;
use super::sockets::{TABLES, has_sockets};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of namespaces that are read at a time besides assay's own. The kernel walks its whole table of
/// connections for each.
const MOST: usize = 12;
/// Maximum number of namespaces among which these are chosen.
const MOST_FOUND: usize = 256;
/// Maximum number of processes whose namespace is determined.
const MOST_PROCESSES: usize = 2000;

/// Network namespaces of processes.
#[derive(Default)]
pub(super) struct NetworkNamespaces {
    /// One process in each namespace of the last search, by the link target of the namespace.
    found: BTreeMap<String, u32>,
    /// The namespaces that are read: id and label of a process in each.
    chosen: Vec<(u32, String)>,
    /// Labels of namespaces in which connections waited to be accepted.
    waiting: BTreeSet<String>,
    /// Number of namespaces that were chosen in turn so far.
    turn: usize,
}

impl NetworkNamespaces {
    /// Finds the network namespaces of these processes, and chooses those to read: where connections waited, and of the
    /// others as many as there is room for, in turn.
    pub(super) fn find(&mut self, reader: &mut MachineReader, pids: &[u32]) {
        let own = reader.link("/proc/self/ns/net");
        let mut found: BTreeMap<String, u32> = BTreeMap::new();
        // The first process stands for the namespace that it shares with the threads of the kernel.
        for pid in [1].iter().chain(pids).take(MOST_PROCESSES) {
            let link = reader.link(&format!("/proc/{pid}/ns/net"));
            let Some(link) = link.filter(|link| Some(link) != own.as_ref()) else {
                continue;
            };
            let is_known = self.found.get(&link) == Some(pid);
            let is_full = found.len() >= MOST_FOUND;
            match found.entry(link) {
                Entry::Vacant(place) if !is_full => {
                    place.insert(*pid);
                }
                // A namespace keeps its name during a watch.
                Entry::Occupied(mut place) if is_known => {
                    place.insert(*pid);
                }
                _ => {}
            }
        }
        let mut pids: Vec<u32> = found.values().copied().collect();
        self.found = found;
        if pids.len() > MOST {
            pids.retain(|pid| has_connections(reader, *pid));
        }
        let all = pids
            .into_iter()
            .map(|pid| (pid, reader.label_process(pid)))
            .collect();
        self.chosen = choose(all, &self.waiting, &mut self.turn);
    }

    /// Records a namespace in which connections wait to be accepted, so that it stays chosen.
    pub(super) fn keep(&mut self, label: &str) {
        if self.waiting.len() < MOST / 2 && !self.waiting.contains(label) {
            self.waiting.insert(label.to_owned());
        }
    }

    /// Lists the directories of the socket tables, one for each namespace, with the label of a process in it; `None` as
    /// label for assay's own namespace.
    pub(super) fn list(&self) -> Vec<(String, Option<String>)> {
        let others = self.chosen.iter();
        let others = others.map(|(pid, label)| (format!("/proc/{pid}/net"), Some(label.clone())));
        std::iter::once(("/proc/net".to_owned(), None))
            .chain(others)
            .collect()
    }
}

/// Returns whether a process's namespace has TCP or UDP sockets. This does not walk the table of connections.
fn has_connections(reader: &mut MachineReader, pid: u32) -> bool {
    let files = ["sockstat", "sockstat6"];
    let counts = files.map(|file| reader.text_once(&format!("/proc/{pid}/net/{file}")));
    let counts: String = counts.into_iter().flatten().collect();
    TABLES.iter().any(|(_, kind)| has_sockets(&counts, kind))
}

/// Chooses at most [`MOST`] namespaces: those that `waiting` names, and others in turn.
fn choose(
    all: Vec<(u32, String)>,
    waiting: &BTreeSet<String>,
    turn: &mut usize,
) -> Vec<(u32, String)> {
    if all.len() <= MOST {
        return all;
    }
    let (mut chosen, others): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, label)| waiting.contains(label));
    let room = MOST.saturating_sub(chosen.len()).min(others.len());
    let first = *turn % others.len().max(1);
    *turn = turn.wrapping_add(room);
    chosen.extend(others.iter().cycle().skip(first).take(room).cloned());
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_of_many_namespaces_has_its_turn_and_a_waiting_one_stays() {
        let all = || -> Vec<(u32, String)> {
            let pids = 1..=40;
            pids.map(|pid| (pid, format!("server (process {pid})")))
                .collect()
        };
        let waiting = BTreeSet::from(["server (process 7)".to_owned()]);
        let (mut turn, mut seen) = (0, BTreeSet::new());
        for _ in 0..4 {
            let chosen = choose(all(), &waiting, &mut turn);
            assert_eq!(chosen.len(), MOST);
            assert!(chosen.iter().any(|(pid, _)| *pid == 7));
            seen.extend(chosen.into_iter().map(|(pid, _)| pid));
        }
        assert_eq!(seen.len(), 40);
        let few: Vec<_> = all().into_iter().take(MOST).collect();
        assert_eq!(choose(few.clone(), &waiting, &mut turn), few);
    }
}

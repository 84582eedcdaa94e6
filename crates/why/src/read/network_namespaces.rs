//! Network namespaces of containers and sandboxes. Their sockets are not in the socket tables of assay's own namespace.

use super::MachineReader;
use std::collections::BTreeMap;

/// Maximum number of namespaces that are read besides assay's own.
const MOST: usize = 8;

/// Maximum number of processes whose namespace is determined.
const MOST_PROCESSES: usize = 2000;

/// Network namespaces of processes.
#[derive(Default)]
pub(super) struct NetworkNamespaces {
    /// One process in each other namespace: process id and label.
    others: Vec<(u32, String)>,
}

impl NetworkNamespaces {
    /// Finds the network namespaces of these processes, which are sorted by activity, the busiest first.
    pub(super) fn find(reader: &mut MachineReader, pids: &[u32]) -> Self {
        let own = reader.link("/proc/self/ns/net");
        let mut found: BTreeMap<String, u32> = BTreeMap::new();
        // The first process stands for the namespace that it shares with the threads of the kernel.
        for pid in [1].iter().chain(pids).take(MOST_PROCESSES) {
            if found.len() >= MOST {
                break;
            }
            let link = reader.link(&format!("/proc/{pid}/ns/net"));
            if let Some(link) = link.filter(|link| Some(link) != own.as_ref()) {
                found.entry(link).or_insert(*pid);
            }
        }
        let found = found.into_values();
        let others = found.map(|pid| (pid, reader.label_process(pid)));
        Self {
            others: others.collect(),
        }
    }

    /// Lists the directories of the socket tables, one for each namespace, with the label of a process in it; `None` as
    /// label for assay's own namespace.
    pub(super) fn list(&self) -> Vec<(String, Option<String>)> {
        let others = self.others.iter();
        let others = others.map(|(pid, label)| (format!("/proc/{pid}/net"), Some(label.clone())));
        std::iter::once(("/proc/net".to_owned(), None))
            .chain(others)
            .collect()
    }
}

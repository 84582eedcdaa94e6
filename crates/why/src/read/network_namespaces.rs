//! Network namespaces of containers and sandboxes, whose sockets are not in the tables of assay's own namespace.

use super::MachineReader;
use std::collections::BTreeMap;

/// Most namespaces that are read besides that of assay.
const MOST: usize = 8;

/// Most processes whose namespace is looked up.
const MOST_PROCESSES: usize = 2000;

/// Network namespaces of processes.
#[derive(Default)]
pub(super) struct NetworkNamespaces {
    /// Number and label of a process in each.
    others: Vec<(u32, String)>,
}

impl NetworkNamespaces {
    /// Finds the namespaces of some processes; the busiest come first.
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

    /// Folders of their tables of sockets, with the label of a process in each; none for assay's own.
    pub(super) fn list(&self) -> Vec<(String, Option<String>)> {
        let others = self.others.iter();
        let others = others.map(|(pid, label)| (format!("/proc/{pid}/net"), Some(label.clone())));
        std::iter::once(("/proc/net".to_owned(), None))
            .chain(others)
            .collect()
    }
}

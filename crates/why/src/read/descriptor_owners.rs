//! Finds the processes that hold a socket or a pipe for which others wait: the server behind a full accept queue, or
//! the reader of a full pipe.

use super::MachineReader;
use super::connection_pools::WaitingHolder;
use super::file_locks::list_awaited;
use super::processes::{ProcessTable, thread_seconds};
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of links of open files that one search reads.
const MOST_LINKS: usize = 20_000;
/// Minimum number of snapshots between two searches.
const PAUSE: u64 = 3;
/// CPU time in seconds after which a search ends.
const LONGEST: f64 = 0.5;
/// Fraction of one CPU that searches may use.
const SEARCH_SHARE: f64 = 0.003;

/// Processes that hold sockets and pipes for which others wait.
#[derive(Default)]
pub(super) struct DescriptorOwners {
    /// Holders by link target (`socket:[17]`): process id, and whether the file is open for reading.
    known: BTreeMap<String, Vec<(u32, bool)>>,
    next_search: u64,
}

impl DescriptorOwners {
    /// Adds the names of the holders to the waiting entities of a snapshot, and returns the holders' process ids.
    pub(super) fn complete(
        &mut self,
        reader: &mut MachineReader,
        look: &mut MachineSnapshot,
        table: &ProcessTable,
    ) -> Vec<u32> {
        let mut owners = name_lock_holders(reader, look);
        let mut wanted: BTreeSet<String> = BTreeSet::new();
        for entity in &look.entities {
            let keys = ["held_as", "blocked_on"];
            wanted.extend(
                keys.iter()
                    .filter_map(|key| entity.texts.get(*key).cloned()),
            );
        }
        wanted.retain(|link| link.starts_with("pipe:") || link.starts_with("socket:"));
        if wanted.is_empty() {
            return owners;
        }
        let is_unknown = wanted.iter().any(|link| !self.known.contains_key(link));
        let pids = match is_unknown && reader.looks >= self.next_search && !reader.is_late() {
            true => table.list_busiest_first(),
            false => Vec::new(),
        };
        // None are known before the first scan of all processes ends.
        if !pids.is_empty() {
            let begin = thread_seconds();
            self.known = search(reader, &wanted, &pids);
            let cost = thread_seconds() - begin;
            let pause = (cost / SEARCH_SHARE).min(60.0) as u64;
            self.next_search = reader.looks + pause.max(PAUSE);
        }
        for entity in &mut look.entities {
            let link = entity
                .texts
                .get("held_as")
                .or(entity.texts.get("blocked_on"));
            let holders = link.and_then(|link| self.known.get(link));
            let own = entity.texts.get("pid").and_then(|pid| pid.parse().ok());
            let mut others = holders.into_iter().flatten();
            let other = others.find(|(pid, reads)| Some(*pid) != own && *reads);
            if let Some((pid, _)) = other {
                owners.push(*pid);
                let label = reader.label_process(*pid);
                let key = match entity.kind {
                    EntityKind::Process => "peer",
                    _ => "owner",
                };
                entity.texts.insert(key.to_owned(), label);
                entity.texts.insert(format!("{key}_pid"), pid.to_string());
            }
        }
        owners
    }
}

/// Adds the names of the processes that hold file locks for which others wait. Returns the holders and the waiters. In
/// a pool that waits for connections, the waiters are as idle as the holder.
fn name_lock_holders(reader: &mut MachineReader, look: &mut MachineSnapshot) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut holders: BTreeMap<u32, Option<WaitingHolder>> = BTreeMap::new();
    for lock in list_awaited(reader) {
        pids.push(lock.waiter);
        pids.extend(lock.holder);
        let waiter = lock.waiter.to_string();
        let mut entities = look.entities.iter_mut();
        let is_waiter = |entity: &&mut Entity| entity.texts.get("pid") == Some(&waiter);
        let Some(entity) = entities.find(is_waiter) else {
            continue;
        };
        let file = format!("file {}", lock.file);
        entity.texts.insert("locked_file".to_owned(), file);
        if let Some(holder) = lock.holder {
            let waiting = holders
                .entry(holder)
                .or_insert_with(|| WaitingHolder::read(reader, holder));
            if let Some(waiting) = waiting
                && waiting.is_pool_of(reader, lock.waiter)
            {
                entity.numbers.remove("wait.file-lock");
            }
            let label = reader.label_process(holder);
            entity.texts.insert("peer".to_owned(), label);
            entity
                .texts
                .insert("peer_pid".to_owned(), holder.to_string());
        }
    }
    pids
}

/// Searches the open files of these processes for these links, the busiest processes first. A link that is not found
/// gets an empty list.
fn search(
    reader: &mut MachineReader,
    wanted: &BTreeSet<String>,
    pids: &[u32],
) -> BTreeMap<String, Vec<(u32, bool)>> {
    let mut found: BTreeMap<String, Vec<(u32, bool)>> = wanted
        .iter()
        .map(|link| (link.clone(), Vec::new()))
        .collect();
    let own = std::process::id();
    let begin = thread_seconds();
    let mut links = 0;
    for pid in pids.iter().copied().filter(|pid| *pid != own) {
        if thread_seconds() - begin > LONGEST || reader.is_late() {
            break;
        }
        for number in reader.names(&format!("/proc/{pid}/fd")) {
            links += 1;
            if links > MOST_LINKS {
                return found;
            }
            let Some(link) = reader.link(&format!("/proc/{pid}/fd/{number}")) else {
                continue;
            };
            if let Some(holders) = found.get_mut(&link) {
                let info = reader.text_once(&format!("/proc/{pid}/fdinfo/{number}"));
                holders.push((pid, info.is_none_or(|info| is_open_for_reading(&info))));
            }
        }
    }
    found
}

/// Returns whether the file is open for reading, from the flags in `/proc/PID/fdinfo/N`.
fn is_open_for_reading(info: &str) -> bool {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    flags.is_none_or(|flags| flags & 0o3 != 1)
}

#[cfg(test)]
mod tests {
    use super::is_open_for_reading;

    #[test]
    fn the_writing_end_of_a_pipe_reads_nothing() {
        assert!(!is_open_for_reading(
            "pos:\t0\nflags:\t0100001\nmnt_id:\t15\n"
        ));
        assert!(is_open_for_reading("pos:\t0\nflags:\t0100000\n"));
        assert!(is_open_for_reading("flags:\t02\n") && is_open_for_reading(""));
    }
}

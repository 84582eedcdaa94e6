//! File locks that others poll for: they try to take the lock, sleep for a moment and try again, as SQLite and apt do.
//! The kernel shows no waiter then; the evidence is a lock that is held for several snapshots, and another process that
//! has the file open and sleeps on a timer.

use super::MachineReader;
use super::file_locks::{HeldLock, list_held};
use super::processes::{ProcessTable, thread_seconds};
use crate::machine_snapshot::MachineSnapshot;
use std::collections::BTreeMap;
use std::path::Path;

/// Number of snapshots for which a lock is held before the users of its file are searched.
const LASTING: u32 = 3;
/// Most locks that are followed.
const MOST_LOCKS: usize = 32;
/// Most processes that are taken for users of a file.
const MOST_USERS: usize = 8;
/// CPU time in seconds after which a search ends.
const LONGEST: f64 = 0.2;

/// A lock that is held, and what is known about it.
#[derive(Default)]
struct LastingLock {
    looks: u32,
    /// Path of the file, and the other processes that have it open; `None` before the search.
    users: Option<(String, Vec<u32>)>,
}

/// Locks that are held for long.
#[derive(Default)]
pub(super) struct PolledLocks {
    held: BTreeMap<HeldLock, LastingLock>,
}

impl PolledLocks {
    /// Adds the lock to the processes that have its file open. Returns these processes and the holders.
    pub(super) fn complete(
        &mut self,
        reader: &mut MachineReader,
        look: &mut MachineSnapshot,
        table: &ProcessTable,
    ) -> Vec<u32> {
        let now = list_held(reader);
        self.held.retain(|lock, _| now.contains(lock));
        let mut wanted = Vec::new();
        for lock in now.into_iter().take(MOST_LOCKS) {
            let lasting = self.held.entry(lock.clone()).or_default();
            lasting.looks += 1;
            if lasting.looks >= LASTING && lasting.users.is_none() {
                let users = find_users(reader, &lock, &table.list_busiest_first());
                lasting.users = Some(users.unwrap_or_default());
            }
            let Some((path, users)) = lasting.users.as_ref().filter(|(_, all)| !all.is_empty())
            else {
                continue;
            };
            let holder = reader.label_process(lock.holder);
            wanted.extend(users.iter().copied().chain([lock.holder]));
            for entity in &mut look.entities {
                let pid = entity.texts.get("pid").and_then(|pid| pid.parse().ok());
                if !pid.is_some_and(|pid: u32| users.contains(&pid)) {
                    continue;
                }
                entity.set("polls_lock", 1.0);
                let texts = [
                    ("polled_file", path.clone()),
                    ("lock_holder", holder.clone()),
                    ("lock_holder_pid", lock.holder.to_string()),
                ];
                let texts = texts.map(|(key, text)| (key.to_owned(), text));
                entity.texts.extend(texts);
            }
        }
        wanted
    }
}

/// Finds the path of a locked file, and the processes other than the holder that have it open.
fn find_users(
    reader: &mut MachineReader,
    lock: &HeldLock,
    pids: &[u32],
) -> Option<(String, Vec<u32>)> {
    let begin = thread_seconds();
    let folder = format!("/proc/{}/fd", lock.holder);
    let numbers = reader.names(&folder);
    let path = numbers.iter().find_map(|number| {
        let link = format!("{folder}/{number}");
        (reader.inode(Path::new(&link)) == Some(lock.inode)).then(|| reader.link(&link))?
    })?;
    let mut users = Vec::new();
    for pid in pids.iter().copied().filter(|pid| *pid != lock.holder) {
        let is_over = thread_seconds() - begin > LONGEST || reader.is_late();
        if users.len() >= MOST_USERS || is_over {
            break;
        }
        let folder = format!("/proc/{pid}/fd");
        let numbers = reader.names(&folder);
        let mut links = numbers.iter();
        if links.any(|number| reader.link(&format!("{folder}/{number}")).as_ref() == Some(&path)) {
            users.push(pid);
        }
    }
    Some((path, users))
}

//! File locks for which processes wait, from `/proc/locks`.

use super::MachineReader;
use std::collections::BTreeMap;

/// A file lock for which a process waits.
pub(super) struct AwaitedLock {
    pub(super) waiter: u32,
    /// Process that holds the lock; `None` if the kernel does not report it.
    pub(super) holder: Option<u32>,
    /// `MAJOR:MINOR:INODE` of the file.
    pub(super) file: String,
}

/// A lock that lets one process write: of a whole file, or the one by which SQLite reserves a database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HeldLock {
    pub(super) holder: u32,
    /// Inode of the file.
    pub(super) inode: u64,
    /// First byte of the lock.
    start: u64,
}

/// First bytes of the locks with which SQLite lets one writer in: RESERVED in a database, and WAL_WRITE_LOCK in the
/// shared memory of a database in WAL mode (unixShmLock in os_unix.c).
const OF_SQLITE: [u64; 2] = [0x4000_0001, 120];

/// Lists the locks that let one process write and for which others may poll.
pub(super) fn list_held(reader: &mut MachineReader) -> Vec<HeldLock> {
    let text = reader.text("/proc/locks").unwrap_or_default();
    text.lines().filter_map(parse_held).collect()
}

/// Parses a line of a holder of a lock of POSIX for writing.
fn parse_held(line: &str) -> Option<HeldLock> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "POSIX", _, "WRITE", pid, file, start, end] = words[..] else {
        return None;
    };
    let start: u64 = start.parse().ok()?;
    let is_of_sqlite = OF_SQLITE.contains(&start) && end != "EOF";
    (is_of_sqlite || (start == 0 && end == "EOF")).then_some(HeldLock {
        holder: pid.parse().ok()?,
        inode: file.rsplit(':').next()?.parse().ok()?,
        start,
    })
}

/// Lists the file locks for which processes wait.
pub(super) fn list_awaited(reader: &mut MachineReader) -> Vec<AwaitedLock> {
    let text = reader.text("/proc/locks").unwrap_or_default();
    parse_locks(&text)
}

/// Parses lines `N: FLOCK ADVISORY WRITE PID FILE START END` of holders, and lines `N: -> FLOCK …` of waiters. Only the
/// line of the holder names the file of a lease.
fn parse_locks(text: &str) -> Vec<AwaitedLock> {
    let mut holders: BTreeMap<&str, (u32, &str)> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [number, "->", _, _, _, pid, file, ..] => {
                let holder = holders.get(number);
                let file = match (file.starts_with("<none>"), holder) {
                    (true, Some((_, file))) => file,
                    _ => file,
                };
                if let Ok(waiter) = pid.parse() {
                    found.push(AwaitedLock {
                        waiter,
                        holder: holder.map(|(pid, _)| *pid),
                        file: file.to_owned(),
                    });
                }
            }
            [number, _, _, _, pid, file, ..] => {
                if let Ok(pid) = pid.parse() {
                    holders.insert(number, (pid, file));
                }
            }
            _ => {}
        }
        if found.len() >= 64 {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{parse_held, parse_locks};

    #[test]
    fn a_waiter_stands_below_its_holder() {
        let text = "1: FLOCK  ADVISORY  WRITE 70 fe:00:12 0 EOF\n1: -> FLOCK  ADVISORY  WRITE 71 fe:00:12 0 EOF\n\
                    2: OFDLCK ADVISORY  READ -1 00:1d:3 0 EOF\n2: -> POSIX ADVISORY WRITE 72 00:1d:3 0 9\ndamaged\n";
        let found = parse_locks(text);
        let all: Vec<_> = found
            .iter()
            .map(|lock| (lock.waiter, lock.holder))
            .collect();
        assert_eq!(all, [(71, Some(70)), (72, None)]);
        assert_eq!(found[0].file, "fe:00:12");
        let lease = parse_locks(
            "1: LEASE  BREAKING  READ 70 fe:00:12 0 EOF\n1: -> LEASE  BREAKER   READ 71 <none>:0 0 EOF\n",
        );
        assert_eq!(lease[0].holder, Some(70));
        assert_eq!(lease[0].file, "fe:00:12");
    }

    #[test]
    fn locks_of_writers_are_held() {
        // SQLite 3.40 after BEGIN IMMEDIATE, a reader, LMDB, dpkg, and a waiter.
        let held = |line: &str| parse_held(line).map(|lock| (lock.holder, lock.inode));
        assert_eq!(
            held("1: POSIX  ADVISORY  WRITE 70 fe:00:12 1073741825 1073741825"),
            Some((70, 12))
        );
        assert_eq!(
            held("4: POSIX  ADVISORY  WRITE 71 fe:00:13 0 EOF"),
            Some((71, 13))
        );
        for line in [
            "2: POSIX  ADVISORY  READ  70 fe:00:12 1073741826 1073742335",
            "3: POSIX  ADVISORY  WRITE 70 fe:00:14 70 70",
            "4: -> POSIX  ADVISORY  WRITE 72 fe:00:13 0 EOF",
            "5: FLOCK  ADVISORY  WRITE 72 fe:00:13 0 EOF",
            "damaged",
        ] {
            assert_eq!(held(line), None, "{line}");
        }
    }
}

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

/// Lists the file locks for which processes wait.
pub(super) fn list_awaited(reader: &mut MachineReader) -> Vec<AwaitedLock> {
    let text = reader.text("/proc/locks").unwrap_or_default();
    parse_locks(&text)
}

/// Parses lines `N: FLOCK ADVISORY WRITE PID FILE START END` of holders, and lines `N: -> FLOCK …` of waiters.
fn parse_locks(text: &str) -> Vec<AwaitedLock> {
    let mut holders: BTreeMap<&str, u32> = BTreeMap::new();
    let mut found = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            [number, "->", _, _, _, pid, file, ..] => {
                if let Ok(waiter) = pid.parse() {
                    found.push(AwaitedLock {
                        waiter,
                        holder: holders.get(number).copied(),
                        file: file.to_owned(),
                    });
                }
            }
            [number, _, _, _, pid, ..] => {
                if let Ok(pid) = pid.parse() {
                    holders.insert(number, pid);
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
    use super::parse_locks;

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
    }
}

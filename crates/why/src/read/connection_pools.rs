//! Pools of processes that share a listening socket (Postfix, libfcgi, Amavis). One process holds a lock and waits for
//! the next connection; the others wait for the lock. All of them are idle until a connection arrives.

use super::MachineReader;
use super::processes::read_wchan;
use super::sleep_class::{is_accept, is_epoll, parse_descriptor, waits_for_events};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of open files of a process that are examined.
const MOST_FILES: usize = 256;

/// A process that holds a lock and waits for the next connection or for events.
pub(super) struct WaitingHolder {
    /// Sockets for which the process waits, as link targets (`socket:[17]`).
    awaited: BTreeSet<String>,
    /// Other sockets of the process that may be client connections, as link targets.
    connections: BTreeSet<String>,
}

impl WaitingHolder {
    /// Reads for which sockets a process waits; `None` if it waits neither for a connection nor for events.
    pub(super) fn read(reader: &mut MachineReader, pid: u32) -> Option<Self> {
        let wchan = read_wchan(reader, &format!("/proc/{pid}"));
        if is_accept(&wchan) {
            let call = reader.text(&format!("/proc/{pid}/syscall"));
            let number = parse_descriptor(&call.unwrap_or_default())?;
            let link = reader.link(&format!("/proc/{pid}/fd/{number}"))?;
            return Some(Self {
                awaited: BTreeSet::from([link]),
                connections: BTreeSet::new(),
            });
        }
        if !waits_for_events(&wchan) {
            return None;
        }
        let files = list_files(reader, pid);
        let sockets = files.iter().filter(|(_, link)| link.starts_with("socket:"));
        if is_epoll(&wchan) {
            let watched = list_watched(reader, pid, &files);
            let awaited = sockets.filter(|(number, _)| watched.contains(number));
            return Some(Self {
                awaited: awaited.map(|(_, link)| link.clone()).collect(),
                connections: BTreeSet::new(),
            });
        }
        // The arguments of poll and select are not shown: a process that serves a client has a connection.
        let connections = sockets.clone();
        let connections = connections.filter(|(number, _)| !is_datagram(reader, pid, number));
        Some(Self {
            connections: connections.map(|(_, link)| link.clone()).collect(),
            awaited: sockets.map(|(_, link)| link.clone()).collect(),
        })
    }

    /// Returns whether the holder and `waiter` are idle members of one pool: they share a socket for which the holder
    /// waits, and the holder serves no client.
    pub(super) fn is_pool_of(&self, reader: &mut MachineReader, waiter: u32) -> bool {
        let files = list_files(reader, waiter);
        let shared: BTreeSet<String> = files.into_iter().map(|(_, link)| link).collect();
        !self.awaited.is_disjoint(&shared) && self.connections.is_subset(&shared)
    }
}

/// Lists the open files of a process: file descriptor and link target.
fn list_files(reader: &mut MachineReader, pid: u32) -> Vec<(String, String)> {
    let names = reader.names(&format!("/proc/{pid}/fd"));
    let numbers = names.into_iter().take(MOST_FILES);
    numbers
        .filter_map(|number| {
            let link = reader.link(&format!("/proc/{pid}/fd/{number}"))?;
            Some((number, link))
        })
        .collect()
}

/// Lists the file descriptors that a process watches with epoll.
fn list_watched(
    reader: &mut MachineReader,
    pid: u32,
    files: &[(String, String)],
) -> BTreeSet<String> {
    let mut watched = BTreeSet::new();
    for (number, link) in files {
        if link == "anon_inode:[eventpoll]" {
            let info = reader.text(&format!("/proc/{pid}/fdinfo/{number}"));
            watched.extend(parse_watched(&info.unwrap_or_default()).map(str::to_owned));
        }
    }
    watched
}

/// Parses the lines `tfd: 6 events: 19 data: …` of an epoll descriptor, one for each watched file.
fn parse_watched(info: &str) -> impl Iterator<Item = &str> {
    info.lines().filter_map(|line| {
        let rest = line.strip_prefix("tfd:")?;
        rest.split_ascii_whitespace().next()
    })
}

/// Returns whether a socket is a UNIX datagram socket, such as that of syslog. Before Linux 5.15, returns true for
/// every UNIX socket.
fn is_datagram(reader: &MachineReader, pid: u32, number: &str) -> bool {
    let path = format!("/proc/{pid}/fd/{number}");
    if !reader.begin(Path::new(&path)) {
        return false;
    }
    let mut name = [0; 32];
    let length = rustix::fs::getxattr(&path, "system.sockprotoname", &mut name[..]);
    reader.end();
    length.is_ok_and(|length| name[..length].starts_with(b"UNIX\0"))
}

#[cfg(test)]
mod tests {
    use super::parse_watched;

    #[test]
    fn watched_files_of_an_epoll_descriptor_are_listed() {
        let info = "pos:\t0\nflags:\t02\nmnt_id:\t16\nino:\t9\ntfd:        6 events:       19 data:  0  pos:0 ino:1 sdev:8\n\
                    tfd:       11 events: 1\ntfd:\ndamaged\n";
        let watched: Vec<&str> = parse_watched(info).collect();
        assert_eq!(watched, ["6", "11"]);
    }
}

//! Pools of processes that share a listening socket (Postfix, PHP-FPM, Apache prefork): a lock lets one of them
//! wait for the next connection, and the others wait for the lock. While no connection comes, all of them are idle.

use super::MachineReader;
use super::processes::read_wchan;
use super::sleep_class::{describe_sleep, is_accept};
use std::collections::BTreeSet;

/// Most open files of a process that are compared with the listening sockets.
const MOST_FILES: usize = 256;

/// Sockets by inode, as `/proc/PID/fd` names them (`socket:[17]`).
pub(super) struct SocketStates {
    listening: BTreeSet<String>,
    connected: BTreeSet<String>,
}

impl SocketStates {
    /// Reads the states of TCP and local sockets.
    pub(super) fn read(reader: &mut MachineReader) -> Self {
        let mut states = Self {
            listening: BTreeSet::new(),
            connected: BTreeSet::new(),
        };
        for path in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let text = reader.text(path).unwrap_or_default();
            for line in text.lines().skip(1) {
                let mut words = line.split_ascii_whitespace();
                let (state, inode) = (words.nth(3), words.nth(5));
                match (state, inode) {
                    (Some("0A"), Some(inode)) => states.listening.insert(link_of(inode)),
                    (Some("01"), Some(inode)) => states.connected.insert(link_of(inode)),
                    _ => false,
                };
            }
        }
        // `Num RefCount Protocol Flags Type St Inode Path`; the flag is __SO_ACCEPTCON.
        let text = reader.text("/proc/net/unix").unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let [_, _, _, "00010000", _, _, inode, ..] = words[..] {
                states.listening.insert(link_of(inode));
            }
        }
        states
    }

    /// Whether a process waits for the next connection and does nothing else.
    pub(super) fn is_idle(&self, reader: &mut MachineReader, pid: u32) -> bool {
        let wchan = read_wchan(reader, &format!("/proc/{pid}"));
        if is_accept(&wchan) {
            return true;
        }
        if describe_sleep(&wchan) != describe_sleep("ep_poll") {
            return false;
        }
        let mut links = Vec::new();
        let mut epolls = Vec::new();
        for number in reader
            .names(&format!("/proc/{pid}/fd"))
            .iter()
            .take(MOST_FILES)
        {
            match reader.link(&format!("/proc/{pid}/fd/{number}")) {
                Some(link) if link == "anon_inode:[eventpoll]" => epolls.push(number.clone()),
                Some(link) => links.push((number.clone(), link)),
                None => {}
            }
        }
        if wchan.starts_with("ep_poll") {
            // `tfd: 6 events: 19 data: …` for each watched file.
            return epolls.iter().any(|number| {
                let info = reader.text(&format!("/proc/{pid}/fdinfo/{number}"));
                let info = info.unwrap_or_default();
                let watched = info.lines().filter_map(|line| {
                    let number = line.strip_prefix("tfd:")?;
                    number.split_ascii_whitespace().next()
                });
                let mut watched = watched.filter_map(|number| {
                    let known = links.iter().find(|(known, _)| known == number)?;
                    Some(&known.1)
                });
                watched.any(|link| self.listening.contains(link))
            });
        }
        // The arguments of poll and select are not shown: a worker that serves somebody has a connection.
        let has = |sockets: &BTreeSet<String>| links.iter().any(|(_, link)| sockets.contains(link));
        has(&self.listening) && !has(&self.connected)
    }
}

fn link_of(inode: &str) -> String {
    format!("socket:[{inode}]")
}

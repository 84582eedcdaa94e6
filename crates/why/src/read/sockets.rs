//! Sockets: their number, accept queues that are not empty, unanswered DNS queries, and connections that make no
//! progress.

use super::processes::thread_seconds;
use super::{MachineReader, local_listeners};
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use assay_host::REPEATED;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;

/// Maximum bytes of the kernel's socket tables that one snapshot reads; a socket takes about 150 bytes. Listening
/// sockets come first in each table, so the limit cuts off only connections.
const MOST_BYTES: usize = 1 << 20;
/// CPU seconds for reading the tables from which they are no longer read at every snapshot.
const EXPENSIVE: f64 = 0.002;
/// Socket tables of a network namespace, each with its name in the `sockstat` files.
pub(super) const TABLES: [(&str, &str); 4] = [
    ("udp", "UDP"),
    ("udp6", "UDP6"),
    ("tcp", "TCP"),
    ("tcp6", "TCP6"),
];

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    let mut sockets = 0.0;
    for path in ["/proc/net/sockstat", "/proc/net/sockstat6"] {
        let Some(text) = reader.text(path) else {
            continue;
        };
        for line in text.lines() {
            let Some((name, rest)) = line.split_once(": ") else {
                continue;
            };
            let words: Vec<&str> = rest.split_ascii_whitespace().collect();
            for pair in words.chunks_exact(2) {
                let value: f64 = pair[1].parse().unwrap_or(0.0);
                match (name, pair[0]) {
                    ("TCP" | "TCP6", "inuse") => sockets += value,
                    ("TCP", "tw") => {
                        sockets += value;
                        look.set("tcp.time_wait", value);
                    }
                    ("TCP", "orphan") => look.set("tcp.orphans", value),
                    ("TCP", "mem") => look.set("tcp.memory_pages", value),
                    _ => {}
                }
            }
        }
    }
    look.set("tcp.sockets", sockets);
    if reader.is_thorough()
        && let Some(text) = reader.text("/proc/sys/net/ipv4/ip_local_port_range")
    {
        let ends: Vec<f64> = text
            .split_ascii_whitespace()
            .filter_map(|word| word.parse().ok())
            .collect();
        if let [first, last] = ends[..] {
            look.set("tcp.ports", last - first + 1.0);
        }
    }
    if reader.is_second_look() {
        local_listeners::read(reader, look);
    }
    let (seen, uses) = match reader.last_sockets.take() {
        Some(seen) => seen,
        None => {
            let begin = thread_seconds();
            let seen = scan_tables(reader, sockets);
            // The kernel walks its whole table of connections each time, also for a few.
            let is_expensive = thread_seconds() - begin > EXPENSIVE;
            (
                seen.clone(),
                u8::from(seen.is_quiet()) + u8::from(is_expensive),
            )
        }
    };
    if uses > 0 {
        reader.last_sockets = Some((seen.clone(), uses - 1));
    }
    look.set("tcp.connecting", seen.connecting);
    look.set("dns.open", seen.questions);
    look.set("tcp.zero_window", seen.zero_window);
    let most = seen.remotes.iter().max_by_key(|(_, count)| **count);
    let read: u32 = seen.remotes.values().sum();
    // Only a part of very many connections is read.
    let to_one = most.map_or(0.0, |(_, count)| {
        f64::from(*count) * (sockets / f64::from(read.max(1))).max(1.0)
    });
    look.set("tcp.to_one", to_one);
    if let Some(peer) = most.and_then(|(remote, _)| format_peer(remote)) {
        look.texts.insert("tcp.to_one_peer".to_owned(), peer);
    }
    for ((port, network), (queue, inode)) in seen.listeners {
        let (id, name) = match network {
            None => (port.to_string(), format!("port {port}")),
            Some(owner) => {
                reader.networks.keep(&owner);
                (
                    format!("{port} of {owner}"),
                    format!("port {port} in the network namespace of {owner}"),
                )
            }
        };
        let mut entity = Entity::new(EntityKind::Listener, id, name);
        entity.set("queue", queue);
        if queue >= 1.0 {
            let link = format!("socket:[{inode}]");
            entity.texts.insert("held_as".to_owned(), link);
        }
        look.entities.push(entity);
    }
    look.entities.extend(seen.stuck);
    if let Some((peer, _)) = seen.peers.iter().max_by_key(|(_, count)| **count) {
        look.texts.insert("connecting_to".to_owned(), peer.clone());
    }
}

/// Reads the socket tables of all network namespaces. `sockets` is the number of sockets in assay's own namespace.
fn scan_tables(reader: &mut MachineReader, sockets: f64) -> SeenSockets {
    let mut seen = SeenSockets::default();
    let mut budget = MOST_BYTES;
    for (net, owner) in reader.list_networks() {
        let mut counts = String::new();
        for file in ["sockstat", "sockstat6"] {
            counts.push_str(&reader.text(&format!("{net}/{file}")).unwrap_or_default());
        }
        seen.network = owner;
        for (table, count) in TABLES {
            if has_sockets(&counts, count) {
                scan_table(reader, &format!("{net}/{table}"), &mut seen, &mut budget);
            }
        }
    }
    if budget == 0 {
        reader.missing.insert(format!(
            "connections beyond the first {} MB of the kernel's tables ({sockets:.0} sockets)",
            MOST_BYTES >> 20
        ));
    }
    seen
}

/// Returns whether a namespace has sockets of this kind, according to its `sockstat` files.
pub(super) fn has_sockets(text: &str, kind: &str) -> bool {
    let start = format!("{kind}: inuse 0");
    !text
        .lines()
        .any(|line| line == start || line.starts_with(&format!("{start} ")))
}

/// Adds the sockets of one table, until the remaining bytes of [`MOST_BYTES`] are used up.
fn scan_table(reader: &mut MachineReader, path: &str, seen: &mut SeenSockets, budget: &mut usize) {
    let is_udp = path.contains("/udp");
    let mut lines = WholeLines::default();
    let (mut is_head, mut repeated) = (true, 0);
    reader.scan(Path::new(path), &mut |piece| {
        let new = &piece[repeated..];
        repeated = piece.len().min(REPEATED);
        let new = &new[..new.len().min(*budget)];
        *budget -= new.len();
        lines.add(new, &mut |line| {
            if !std::mem::take(&mut is_head) {
                seen.add(line, is_udp);
            }
        });
        match *budget {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
}

/// Assembles lines from pieces of a file.
#[derive(Default)]
struct WholeLines {
    rest: Vec<u8>,
}

impl WholeLines {
    /// Adds a piece of the file and calls `see` for each line that it completes.
    fn add(&mut self, piece: &[u8], see: &mut dyn FnMut(&str)) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.rest.extend_from_slice(part);
            if part.ends_with(b"\n") {
                see(&String::from_utf8_lossy(&self.rest));
                self.rest.clear();
            }
        }
    }
}

/// Waiting that the socket tables show.
#[derive(Clone, Default)]
pub(super) struct SeenSockets {
    /// Number of connections in state SYN-SENT, which have not been answered.
    connecting: f64,
    /// Number of UDP sockets connected to a DNS server: queries without an answer.
    questions: f64,
    /// Accept queues that are not empty, by port and namespace: length, and the inode of one socket.
    listeners: BTreeMap<(u16, Option<String>), (f64, String)>,
    /// Label of a process in the network namespace that is being read; `None` for assay's own namespace.
    network: Option<String>,
    /// Number of connections whose peer accepts no more data (zero window).
    zero_window: f64,
    /// Connections that make no progress.
    stuck: Vec<Entity>,
    peers: BTreeMap<String, u32>,
    /// Number of connections of assay's own namespace to each remote end, as the kernel writes it.
    remotes: BTreeMap<String, u32>,
}

/// Maximum number of connections without progress in a snapshot.
const MOST_STUCK: usize = 48;
/// Code of the zero-window probe timer in `/proc/net/tcp`.
const PROBE_TIMER: &str = "04";

impl SeenSockets {
    /// Adds a line `sl local remote state tx:rx …` of `/proc/net/tcp` or `udp`.
    fn add(&mut self, line: &str, is_udp: bool) {
        let words: Vec<&str> = line.split_ascii_whitespace().take(10).collect();
        let [_, local, remote, state, queues, timer, tries, _, _, inode] = words[..] else {
            return;
        };
        let port = |address: &str| {
            let (_, port) = address.rsplit_once(':')?;
            u16::from_str_radix(port, 16).ok()
        };
        if !is_udp && state != "0A" && self.network.is_none() {
            *self.remotes.entry(remote.to_owned()).or_default() += 1;
        }
        match (is_udp, state) {
            (true, "01") if port(remote) == Some(53) => self.questions += 1.0,
            (false, "02") => {
                self.connecting += 1.0;
                if let Some(peer) = format_peer(remote) {
                    *self.peers.entry(peer).or_default() += 1;
                }
            }
            (false, "01" | "08") => {
                let queues = queues.split_once(':');
                let bytes = |text: &str| u32::from_str_radix(text, 16).map_or(0.0, f64::from);
                let (unsent, unread) = queues.map_or((0.0, 0.0), |(unsent, unread)| {
                    (bytes(unsent), bytes(unread))
                });
                let is_closed = timer.starts_with(PROBE_TIMER) && unsent > 0.0;
                let tries = u32::from_str_radix(tries, 16).map_or(0.0, f64::from);
                // A closed connection whose end is not read counts one byte.
                // A client that keeps a connection open leaves tickets of TLS and the like unread.
                let unread = if state == "08" && unread < 4096.0 {
                    0.0
                } else {
                    unread
                };
                if is_closed || unread > 1.0 || tries >= 2.0 {
                    self.add_stuck(inode, [local, remote], [unsent, unread, tries], is_closed);
                }
            }
            (false, "0A") => {
                let waiting = queues
                    .split_once(':')
                    .map(|(_, rx)| u32::from_str_radix(rx, 16));
                if let (Some(Ok(waiting)), Some(port)) = (waiting, port(local))
                    && waiting > 0
                    && self.listeners.len() < 64
                {
                    let key = (port, self.network.clone());
                    let entry = self.listeners.entry(key).or_default();
                    entry.0 += f64::from(waiting);
                    entry.1 = inode.to_owned();
                }
            }
            _ => {}
        }
    }
}

impl SeenSockets {
    /// Returns whether nothing waits.
    fn is_quiet(&self) -> bool {
        let counts = [self.connecting, self.questions, self.zero_window];
        counts.iter().all(|count| *count == 0.0)
            && self.listeners.is_empty()
            && self.stuck.is_empty()
    }

    /// Adds a connection that makes no progress. `figures` are unsent bytes, unread bytes, and retransmissions.
    fn add_stuck(&mut self, inode: &str, ends: [&str; 2], figures: [f64; 3], is_closed: bool) {
        self.zero_window += f64::from(u8::from(is_closed));
        let [Some(local), Some(remote)] = ends.map(format_peer) else {
            return;
        };
        if self.stuck.len() >= MOST_STUCK {
            return;
        }
        let name = format!("{local} to {remote}");
        let mut entity = Entity::new(EntityKind::Connection, inode, name);
        let [unsent, unread, tries] = figures;
        entity.set("unsent", unsent);
        entity.set("unread", unread);
        entity.set("tries", tries);
        // What is set in some looks only counts as zero in the others.
        entity.set("wait.peer-closed", f64::from(u8::from(is_closed)));
        entity.set("wait.unread", f64::from(u8::from(unread > 1.0)));
        entity.set(
            "wait.unanswered",
            f64::from(u8::from(tries >= 2.0 && !is_closed)),
        );
        if let Some((address, _)) = remote.rsplit_once(':') {
            let address = address.to_owned();
            entity.texts.insert("remote_address".to_owned(), address);
        }
        entity.texts.insert("local".to_owned(), local);
        entity.texts.insert("remote".to_owned(), remote);
        entity
            .texts
            .insert("held_as".to_owned(), format!("socket:[{inode}]"));
        self.stuck.push(entity);
    }
}

/// Formats `0100007F:0016` as `127.0.0.1:22`; returns only the port of an IPv6 address.
fn format_peer(address: &str) -> Option<String> {
    let (ip, port) = address.rsplit_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    match ip.len() {
        8 => {
            let [a, b, c, d] = u32::from_str_radix(ip, 16).ok()?.to_le_bytes();
            Some(format!("{a}.{b}.{c}.{d}:{port}"))
        }
        _ => Some(format!("port {port} over IPv6")),
    }
}

#[cfg(test)]
mod tests {
    use super::{WholeLines, has_sockets};

    #[test]
    fn pieces_are_joined_to_lines() {
        let mut lines = WholeLines::default();
        let mut seen = Vec::new();
        for piece in ["a b\nc", "", " d\n", "e"] {
            lines.add(piece.as_bytes(), &mut |line| seen.push(line.to_owned()));
        }
        assert_eq!(seen, ["a b\n", "c d\n"]);
    }

    #[test]
    fn a_table_without_sockets_is_known() {
        let text =
            "sockets: used 169\nTCP: inuse 130 orphan 0 tw 9\nUDP: inuse 0 mem 0\nTCP6: inuse 0\n";
        assert!(
            has_sockets(text, "TCP") && !has_sockets(text, "UDP") && !has_sockets(text, "TCP6")
        );
        assert!(has_sockets(text, "UDP6") && has_sockets("", "TCP"));
    }
}

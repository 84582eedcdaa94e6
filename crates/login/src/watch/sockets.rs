//! Finds the peer that a process communicates with, by its sockets.

use crate::activity::Activity;
use assay_host::{Host, Limits, LiveHost};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Ports of name servers: DNS and DNS over TLS.
const NAME_SERVERS: [u16; 2] = [53, 853];
/// Parts of the paths of log sockets. They are ignored, because no process waits for an answer from them.
const LOGS: [&str; 3] = ["/dev/log", "/systemd/journal/", "/dovecot/log"];
/// Parts of the paths of sockets of other services that mail and web servers use. If the server consists of several
/// processes, any other Unix socket counts as the server's own.
const SERVICES: [&str; 13] = [
    "mysql",
    "PGSQL",
    "nscd",
    "/sss/",
    "nslcd",
    "winbind",
    "dbus",
    "io.systemd",
    "saslauthd",
    "ldapi",
    "redis",
    "milter",
    "rspamd",
];
/// Minimum interval between two lookups of Unix socket paths.
const PATHS_EVERY: Duration = Duration::from_millis(200);

/// The connection of the login itself, which must not be reported as a request to another service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Port of a server on this machine that starts a process for each connection.
    Local(u16),
    /// Port of a server on this machine that consists of several processes, which communicate with each other.
    Many(u16),
    /// Port of a server on another machine.
    Remote(u16),
}

/// An Internet socket.
#[derive(Debug, PartialEq, Eq)]
struct Inet {
    local: u16,
    remote: (IpAddr, u16),
    inode: u64,
}

/// Cache of socket peers.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// Path of the other end of each Unix socket, by the inode of the near end.
    paths: BTreeMap<u64, Option<String>>,
    read: Option<Instant>,
}

impl Sockets {
    /// Returns the peer to which a process sent a request.
    pub fn asked(&mut self, pid: u32, own: Own) -> Option<Activity> {
        let inodes = socket_inodes(pid);
        if inodes.is_empty() {
            return None;
        }
        let mut peer = None;
        for socket in connected_sockets(pid)
            .into_iter()
            .filter(|one| inodes.contains(&one.inode))
        {
            let (address, port) = socket.remote;
            let is_own = match own {
                Own::Local(port) | Own::Many(port) => socket.local == port,
                Own::Remote(own) => port == own,
            };
            if is_own {
                continue;
            }
            if NAME_SERVERS.contains(&port) {
                return Some(Activity::NameServer(address.to_string()));
            }
            peer = Some(Activity::Peer(
                std::net::SocketAddr::from((address, port)).to_string(),
            ));
        }
        self.path(&inodes, own).map(Activity::Socket).or(peer)
    }

    fn path(&mut self, inodes: &BTreeSet<u64>, own: Own) -> Option<String> {
        let has = |path: &str, words: &[&str]| words.iter().any(|word| path.contains(word));
        let counts = |path: &String| {
            !has(path, &LOGS) && (!matches!(own, Own::Many(_)) || has(path, &SERVICES))
        };
        let named = |paths: &BTreeMap<u64, Option<String>>| {
            let mut all = inodes.iter().filter_map(|inode| paths.get(inode)?.clone());
            all.find(counts)
        };
        if let Some(path) = named(&self.paths) {
            return Some(path);
        }
        // A socket connects right after its creation, so each inode is looked up once.
        let is_new = inodes.iter().any(|inode| !self.paths.contains_key(inode));
        if !is_new || self.read.is_some_and(|read| read.elapsed() < PATHS_EVERY) {
            return None;
        }
        self.read = Some(Instant::now());
        let argv = ["ss", "-xnH"].map(OsStr::new);
        let output = LiveHost.run(&argv, Limits::default()).ok()?;
        self.paths.extend(inodes.iter().map(|inode| (*inode, None)));
        self.paths.extend(far_ends(&output.text()));
        named(&self.paths)
    }
}

/// Parses `ss -xnH`. Returns the path of the other end of each socket, by the inode of the near end.
fn far_ends(text: &str) -> BTreeMap<u64, Option<String>> {
    // Columns: netid, state, two queues, own path and inode, the peer's path and inode.
    let rows: Vec<(String, u64, u64)> = text
        .lines()
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [.., path, own, _, peer] = words.as_slice() else {
                return None;
            };
            Some(((*path).to_owned(), own.parse().ok()?, peer.parse().ok()?))
        })
        .collect();
    let paths: BTreeMap<u64, &String> = rows.iter().map(|(path, own, _)| (*own, path)).collect();
    rows.iter()
        .map(|(_, own, peer)| {
            let path = paths.get(peer).filter(|path| path.starts_with(['/', '@']));
            (*own, path.map(|path| (*path).clone()))
        })
        .collect()
}

/// Returns the inodes of the sockets that a process holds.
fn socket_inodes(pid: u32) -> BTreeSet<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    links
        .filter_map(|link| {
            link.to_str()?
                .strip_prefix("socket:[")?
                .strip_suffix(']')?
                .parse()
                .ok()
        })
        .collect()
}

/// Returns the connected network sockets in a process's namespace.
fn connected_sockets(pid: u32) -> Vec<Inet> {
    let tables = ["udp", "udp6", "tcp", "tcp6"];
    let texts = tables
        .map(|table| fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default());
    texts
        .iter()
        .flat_map(|text| text.lines().skip(1))
        .filter_map(parse)
        .collect()
}

fn parse(line: &str) -> Option<Inet> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, local) = parse_address(words.get(1)?)?;
    let remote = parse_address(words.get(2)?)?;
    let inode = words.get(9)?.parse().ok()?;
    (remote.1 != 0).then_some(Inet {
        local,
        remote,
        inode,
    })
}

/// Parses an address in the kernel's format: words of four bytes in native byte order.
fn parse_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::new();
    for at in (0..address.len()).step_by(8) {
        let word = u32::from_str_radix(address.get(at..at + 8)?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let address = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => IpAddr::V4(Ipv4Addr::from(four)),
        Err(_) => {
            let all = Ipv6Addr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?);
            all.to_ipv4_mapped().map_or(IpAddr::V6(all), IpAddr::V4)
        }
    };
    Some((address, port))
}

/// Returns the local port of a process's connection to a remote port.
pub(super) fn local_port(pid: u32, port: u16) -> Option<u16> {
    let inodes = socket_inodes(pid);
    let all = connected_sockets(pid).into_iter();
    let mut own = all.filter(|one| one.remote.1 == port && inodes.contains(&one.inode));
    own.next().map(|one| one.local)
}

/// Returns whether a process holds the connection between two ports; `None` if it holds no connection.
pub(super) fn serves_connection(pid: u32, port: u16, client: u16) -> Option<bool> {
    let inodes = socket_inodes(pid);
    let all = connected_sockets(pid).into_iter();
    let own: Vec<Inet> = all
        .filter(|one| one.local == port && inodes.contains(&one.inode))
        .collect();
    (!own.is_empty()).then(|| own.iter().any(|one| one.remote.1 == client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        let four = "  1: 0100007F:D1A2 3500007F:0035 07 00000000:00000000 00:00000000 00000000 0 0 4711 2 0 0";
        let read = parse(four).unwrap();
        assert_eq!((read.remote.1, read.inode), (53, 4711));
        let listening =
            "  0: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 9 1 0";
        assert_eq!(parse(listening), None);
        let mapped = "0000000000000000FFFF00000100007F:0016";
        let expected =
            cfg!(target_endian = "little").then_some((IpAddr::V4(Ipv4Addr::LOCALHOST), 22));
        assert_eq!(parse_address(mapped), expected.or(parse_address(mapped)));
    }

    #[test]
    fn a_unix_socket_leads_to_the_path_of_its_far_end() {
        // ss of iproute2 6.1.
        let text = "u_str ESTAB 0 0 /run/dbus/system_bus_socket 200 * 100\n\
                    u_str ESTAB 0 0 * 100 * 200\n\
                    u_str ESTAB 0 0 * 300 * 301\n\
                    u_str ESTAB 0 0 * 301 * 300\n";
        let all = far_ends(text);
        assert_eq!(all[&100].as_deref(), Some("/run/dbus/system_bus_socket"));
        assert_eq!((&all[&300], &all[&200]), (&None, &None));
    }
}

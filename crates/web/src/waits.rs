//! Measures what a server waits for under load. Counts the sockets on which clients have not acknowledged data, and the
//! sockets on which the server waits for another server. Module `sockets` lists the sockets; crate `assay-judge`
//! decides which part limited the load.

use crate::link::is_here;
use crate::procfs::read;
use crate::server::{self, ServerProcesses, holders};
use crate::sockets::{Tcp, TcpState, Unix, list_tcp, list_unix};
use assay_model::web::{SocketUse, Upstream};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::thread;
use std::time::{Duration, Instant};

/// Number of snapshots of the sockets during the counted time.
const LOOKS: u32 = 10;
/// Minimum time between two snapshots, because each snapshot reads all file descriptors of the server.
const BETWEEN: Duration = Duration::from_millis(40);
/// Minimum number of snapshots for a meaningful mean.
const FEWEST: u32 = 3;
/// Maximum number of a server's sockets that are examined. Examining more sockets would disturb the load.
const MOST: usize = 20_000;

/// Takes snapshots of the server's sockets from `from` to `until`, both relative to `begin`, or until the load ends.
/// Must run in a separate thread, because the thread enters the server's network namespace. Returns `None` if the
/// server's sockets are not visible from this machine.
pub fn watch(
    server: &ServerProcesses,
    address: SocketAddr,
    begin: Instant,
    [from, until]: [Duration; 2],
    over: &dyn Fn() -> bool,
) -> Option<SocketUse> {
    let mut watch = Watch {
        address,
        looks: 0,
        clients: 0,
        sending: 0,
        old: BTreeSet::new(),
        upstreams: BTreeMap::new(),
        unassigned: BTreeMap::new(),
    };
    enter_namespace(*server.processes()?.first()?)?;
    let between = ((until.saturating_sub(from)) / LOOKS).max(BETWEEN);
    let mut next = from;
    while next < until {
        while begin.elapsed() < next {
            if over() {
                return watch.finish();
            }
            thread::sleep((next.saturating_sub(begin.elapsed())).min(Duration::from_millis(20)));
        }
        watch.look(&server.processes()?)?;
        next = begin.elapsed() + between;
    }
    watch.finish()
}

/// Moves this thread into the network namespace of a process, unless it is already there.
fn enter_namespace(pid: u32) -> Option<()> {
    let there = format!("/proc/{pid}/ns/net");
    let own = std::fs::read_link("/proc/thread-self/ns/net").ok()?;
    if std::fs::read_link(&there).ok()? == own {
        return Some(());
    }
    let file = File::open(there).ok()?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).ok()
}

/// Address of an upstream server, that is a server of which the measured server is a client.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Address {
    Tcp(SocketAddr),
    Unix(String),
}

/// Processes of an upstream server, and their counters from the first snapshot that contained the upstream. An error if
/// the counters cannot be read.
type CountedSince = Result<(ServerProcesses, server::ServerCounters), String>;

struct Watch {
    /// Address of the load. Sockets with this peer address belong to the generator.
    address: SocketAddr,
    looks: u32,
    clients: usize,
    sending: usize,
    /// UNIX sockets that were connected in the first snapshot. They may be idle connections of a pool.
    old: BTreeSet<u32>,
    /// For each upstream, the number of waiting sockets, summed over all snapshots, and the counters from the first
    /// snapshot.
    upstreams: BTreeMap<Address, (usize, CountedSince)>,
    /// Waiting sockets whose process is unknown, by upstream and user. One reason is that a proxy opens and closes a
    /// connection while one snapshot is being taken.
    unassigned: BTreeMap<(SocketAddr, u32), Unassigned>,
}

/// Waiting sockets of one user to one upstream whose process is unknown.
#[derive(Default)]
struct Unassigned {
    /// Number of waiting sockets, summed over all snapshots.
    waiting: usize,
    /// Whether the measured server also had a waiting socket of this user to this upstream.
    is_of_server: bool,
}

impl Watch {
    fn look(&mut self, processes: &[u32]) -> Option<()> {
        let inodes = sockets_of(processes)?;
        let tcp = list_tcp().ok()?;
        // A kernel that cannot list UNIX sockets can still list TCP sockets.
        let unix = list_unix().unwrap_or_default();
        let listening: BTreeSet<u16> = tcp
            .iter()
            .filter(|one| one.state == TcpState::Listening)
            .map(|one| one.local.port())
            .collect();
        for socket in tcp.iter().filter(|one| one.state != TcpState::Listening) {
            if !inodes.contains(&socket.inode) {
                let outgoing = !listening.contains(&socket.local.port());
                if outgoing && !self.is_generator(socket) && waits(socket) {
                    self.unassigned_of(socket).waiting += 1;
                }
            } else if listening.contains(&socket.local.port()) {
                self.clients += 1;
                self.sending += usize::from(socket.unacknowledged > 0);
            } else if !self.is_generator(socket) && waits(socket) {
                self.unassigned_of(socket).is_of_server = true;
                self.count(Address::Tcp(socket.remote), processes, &unix);
            }
        }
        let by_inode: BTreeMap<u32, &Unix> = unix.iter().map(|one| (one.inode, one)).collect();
        let connected = unix
            .iter()
            .filter(|one| !one.listening && one.path.is_none() && inodes.contains(&one.inode));
        let mut seen = BTreeSet::new();
        for socket in connected {
            seen.insert(socket.inode);
            let accepted = by_inode
                .get(&socket.peer)
                .and_then(|peer| peer.path.clone());
            let pending = || {
                let mut all = unix
                    .iter()
                    .filter(|one| one.pending.contains(&socket.inode));
                all.find_map(|one| one.path.clone())
            };
            let Some(path) = accepted.or_else(pending) else {
                continue;
            };
            let young = self.looks > 0 && !self.old.contains(&socket.inode);
            if young && socket.unread == 0 {
                self.count(Address::Unix(path), processes, &unix);
            }
        }
        if self.looks == 0 {
            self.old = seen;
        }
        self.looks += 1;
        Some(())
    }

    fn is_generator(&self, socket: &Tcp) -> bool {
        let ip = |address: &SocketAddr| address.ip().to_canonical();
        socket.remote.port() == self.address.port() && ip(&socket.remote) == ip(&self.address)
    }

    fn unassigned_of(&mut self, socket: &Tcp) -> &mut Unassigned {
        let key = (socket.remote, socket.user);
        self.unassigned.entry(key).or_default()
    }

    /// Assigns the sockets without a known process to the upstreams of which the server is a client. A connection of a
    /// few milliseconds often no longer exists when the file descriptors of its process are read.
    fn assign_short_connections(&mut self) {
        for ((address, _), sockets) in &self.unassigned {
            let known = self.upstreams.get_mut(&Address::Tcp(*address));
            if let (Some((waiting, _)), true) = (known, sockets.is_of_server) {
                *waiting += sockets.waiting;
            }
        }
    }

    /// Counts a waiting socket. For the first socket of an upstream, also reads the upstream's CPU time.
    fn count(&mut self, address: Address, processes: &[u32], unix: &[Unix]) {
        let known = self.upstreams.entry(address);
        let known = known.or_insert_with_key(|address| (0, listener(address, processes, unix)));
        known.0 += 1;
    }

    fn finish(mut self) -> Option<SocketUse> {
        self.assign_short_connections();
        let looks = self.looks;
        let mean = |count: usize| count as f64 / f64::from(looks.max(1));
        let upstreams = self
            .upstreams
            .into_iter()
            .map(|(address, (waiting, used))| Upstream {
                address: match address {
                    Address::Tcp(address) => address.to_string(),
                    Address::Unix(path) => path,
                },
                waiting: mean(waiting),
                used: used
                    .and_then(|(server, then)| server::ServerCounters::at(&server).since(&then)),
            });
        let mut upstreams: Vec<Upstream> = upstreams.collect();
        upstreams.sort_by(|a, b| b.waiting.total_cmp(&a.waiting));
        (looks >= FEWEST).then_some(SocketUse {
            looks,
            clients: mean(self.clients),
            sending: mean(self.sending),
            upstreams,
        })
    }
}

/// Returns whether the socket waits, because its connection is being opened, or because it has sent a request and
/// received no answer.
fn waits(socket: &Tcp) -> bool {
    let asked = socket.asked || socket.unacknowledged > 0;
    socket.state == TcpState::Connecting || asked && socket.unread == 0
}

/// Finds the processes of an upstream, and reads their CPU time until now.
fn listener(
    address: &Address,
    processes: &[u32],
    unix: &[Unix],
) -> Result<(ServerProcesses, server::ServerCounters), String> {
    let server = match address {
        Address::Tcp(address) if !is_here(address) => {
            return Err("it is on another machine".to_owned());
        }
        Address::Tcp(address) => ServerProcesses::listening(address),
        Address::Unix(path) => {
            let own = |one: &&Unix| one.listening && one.path.as_ref() == Some(path);
            let inodes = unix.iter().filter(own).map(|one| one.inode.to_string());
            holders(&inodes.collect())
        }
    };
    match &server {
        ServerProcesses::Unknown(why) => Err(why.clone()),
        ServerProcesses::Processes(pids) if pids.iter().any(|pid| processes.contains(pid)) => {
            Err("it is the server itself".to_owned())
        }
        _ => {
            let look = server::ServerCounters::at(&server);
            Ok((server, look))
        }
    }
}

/// Returns the inodes of the sockets that these processes have open; `None` if the sockets cannot be read or are too
/// many.
fn sockets_of(processes: &[u32]) -> Option<BTreeSet<u32>> {
    let mut found = BTreeSet::new();
    let mut readable = false;
    for pid in processes {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            continue;
        };
        readable = true;
        for entry in entries.flatten() {
            let link = std::fs::read_link(entry.path()).ok();
            let inode = link.as_deref().and_then(|link| {
                let number = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
                number.parse::<u32>().ok()
            });
            found.extend(inode);
            if found.len() > MOST {
                return None;
            }
        }
    }
    readable.then_some(found)
}

impl ServerProcesses {
    /// Returns the processes of a server on this machine and their descendants.
    pub(crate) fn processes(&self) -> Option<Vec<u32>> {
        let roots = match self {
            Self::Processes(roots) => roots.clone(),
            Self::Group(path) => {
                let text = read(path.join("cgroup.procs"))?;
                text.lines().filter_map(|line| line.parse().ok()).collect()
            }
            Self::There(..) | Self::Unknown(_) => return None,
        };
        let all = server::tree(&roots);
        (!all.is_empty()).then_some(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_without_a_process_count_only_beside_one_of_the_server() {
        let [backend, other] = [9000, 9001].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let sockets = |waiting, is_of_server| Unassigned {
            waiting,
            is_of_server,
        };
        let unknown = || Err("not asked".to_owned());
        let watch = Watch {
            address: SocketAddr::from(([127, 0, 0, 1], 80)),
            looks: 10,
            clients: 80,
            sending: 0,
            old: BTreeSet::new(),
            upstreams: [backend, other]
                .map(|address| (Address::Tcp(address), (10, unknown())))
                .into(),
            // User 33 is the server, user 1000 another client of the same backend.
            unassigned: [
                ((backend, 33), sockets(50, true)),
                ((backend, 1000), sockets(70, false)),
                ((other, 1000), sockets(30, false)),
            ]
            .into(),
        };
        let found = watch.finish().unwrap().upstreams;
        let waiting: Vec<f64> = found.iter().map(|upstream| upstream.waiting).collect();
        assert_eq!(waiting, [6.0, 1.0]);
        assert_eq!(found[0].address, backend.to_string());
    }
}

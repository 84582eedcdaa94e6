//! Measures the CPU time of a server. The processes of a server are the ones that have the listening socket open, with
//! their descendants; or a process or control group that the user names. The server is on this machine, or is reached
//! over ssh.

use crate::procfs::{numbers, read};
use crate::quota::Quotas;
use crate::remote_counters::{Asked, RemoteCounted, There};
use assay_model::Nanos;
use assay_model::web::ServerUse;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Processes whose CPU time is counted for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerProcesses {
    /// These processes and their descendants, which are determined at each reading.
    Processes(Vec<u32>),
    /// Processes of a control group (version 2), by its directory.
    Group(PathBuf),
    /// Processes or a control group on another machine, whose counters are read over an ssh session.
    There(Arc<There>, RemoteCounted),
    /// The processes are unknown. Contains the reason.
    Unknown(String),
}

/// Error: the process or control group that the user named does not exist.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The process does not exist.
    #[error("--server-pid {pid}: there is no such process")]
    Process {
        /// Process id from the user.
        pid: u32,
    },
    /// The control group does not exist.
    #[error("{}: no control group of version 2 whose CPU time can be read: {source}", path.display())]
    Group {
        /// Path from the user.
        path: PathBuf,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl ServerProcesses {
    /// Selects the process with this id.
    ///
    /// # Errors
    /// The process does not exist.
    pub fn process(pid: u32) -> Result<Self, ServerError> {
        match read(format!("/proc/{pid}/stat")) {
            Some(_) => Ok(Self::Processes(vec![pid])),
            None => Err(ServerError::Process { pid }),
        }
    }

    /// Selects a control group by an absolute path, or by a path below `/sys/fs/cgroup`.
    ///
    /// # Errors
    /// The group does not exist.
    pub fn group(path: &str) -> Result<Self, ServerError> {
        let path = Self::group_path(path);
        match std::fs::read_to_string(path.join("cpu.stat")) {
            Ok(_) => Ok(Self::Group(path)),
            Err(source) => Err(ServerError::Group { path, source }),
        }
    }

    pub(crate) fn group_path(path: &str) -> PathBuf {
        match path.starts_with("/sys/fs/cgroup") {
            true => PathBuf::from(path),
            false => PathBuf::from("/sys/fs/cgroup").join(path.trim_start_matches('/')),
        }
    }

    /// Finds the processes that listen on this address of this machine.
    #[must_use]
    pub fn listening(address: &SocketAddr) -> Self {
        let inodes = listeners(address.port());
        if inodes.is_empty() {
            return Self::Unknown("nobody here listens on its port".to_owned());
        }
        holders(&inodes)
    }

    /// Returns whether the CPU time of the server can be measured.
    #[must_use]
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown(_))
    }
}

/// Finds the processes that have at least one of these sockets open. `inodes` contains the inodes of the sockets.
pub(crate) fn holders(inodes: &BTreeSet<String>) -> ServerProcesses {
    let mut processes = Vec::new();
    let mut hidden = false;
    for pid in numbers("/proc") {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
            hidden = true;
            continue;
        };
        let holds = entries.flatten().any(|entry| {
            let link = std::fs::read_link(entry.path()).ok();
            let link = link.as_deref().and_then(|link| link.to_str());
            let inode = link.and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
            inode.is_some_and(|inode| inodes.contains(inode))
        });
        if holds {
            processes.push(pid);
        }
    }
    match processes.is_empty() {
        false => ServerProcesses::Processes(processes),
        true if hidden => ServerProcesses::Unknown(
            "only root sees whose socket it is; --server-pid names it".to_owned(),
        ),
        true => ServerProcesses::Unknown("no process holds its socket".to_owned()),
    }
}

/// Returns the inodes of the sockets that listen on a port in this thread's network namespace.
fn listeners(port: u16) -> BTreeSet<String> {
    let tables = ["tcp", "tcp6"].map(|table| read(format!("/proc/thread-self/net/{table}")));
    let lines: Vec<String> = tables.into_iter().flatten().collect();
    let found = lines
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .filter_map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let own = u16::from_str_radix(words.get(1)?.rsplit(':').next()?, 16).ok()?;
            // 0A is TCP_LISTEN (include/net/tcp_states.h).
            (own == port && *words.get(3)? == "0A")
                .then(|| words.get(9).map(|inode| (*inode).to_owned()))?
        });
    found.collect()
}

/// CPU time of each thread in nanoseconds. The first value is the time on a CPU. The second value is the time spent
/// waiting for a CPU, if the kernel counts it.
pub(crate) type Threads = BTreeMap<(u32, u32), (u64, Option<u64>)>;

/// Counters of a server at one time.
pub struct ServerCounters {
    at: Instant,
    seen: Result<Seen, String>,
    quotas: Quotas,
}

pub(crate) enum Seen {
    Threads(Threads, String),
    Group(u64, String),
    There(Asked),
}

impl ServerCounters {
    pub fn at(server: &ServerProcesses) -> Self {
        let at = Instant::now();
        let seen = match server {
            ServerProcesses::Unknown(why) => Err(why.clone()),
            ServerProcesses::Group(path) => group(path),
            ServerProcesses::Processes(roots) => processes(roots),
            ServerProcesses::There(there, counts) => Ok(Seen::There(Asked::now(there, counts))),
        };
        let quotas = match server {
            ServerProcesses::Group(path) => Some(Quotas::of_group(path)),
            ServerProcesses::Processes(roots) => roots.first().copied().map(Quotas::of_process),
            ServerProcesses::There(..) | ServerProcesses::Unknown(_) => None,
        };
        Self {
            at,
            seen,
            quotas: quotas.unwrap_or_default(),
        }
    }

    /// Returns how long the reading took. If the reading has not ended, returns the time since its start.
    pub fn took(&self) -> Duration {
        match &self.seen {
            Ok(Seen::There(asked)) => asked.took(),
            _ => Duration::ZERO,
        }
    }

    /// Returns the resources that were used since the earlier reading `then`. The usage of a process that ended in
    /// between is lost.
    pub fn since(&self, then: &Self) -> Result<ServerUse, String> {
        match (&self.seen, &then.seen) {
            (Err(why), _) | (_, Err(why)) => Err(why.clone()),
            (Ok(now), Ok(before)) => {
                let used = now.since(before, Nanos::from(self.at - then.at))?;
                Ok(ServerUse {
                    quota: self.quotas.since(&then.quotas),
                    ..used
                })
            }
        }
    }
}

impl Seen {
    /// Builds counters from the threads of a server and the name of their process.
    pub(crate) fn threads(threads: Threads, name: &str) -> Self {
        let alive: BTreeSet<u32> = threads.keys().map(|(pid, _)| *pid).collect();
        let what = match alive.len() {
            1 => name.to_owned(),
            n => format!("{name} ({n} processes)"),
        };
        Self::Threads(threads, what)
    }

    /// Returns the resources that were used since `then`, relative to the duration `window`.
    pub(crate) fn since(&self, then: &Self, window: Nanos) -> Result<ServerUse, String> {
        match (self, then) {
            (Self::There(now), Self::There(before)) => now.since(before),
            (Self::Group(now, what), Self::Group(before, _)) => Ok(ServerUse {
                what: what.clone(),
                window,
                cpu: Nanos(now.saturating_sub(*before)),
                ..ServerUse::default()
            }),
            (Self::Threads(now, what), Self::Threads(before, _)) => {
                let used: Vec<(u64, Option<u64>)> = now
                    .iter()
                    .map(|(thread, (cpu, waited))| {
                        let (cpu_then, waited_then) =
                            before.get(thread).copied().unwrap_or((0, Some(0)));
                        let waited = waited.zip(waited_then);
                        (
                            cpu.saturating_sub(cpu_then),
                            waited.map(|(now, then)| now.saturating_sub(then)),
                        )
                    })
                    .collect();
                // A thread that waits for a CPU has work, too.
                let busiest = used
                    .iter()
                    .map(|(cpu, waited)| cpu.saturating_add(waited.unwrap_or(0)))
                    .max()
                    .unwrap_or(0);
                let sum = |a: u64, b: u64| a.saturating_add(b);
                let waited: Option<Vec<u64>> = used.iter().map(|(_, waited)| *waited).collect();
                Ok(ServerUse {
                    what: what.clone(),
                    window,
                    cpu: Nanos(used.iter().map(|(cpu, _)| *cpu).fold(0, sum)),
                    waited: waited.map(|waited| Nanos(waited.into_iter().fold(0, sum))),
                    busiest: (window.0 > 0).then(|| busiest as f64 / window.0 as f64),
                    active: used.iter().filter(|(cpu, _)| *cpu > 0).count() as u32,
                    ..ServerUse::default()
                })
            }
            _ => Err("it was looked at in two ways".to_owned()),
        }
    }
}

fn group(path: &std::path::Path) -> Result<Seen, String> {
    let text = read(path.join("cpu.stat")).ok_or("its control group is gone")?;
    let used = text
        .lines()
        .find_map(|line| line.strip_prefix("usage_usec ")?.trim().parse::<u64>().ok());
    let used = used.ok_or("its control group tells no CPU time")?;
    Ok(Seen::Group(
        used * 1000,
        format!("group {}", path.display()),
    ))
}

fn processes(roots: &[u32]) -> Result<Seen, String> {
    let all = tree(roots);
    let mut threads = Threads::new();
    let mut name = None;
    for pid in all {
        for thread in numbers(format!("/proc/{pid}/task")) {
            if let Some(times) = read(format!("/proc/{pid}/task/{thread}/schedstat"))
                .and_then(|text| schedstat(&text))
            {
                threads.insert((pid, thread), times);
            }
        }
        if name.is_none() {
            name = read(format!("/proc/{pid}/comm")).map(|name| name.trim().to_owned());
        }
    }
    if threads.is_empty() {
        return Err("its processes are gone".to_owned());
    }
    Ok(Seen::threads(threads, &name.unwrap_or_default()))
}

/// Parses the time on a CPU and the time spent waiting for a CPU (Documentation/scheduler/sched-stats.rst).
fn schedstat(text: &str) -> Option<(u64, Option<u64>)> {
    let mut words = text.split_whitespace();
    let (cpu, waited) = (words.next()?, words.next()?);
    Some((cpu.parse().ok()?, Some(waited.parse().ok()?)))
}

/// Returns the processes `roots` and their descendants, oldest first. Omits assay itself.
pub(crate) fn tree(roots: &[u32]) -> Vec<u32> {
    let parents: BTreeMap<u32, u32> = numbers("/proc")
        .into_iter()
        .filter_map(|pid| Some((pid, parent(&read(format!("/proc/{pid}/stat"))?)?)))
        .collect();
    let own = std::process::id();
    let below = |pid: u32| {
        let mut at = pid;
        // A chain of parents ends at 0. A cycle can only come from a reused process number.
        for _ in 0..64 {
            if roots.contains(&at) {
                return true;
            }
            match parents.get(&at) {
                Some(parent) if *parent != 0 => at = *parent,
                _ => return false,
            }
        }
        false
    };
    let found = parents
        .keys()
        .copied()
        .filter(|pid| *pid != own || roots.contains(pid));
    found.filter(|pid| below(*pid)).collect()
}

/// Parses the process id of the parent (field 4 of /proc/PID/stat). The process name before this field may contain any
/// character.
fn parent(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(1)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_name_may_hold_anything() {
        assert_eq!(parent("12 (a) S 9 (b)) R 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (nginx) S 1 12"), Some(1));
        assert_eq!(parent("12 (nginx"), None);
        assert_eq!(schedstat("5 6 7\n"), Some((5, Some(6))));
    }

    #[test]
    fn who_listens_here_is_found_and_its_work_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = ServerProcesses::listening(&address);
        assert_eq!(server, ServerProcesses::Processes(vec![std::process::id()]));
        let then = ServerCounters::at(&server);
        let begin = Instant::now();
        let mut x = 0u64;
        while begin.elapsed().as_millis() < 60 {
            x = std::hint::black_box(x + 1);
        }
        let used = ServerCounters::at(&server).since(&then).unwrap();
        assert!(used.cpu.0 > 0 && used.busiest.unwrap() > 0.0 && used.active >= 1);
        drop(listener);
        assert!(!ServerProcesses::listening(&address).is_known());
    }

    #[test]
    fn what_is_not_there_is_said() {
        assert!(matches!(
            ServerProcesses::process(u32::MAX),
            Err(ServerError::Process { .. })
        ));
        assert!(matches!(
            ServerProcesses::group("no/such/group"),
            Err(ServerError::Group { .. })
        ));
        let unknown = ServerProcesses::Unknown("far away".to_owned());
        let (a, b) = (ServerCounters::at(&unknown), ServerCounters::at(&unknown));
        assert_eq!(b.since(&a), Err("far away".to_owned()));
    }
}

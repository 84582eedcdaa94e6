//! Watches the processes of a login: those of the client, and those of the server if it runs on this machine. Reads
//! `/proc` about 66 times per second. Neither traces nor stops processes.

mod process;
mod sockets;

use crate::activity::{Activity, ConnectionSide, Sighting};
use assay_model::Nanos;
use process::Process;
use sockets::Sockets;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two readings of `/proc`.
const INTERVAL: Duration = Duration::from_millis(15);
/// Priority of the watching thread, as of nice(1).
const PRIORITY: i32 = -10;
/// If a reading is late by more than this, the watching thread itself got no CPU.
const LATE: Duration = Duration::from_millis(20);
/// Minimum interval between two looks at a process's sockets.
const SOCKETS_EVERY: Duration = Duration::from_millis(50);

/// Processes of the server to watch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchedServer {
    /// Processes that hold the listening socket. Empty if the server runs on another machine, or if its processes are
    /// not visible.
    pub listeners: Vec<u32>,
    /// Port of the listening socket.
    pub port: u16,
    /// Whether the server starts a process for each connection, as sshd does.
    pub forks: bool,
}

impl WatchedServer {
    /// Returns a copy without processes to watch, for many simultaneous logins: then a process cannot be assigned to
    /// one login.
    #[must_use]
    pub fn without_processes(&self) -> Self {
        Self {
            listeners: Vec::new(),
            ..self.clone()
        }
    }
}

/// A watch that has not started. It is created before the client starts, so that new processes can be distinguished
/// from old ones.
#[derive(Debug)]
pub struct PreparedWatch {
    server: WatchedServer,
    /// Processes that existed before the login.
    before: BTreeSet<u32>,
}

impl PreparedWatch {
    /// Records the existing processes of the server.
    #[must_use]
    pub fn new(server: &WatchedServer) -> Self {
        let mut server = server.clone();
        server.listeners = process::topmost_listeners(&server.listeners);
        let below = server
            .listeners
            .iter()
            .flat_map(|pid| process::list_descendants(*pid));
        let before = below.map(|process| process.pid).collect();
        Self { server, before }
    }

    /// Starts the watch. `client` is the process id of the client; times are measured from `begin`.
    #[must_use]
    pub fn start(self, client: Option<u32>, begin: Instant) -> RunningWatch {
        let stop = Arc::new(AtomicBool::new(false));
        let mut watcher = Watcher::new(client, self, begin);
        let asked = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            // Looks come in time on a busy machine. Only root may do so.
            let _ = rustix::process::setpriority_process(None, PRIORITY);
            while !asked.load(Ordering::Relaxed) {
                watcher.look();
                std::thread::sleep(INTERVAL);
            }
            watcher.found
        });
        RunningWatch {
            stop,
            thread: Some(thread),
        }
    }
}

/// A running watch; dropping it ends the watch.
#[derive(Debug)]
pub struct RunningWatch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Sighting>>>,
}

impl RunningWatch {
    /// Ends the watch and returns the sightings.
    #[must_use]
    pub fn finish(mut self) -> Vec<Sighting> {
        self.end()
    }

    fn end(&mut self) -> Vec<Sighting> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take();
        thread
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default()
    }
}

impl Drop for RunningWatch {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A process that is busy at the current reading, with its activity.
struct Candidate {
    side: ConnectionSide,
    pid: u32,
    process: String,
    activity: Activity,
}

struct Watcher {
    client: Option<u32>,
    server: WatchedServer,
    begin: Instant,
    /// Processes that existed before the login.
    before: BTreeSet<u32>,
    /// For each child of the listening process: whether it serves the connection of this login.
    ours: BTreeMap<u32, bool>,
    /// CPU time and time in the CPU queue of each process, at the previous reading.
    times: BTreeMap<u32, (u64, u64)>,
    /// For each sleeping process: the time of the last check, and the resource for which the process waited.
    waits: BTreeMap<u32, (Instant, Option<Activity>)>,
    sockets: Sockets,
    last: Instant,
    own: (u64, u64),
    found: Vec<Sighting>,
}

impl Watcher {
    fn new(client: Option<u32>, prepared: PreparedWatch, begin: Instant) -> Self {
        Self {
            client,
            server: prepared.server,
            begin,
            before: prepared.before,
            ours: BTreeMap::new(),
            times: BTreeMap::new(),
            waits: BTreeMap::new(),
            sockets: Sockets::default(),
            last: begin,
            own: process::own_times(),
            found: Vec::new(),
        }
    }

    fn look(&mut self) {
        let now = Instant::now();
        let mut all = Vec::new();
        if let Some(client) = self.client {
            self.look_at_client(client, &mut all);
        }
        self.look_at_server(&mut all);
        let own = process::own_times();
        let queued = Duration::from_nanos(own.1.saturating_sub(self.own.1));
        self.own = own;
        let picked = all.into_iter().min_by(|a, b| a.activity.cmp(&b.activity));
        let gap = now - self.last;
        let goes_on = picked.as_ref().is_some_and(|one| self.goes_on(one));
        // After a late look the start of an activity is unknown, unless the last look saw it, too.
        if gap > INTERVAL + LATE && !goes_on {
            let known = now - INTERVAL - LATE;
            if queued * 2 > gap {
                let starved = Candidate {
                    side: ConnectionSide::Client,
                    pid: 0,
                    process: "assay".to_owned(),
                    activity: Activity::CpuQueue,
                };
                self.add(self.last, known, starved);
            }
            self.last = known;
        }
        if let Some(one) = picked {
            self.add(self.last, now, one);
        }
        self.last = now;
    }

    /// Returns whether the previous reading found the same activity of the same process.
    fn goes_on(&self, one: &Candidate) -> bool {
        self.found.last().is_some_and(|last| {
            last.to == self.since_begin(self.last)
                && (last.pid, last.side) == (one.pid, one.side)
                && last.activity == one.activity
        })
    }

    fn since_begin(&self, at: Instant) -> Nanos {
        Nanos::from(at.saturating_duration_since(self.begin))
    }

    fn add(&mut self, from: Instant, to: Instant, one: Candidate) {
        let goes_on = self.goes_on(&one) && from == self.last;
        let (from, to) = (self.since_begin(from), self.since_begin(to));
        if let Some(last) = self.found.last_mut().filter(|_| goes_on) {
            last.to = to;
            return;
        }
        self.found.push(Sighting {
            from,
            to,
            side: one.side,
            pid: one.pid,
            process: one.process,
            activity: one.activity,
        });
    }

    fn look_at_client(&mut self, client: u32, all: &mut Vec<Candidate>) {
        let Some(process) = Process::read(client) else {
            return;
        };
        if let Some(activity) = self.activity(&process, ConnectionSide::Client) {
            all.push(Candidate {
                side: ConnectionSide::Client,
                pid: client,
                process: process.name.clone(),
                activity,
            });
        }
        for child in process::list_children(client)
            .into_iter()
            .filter_map(Process::read)
        {
            // After fork and before exec, a child is still the client itself.
            if child.name != process.name || child.words() != process.words() {
                self.add_program(ConnectionSide::Client, &child, all);
            }
        }
    }

    fn look_at_server(&mut self, all: &mut Vec<Candidate>) {
        for listener in self.server.listeners.clone() {
            match self.server.forks {
                true => {
                    let new: Vec<u32> = process::list_children(listener)
                        .into_iter()
                        .filter(|pid| !self.before.contains(pid))
                        .collect();
                    let alone = new.len() == 1;
                    for pid in new {
                        if self.serves_us(pid, alone) {
                            self.descend(pid, all);
                        }
                    }
                }
                false => self.descend(listener, all),
            }
        }
    }

    /// Returns whether this child of the listening process serves the connection of this login.
    fn serves_us(&mut self, pid: u32, alone: bool) -> bool {
        if let Some(known) = self.ours.get(&pid) {
            return *known;
        }
        let port = self
            .client
            .and_then(|client| sockets::local_port(client, self.server.port));
        match port {
            Some(port) => {
                let serves = sockets::serves_connection(pid, self.server.port, port);
                // A newly forked process may not have its socket yet.
                if let Some(serves) = serves {
                    self.ours.insert(pid, serves);
                }
                serves.unwrap_or(alone)
            }
            None => alone,
        }
    }

    fn descend(&mut self, pid: u32, all: &mut Vec<Candidate>) {
        let Some(process) = Process::read(pid) else {
            return;
        };
        if !process.is_of_server() && self.is_listener(&process) {
            // A server that assay does not know: which of its threads answers is unknown, but not what it starts.
            for child in process::list_children(pid) {
                self.descend(child, all);
            }
            return;
        }
        if !process.is_of_server() {
            // A service that existed before, such as a policy server of Postfix, was not started for this
            // login.
            if !self.before.contains(&pid) {
                self.add_program(ConnectionSide::Server, &process, all);
            }
            return;
        }
        if let Some(activity) = self.activity(&process, ConnectionSide::Server) {
            all.push(Candidate {
                side: ConnectionSide::Server,
                pid,
                process: process.label(),
                activity,
            });
        }
        for child in process::list_children(pid) {
            self.descend(child, all);
        }
    }

    /// Returns whether a process listens, or is a forked worker with the same command line as a listening process.
    fn is_listener(&self, process: &Process) -> bool {
        let is_same = |listener: &u32| {
            *listener == process.pid
                || Process::read(*listener).is_some_and(|one| one.words() == process.words())
        };
        self.server.listeners.iter().any(is_same)
    }

    fn add_program(&self, side: ConnectionSide, process: &Process, all: &mut Vec<Candidate>) {
        if process.state == 'Z' {
            return;
        }
        let below = process::list_descendants(process.pid);
        let mut words = process.words();
        words.extend(below.iter().flat_map(Process::words));
        let inner = below.last().unwrap_or(process).name.clone();
        all.push(Candidate {
            side,
            pid: process.pid,
            process: process.name.clone(),
            activity: Activity::Program { words, inner },
        });
    }

    /// Returns what a process of the client or of the server itself does at the moment; `None` if it is not busy.
    fn activity(&mut self, process: &Process, side: ConnectionSide) -> Option<Activity> {
        let times = process::read_cpu_times(process.pid);
        let before = self.times.insert(process.pid, times).unwrap_or(times);
        match process.state {
            'R' => {
                let computed = times.0.saturating_sub(before.0);
                let queued = times.1.saturating_sub(before.1);
                Some(match queued > computed {
                    true => Activity::CpuQueue,
                    false => Activity::Cpu,
                })
            }
            'D' => Some(Activity::Disk),
            'S' => self.wait(process, side),
            _ => None,
        }
    }

    fn wait(&mut self, process: &Process, side: ConnectionSide) -> Option<Activity> {
        let place = process.wait_channel();
        if place.contains("nanosleep") {
            return Some(Activity::Sleep);
        }
        if place.starts_with("rpc_") || place.starts_with("nfs") {
            return Some(Activity::Disk);
        }
        // A process in its event loop waits for its peers and is idle.
        if place.contains("do_wait") || place.contains("ep_poll") {
            return None;
        }
        if (place.contains("poll") || place.contains("select")) && process.waits_for_time() {
            return Some(Activity::Sleep);
        }
        if let Some((read, activity)) = self.waits.get(&process.pid)
            && read.elapsed() < SOCKETS_EVERY
        {
            return activity.clone();
        }
        let own = match side {
            ConnectionSide::Client => sockets::Own::Remote(self.server.port),
            ConnectionSide::Server if self.server.forks => sockets::Own::Local(self.server.port),
            ConnectionSide::Server => sockets::Own::Many(self.server.port),
        };
        let activity = self.sockets.asked(process.pid, own);
        let entry = (Instant::now(), activity.clone());
        self.waits.insert(process.pid, entry);
        activity
    }
}

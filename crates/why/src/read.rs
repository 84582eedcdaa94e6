//! Takes one snapshot of a machine through [`Host`]; each part of the machine has a separate file. `sampler` decides
//! when to take a snapshot and how long a read may take.

mod connection_pools;
mod cpu;
mod descriptor_owners;
mod disks;
mod file_locks;
mod file_systems;
mod groups;
mod guests;
mod inotify_users;
mod kept_files;
mod local_listeners;
mod memory;
mod network;
mod network_namespaces;
mod packet_queues;
mod polled_locks;
mod processes;
mod sleep_class;
mod sockets;
mod storage;
mod wait_class;

use crate::WatchSubject;
use crate::machine_snapshot::MachineSnapshot;
use assay_host::{Host, HostError};
use assay_render::text::escape_line;
use descriptor_owners::DescriptorOwners;
use groups::GroupDirs;
use guests::GuestMonitors;
use kept_files::KeptFiles;
use network_namespaces::NetworkNamespaces;
use polled_locks::PolledLocks;
use processes::ProcessTable;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The path that is being read, and the paths that must not be read again.
#[derive(Debug, Default)]
pub(crate) struct ReadProgress {
    current: Option<PathBuf>,
    /// Number of reads that were begun.
    pub(crate) begun: u64,
    pub(crate) skipped: BTreeSet<PathBuf>,
}

/// Progress of a reader, shared with the thread that waits for it.
pub(crate) type SharedProgress = Arc<Mutex<ReadProgress>>;

/// Reads a machine repeatedly. It remembers values that never or rarely change.
pub(crate) struct MachineReader {
    host: Arc<dyn Host>,
    progress: SharedProgress,
    thing: WatchSubject,
    looks: u64,
    /// Time on the monotonic clock at which the current snapshot began, in seconds.
    began: f64,
    group_dirs: Option<GroupDirs>,
    processes: ProcessTable,
    disks: disks::DiskTexts,
    owners: DescriptorOwners,
    polled_locks: PolledLocks,
    guests: GuestMonitors,
    networks: NetworkNamespaces,
    kept: KeptFiles,
    /// Contents of files that hardly change, read since the last thorough snapshot.
    settings: BTreeMap<PathBuf, Option<String>>,
    /// What the tables of sockets showed last, and for how many further looks this stands.
    last_sockets: Option<(sockets::SeenSockets, u8)>,
    missing: BTreeSet<String>,
}

/// One in this many snapshots is thorough: it also reads expensive files.
const SELDOM: u64 = 5;

/// Seconds after which a snapshot is late: other programs keep the CPUs busy, or there are very many processes.
const LATE: f64 = 0.8;

impl MachineReader {
    pub(crate) fn new(host: Arc<dyn Host>, progress: SharedProgress, thing: WatchSubject) -> Self {
        Self {
            host,
            progress,
            thing,
            looks: 0,
            began: clock_seconds(),
            group_dirs: None,
            processes: ProcessTable::default(),
            disks: disks::DiskTexts::default(),
            owners: DescriptorOwners::default(),
            polled_locks: PolledLocks::default(),
            guests: GuestMonitors::default(),
            networks: NetworkNamespaces::default(),
            kept: KeptFiles::default(),
            settings: BTreeMap::new(),
            last_sockets: None,
            missing: BTreeSet::new(),
        }
    }

    /// Abandons the current read: returns its path and marks it, so that it is not read again.
    pub(crate) fn give_up(progress: &SharedProgress) -> Option<PathBuf> {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        let path = progress.current.take()?;
        progress.skipped.insert(path.clone());
        Some(path)
    }

    /// Samples the states of the busy processes: what each waits for at this moment.
    pub(crate) fn sample_states(&mut self) {
        let mut table = std::mem::take(&mut self.processes);
        table.sample_states(self);
        self.processes = table;
    }

    /// Takes a snapshot. `at_ms` is its time in milliseconds since the first snapshot.
    pub(crate) fn look(&mut self, at_ms: u64) -> MachineSnapshot {
        self.began = clock_seconds();
        let mut look = MachineSnapshot {
            at_ms,
            ..MachineSnapshot::default()
        };
        if self.looks == 0 && !rustix::process::geteuid().is_root() {
            let text = "what other users' processes wait for in the kernel, their open files, the locks of their \
                        threads: run as root";
            self.missing.insert(text.to_owned());
        }
        if self.is_thorough() {
            self.settings.clear();
            self.kept.close_unused(self.looks.saturating_sub(SELDOM));
        }
        cpu::read(self, &mut look);
        memory::read(self, &mut look);
        network::read(self, &mut look);
        if self.looks == 0 {
            // No process is known yet, and the queues of all looks count.
            let pids = self.names("/proc");
            let pids: Vec<u32> = pids.iter().filter_map(|pid| pid.parse().ok()).collect();
            self.find_networks(&pids);
        }
        sockets::read(self, &mut look);
        storage::read(self, &mut look);
        file_systems::read(self, &mut look);
        packet_queues::read(self, &mut look);
        let mut disks = std::mem::take(&mut self.disks);
        disks.read(self, &mut look);
        self.disks = disks;
        let mut table = std::mem::take(&mut self.processes);
        table.read(self, &mut look);
        let mut owners = std::mem::take(&mut self.owners);
        table.want(owners.complete(self, &mut look, &table));
        self.owners = owners;
        let mut locks = std::mem::take(&mut self.polled_locks);
        let users = locks.complete(self, &mut look, &table);
        table.want(users);
        self.polled_locks = locks;
        if self.is_thorough() && self.looks > 0 {
            self.find_networks(&table.list_busiest_first());
        }
        if self.looks == 1 {
            inotify_users::read(self, &mut look);
        }
        if self.is_second_look() {
            let mut guests = std::mem::take(&mut self.guests);
            guests.read(self, &mut look);
            self.guests = guests;
        }
        let paths = table.group_paths(&self.thing);
        self.processes = table;
        let dirs = self.group_dirs.take();
        let dirs = dirs.unwrap_or_else(|| GroupDirs::find(self));
        dirs.read(self, &paths, &mut look);
        self.group_dirs = Some(dirs);
        look.missing = std::mem::take(&mut self.missing).into_iter().collect();
        self.looks += 1;
        look
    }

    /// Finds the network namespaces of these processes. Sockets of a new one are read in the next snapshot.
    fn find_networks(&mut self, pids: &[u32]) {
        let before = self.networks.list();
        let mut networks = std::mem::take(&mut self.networks);
        networks.find(self, pids);
        self.networks = networks;
        if self.networks.list() != before {
            self.last_sockets = None;
        }
    }

    /// Lists the directories of the socket tables, with the label of a process in each network namespace; `None` for
    /// assay's own namespace.
    fn list_networks(&self) -> Vec<(String, Option<String>)> {
        self.networks.list()
    }

    /// Returns whether expensive and rarely changing sources are read in this snapshot.
    fn is_thorough(&self) -> bool {
        self.looks.is_multiple_of(SELDOM)
    }

    /// Returns whether the current snapshot has taken so long that searches of all processes go on in a later one.
    fn is_late(&self) -> bool {
        clock_seconds() - self.began > LATE
    }

    /// Returns whether sources that cost some milliseconds are read: in the first snapshot and in every second one.
    fn is_second_look(&self) -> bool {
        self.looks.is_multiple_of(2)
    }

    /// Reads a file. Returns `None` if the file does not exist or cannot be read; the latter is recorded as missing.
    fn text(&mut self, path: &str) -> Option<String> {
        self.text_at(Path::new(path))
    }

    fn text_at(&mut self, path: &Path) -> Option<String> {
        if !self.begin(path) {
            return None;
        }
        let kept = self.kept.read(&*self.host, path, self.looks);
        let read = match kept {
            Some(text) => Ok(text),
            None => self.host.read_text(path),
        };
        self.end();
        self.note_error(path, read)
    }

    /// Reads a short file of a process that is read once in many looks.
    fn text_once(&mut self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !self.begin(path) {
            return None;
        }
        let read = self.host.read_short(path);
        self.end();
        let read = read.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        self.note_error(path, read)
    }

    /// Returns the text that was read; notes why it could not be read.
    fn note_error(&mut self, path: &Path, read: Result<String, HostError>) -> Option<String> {
        match read {
            Ok(text) => Some(text),
            Err(error) if error.is_absent() => None,
            // How an interface that is down, and a device without the property, answer.
            Err(error) if error.to_string().contains("Invalid argument") => None,
            Err(error) => {
                let is_of_process = path
                    .to_str()
                    .and_then(|path| path.strip_prefix("/proc/"))
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
                match is_of_process {
                    // A process that has ended since is no error; a file that only root may read is one.
                    true if !rustix::process::geteuid().is_root()
                        && error.to_string().contains("denied") =>
                    {
                        let file = path.file_name().unwrap_or_default().to_string_lossy();
                        self.missing
                            .insert(format!("/proc/PID/{file} of other users: run as root"));
                    }
                    true => {}
                    false => {
                        self.missing.insert(error.to_string());
                    }
                }
                None
            }
        }
    }

    /// Reads a file that hardly changes, such as a limit. The content is cached until the next thorough snapshot.
    fn setting_at(&mut self, path: &Path) -> Option<String> {
        if let Some(text) = self.settings.get(path) {
            return text.clone();
        }
        let text = self.text_at(path);
        self.settings.insert(path.to_owned(), text.clone());
        text
    }

    /// Reads a file in pieces; see [`Host::scan`].
    fn scan(&mut self, path: &Path, see: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) {
        if self.begin(path) {
            // A process may have ended since.
            let _ = self.host.scan(path, see);
            self.end();
        }
    }

    /// Lists the names in a directory.
    fn names(&mut self, path: &str) -> Vec<String> {
        let path = Path::new(path);
        if !self.begin(path) {
            return Vec::new();
        }
        let names = self.host.list(path).unwrap_or_default();
        self.end();
        let names = names.into_iter();
        names.filter_map(|name| name.into_string().ok()).collect()
    }

    /// Returns the target of a symbolic link as text; `None` if the link cannot be read.
    fn link(&mut self, path: &str) -> Option<String> {
        let path = Path::new(path);
        if !self.begin(path) {
            return None;
        }
        let target = self.host.link(path);
        self.end();
        target.ok()?.into_os_string().into_string().ok()
    }

    /// Returns the name and id of a process for users, escaped.
    fn label_process(&mut self, pid: u32) -> String {
        let name = self.text(&format!("/proc/{pid}/comm"));
        let name = name.unwrap_or_default();
        format!("{} (process {pid})", escape_line(name.trim_end()))
    }

    /// Returns the size of a file or directory in bytes; `None` if it cannot be read.
    fn file_size(&mut self, path: &Path) -> Option<u64> {
        if !self.begin(path) {
            return None;
        }
        let stat = self.host.stat(path);
        self.end();
        Some(stat.ok()?.size)
    }

    /// Returns the inode of a file; `None` if it cannot be read.
    fn inode(&self, path: &Path) -> Option<u64> {
        if !self.begin(path) {
            return None;
        }
        let found = rustix::fs::stat(path);
        self.end();
        Some(found.ok()?.st_ino)
    }

    /// Returns the user that owns a file. For a process directory, this is the user of the process.
    fn owner(&self, path: &Path) -> Option<u32> {
        if !self.begin(path) {
            return None;
        }
        let found = rustix::fs::stat(path);
        self.end();
        Some(found.ok()?.st_uid)
    }

    fn number(&mut self, path: &str) -> Option<f64> {
        self.text(path)?.trim().parse().ok()
    }

    fn begin(&self, path: &Path) -> bool {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        if progress.skipped.contains(path) {
            return false;
        }
        progress.current = Some(path.to_owned());
        progress.begun += 1;
        true
    }

    fn end(&self) {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.current = None;
    }
}

/// Returns the time of the monotonic clock in seconds.
fn clock_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Parses a table with lines `NAME VALUE…`.
fn parse_pairs(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?.trim_end_matches(':');
        Some((name, words.next()?.parse().ok()?))
    })
}

/// Parses pressure stall information: seconds during which some tasks, and during which all tasks, were stalled.
fn parse_pressure(text: &str) -> impl Iterator<Item = (&str, f64)> {
    text.lines().filter_map(|line| {
        let (kind, rest) = line.split_once(' ')?;
        let total = rest.rsplit_once("total=")?.1;
        Some((kind, total.trim().parse::<f64>().ok()? / 1e6))
    })
}

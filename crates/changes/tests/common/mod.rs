//! Code that several tests use: a host that kills its process, and real objects to change.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

pub mod session;

use assay_host::held::{Identity, Removed};
use assay_host::lockdir::LockDirectory;
use assay_host::{
    CommandOutput, FileVersion, Host, HostError, HostMut, KnownFile, Limits, LiveHost, ProcessId,
    Recorded, Stat, StatFs, Times,
};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Point at which a test kills the process.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Number of the host call at which the process is killed; 0 never kills.
    pub call: usize,
    /// Whether the kill comes after the call instead of before it.
    pub after: bool,
    /// Whether only calls that change something count.
    pub writes: bool,
}

impl Point {
    pub fn parse(text: &str) -> Self {
        let mut words = text.split(' ');
        Self {
            call: words.next().unwrap().parse().unwrap(),
            after: words.next() == Some("after"),
            writes: words.next() == Some("writes"),
        }
    }
}

impl std::fmt::Display for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let when = if self.after { "after" } else { "before" };
        let which = if self.writes { "writes" } else { "all" };
        write!(f, "{} {when} {which}", self.call)
    }
}

/// The real machine; the process is killed at one call.
pub struct Deadly {
    point: Point,
    calls: AtomicUsize,
    locks: Option<PathBuf>,
}

impl Deadly {
    pub fn new(point: Point) -> Self {
        let calls = AtomicUsize::new(0);
        Self {
            point,
            calls,
            locks: None,
        }
    }

    /// Creates a host that kills nothing.
    pub fn never() -> Self {
        Self::new(Point {
            call: 0,
            after: false,
            writes: false,
        })
    }

    /// Gives the host its own lock directory in memory, in the directory of the test.
    pub fn with_locks(self, dir: &Path) -> Self {
        let locks = Some(dir.join("journal/locks"));
        Self { locks, ..self }
    }

    fn pass<T>(&self, writes: bool, call: impl FnOnce() -> T) -> T {
        let counts = writes || !self.point.writes;
        let hit = counts && self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.point.call;
        if hit && !self.point.after {
            die();
        }
        let answer = call();
        if hit {
            die();
        }
        answer
    }
}

fn die() {
    let pid = rustix::process::getpid();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

impl Host for Deadly {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.pass(false, || LiveHost.read(path))
    }
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.pass(false, || LiveHost.list(dir))
    }
    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.pass(false, || LiveHost.link(path))
    }
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.pass(false, || LiveHost.realpath(path))
    }
    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.pass(false, || LiveHost.stat(path))
    }
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.pass(false, || LiveHost.statfs(path))
    }
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.pass(false, || LiveHost.open_exclusive(path))
    }
    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        self.pass(true, || LiveHost.run(argv, limits))
    }
    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        LiveHost.which(name)
    }
}

impl HostMut for Deadly {
    fn check_writable(&self, path: &Path) -> Result<(), HostError> {
        self.pass(false, || LiveHost.check_writable(path))
    }
    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        self.pass(true, || LiveHost.write_in_place(path, bytes))
    }
    fn read_plain(&self, path: &Path) -> Result<(Vec<u8>, FileVersion), HostError> {
        self.pass(false, || LiveHost.read_plain(path))
    }
    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        times: Option<Times>,
    ) -> Result<(), HostError> {
        self.pass(true, || LiveHost.create_like(path, like, bytes, times))
    }
    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError> {
        self.pass(true, || LiveHost.exchange(from, seen))
    }
    fn check_directory(&self, dir: &Path) -> Result<(), HostError> {
        self.pass(false, || LiveHost.check_directory(dir))
    }
    fn create_new(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        self.pass(true, || LiveHost.create_new(path, bytes))
    }
    fn rename_new(&self, from: &Path, to: &Path) -> Result<(), HostError> {
        self.pass(true, || LiveHost.rename_new(from, to))
    }
    fn take_away(&self, aside: &Path, seen: &FileVersion) -> Result<(), HostError> {
        self.pass(true, || LiveHost.take_away(aside, seen))
    }
    fn create_directory(&self, path: &Path) -> Result<Option<KnownFile>, HostError> {
        self.pass(true, || LiveHost.create_directory(path))
    }
    fn remove_directory(
        &self,
        path: &Path,
        known: Option<&KnownFile>,
    ) -> Result<Removed, HostError> {
        self.pass(true, || LiveHost.remove_directory(path, known))
    }
    fn locks(&self, lasting: bool) -> Result<Option<LockDirectory>, HostError> {
        match &self.locks {
            Some(locks) => LockDirectory::open(locks).map(Some),
            None => LiveHost.locks(lasting),
        }
    }
    fn identity(&self, path: &Path) -> Result<Option<Identity>, HostError> {
        LiveHost.identity(path)
    }
    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.pass(true, || LiveHost.remove_file(path))
    }
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError> {
        self.pass(true, || LiveHost.remove_tree(dir))
    }
    fn remove_made(&self, path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError> {
        self.pass(true, || LiveHost.remove_made(path, known))
    }
    fn loops(&self, backing: Identity) -> Result<Vec<PathBuf>, HostError> {
        self.pass(false, || LiveHost.loops(backing))
    }
    fn detach_loop(&self, node: &Path, backing: Identity) -> Result<(), HostError> {
        self.pass(true, || LiveHost.detach_loop(node, backing))
    }
    fn kill(&self, process: ProcessId) -> Result<(), HostError> {
        self.pass(true, || LiveHost.kill(process))
    }
}

/// How a machine in memory behaves for commands and writes.
pub trait Twist: Send + Sync {
    /// Answers a command.
    fn run(&self, argv: &[&str]) -> CommandOutput {
        panic!("{argv:?}")
    }

    /// Handles a write to an attribute.
    fn write(&self, rest: &Recorded, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        rest.write_in_place(path, bytes)
    }
}

/// A machine in memory with this behaviour.
pub struct Twisted<T> {
    pub twist: T,
    pub rest: Recorded,
}

impl<T> Twisted<T> {
    pub fn new(twist: T) -> Self {
        let rest = Recorded::new();
        Self { twist, rest }
    }
}

impl<T: Twist> Host for Twisted<T> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.rest.read(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.rest.list(dir)
    }
    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.rest.link(path)
    }
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.rest.realpath(path)
    }
    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.rest.stat(path)
    }
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.rest.statfs(path)
    }
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.rest.open_exclusive(path)
    }
    fn run(&self, argv: &[&OsStr], _limits: Limits) -> Result<CommandOutput, HostError> {
        let words: Vec<_> = argv.iter().map(|word| word.to_str().unwrap()).collect();
        Ok(self.twist.run(&words))
    }
    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.rest.which(name)
    }
}

impl<T: Twist> HostMut for Twisted<T> {
    fn check_writable(&self, path: &Path) -> Result<(), HostError> {
        self.rest.check_writable(path)
    }
    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        self.twist.write(&self.rest, path, bytes)
    }
    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        times: Option<Times>,
    ) -> Result<(), HostError> {
        self.rest.create_like(path, like, bytes, times)
    }
    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError> {
        self.rest.exchange(from, seen)
    }
    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        self.rest.remove_file(path)
    }
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError> {
        self.rest.remove_tree(dir)
    }
    fn remove_made(&self, path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError> {
        self.rest.remove_made(path, known)
    }
    fn loops(&self, backing: Identity) -> Result<Vec<PathBuf>, HostError> {
        self.rest.loops(backing)
    }
    fn detach_loop(&self, node: &Path, backing: Identity) -> Result<(), HostError> {
        self.rest.detach_loop(node, backing)
    }
    fn kill(&self, process: ProcessId) -> Result<(), HostError> {
        self.rest.kill(process)
    }
}

/// Runs a command and returns its output. Fails if the command fails.
pub fn sh(argv: &[&str]) -> String {
    let output = Command::new(argv[0]).args(&argv[1..]).output().unwrap();
    assert!(output.status.success(), "{argv:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

pub fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A loop device on its own file, unmounted and detached on drop.
pub struct LoopDevice(pub String);

impl LoopDevice {
    pub fn new(file: &Path) -> Self {
        Self(sh(&["losetup", "--find", "--show", file.to_str().unwrap()]))
    }
    pub fn name(&self) -> &str {
        self.0.strip_prefix("/dev/").unwrap()
    }
    pub fn queue(&self, attribute: &str) -> String {
        let path = format!("/sys/block/{}/queue/{attribute}", self.name());
        std::fs::read_to_string(path).unwrap().trim().to_owned()
    }
}

impl Drop for LoopDevice {
    fn drop(&mut self) {
        // Unmounts any mount of it, so that the directory can be removed.
        let _ = Command::new("umount")
            .arg(&self.0)
            .stderr(Stdio::null())
            .status();
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// A small file system in memory, unmounted on drop.
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    pub fn new(dir: &Path, size: &str) -> Self {
        let options = format!("size={size},mode=700");
        sh(&[
            "mount",
            "-t",
            "tmpfs",
            "-o",
            &options,
            "none",
            dir.to_str().unwrap(),
        ]);
        Self(dir.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Creates a small ext4 image.
pub fn image(path: &Path) {
    let file = std::fs::File::create(path).unwrap();
    file.set_len(4 << 20).unwrap();
    sh(&["mkfs.ext4", "-q", "-F", path.to_str().unwrap()]);
}

/// Counts the processes whose command line contains these bytes; zombies have none.
pub fn processes_with(text: &str) -> usize {
    let pids = LiveHost.list(Path::new("/proc")).unwrap();
    let line = |pid: &OsString| {
        LiveHost
            .read(&Path::new("/proc").join(pid).join("cmdline"))
            .ok()
    };
    let lines = pids.iter().filter_map(line);
    lines
        .filter(|line| String::from_utf8_lossy(line).contains(text))
        .count()
}

/// Runs a test of this file again, in its own mount and network namespaces. Returns true in the second run. Without
/// root, runs nothing.
pub fn inside(test: &str) -> bool {
    if std::env::var_os("ASSAY_TEST_INSIDE").is_some() {
        return true;
    }
    if !root() {
        assay_testing::skipped("root", "mounts and sysctls of its own need root");
        return false;
    }
    let status = Command::new("unshare")
        .args(["--mount", "--net", "--propagation", "private", "--"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("ASSAY_TEST_INSIDE", "1")
        .status();
    assert!(status.unwrap().success());
    false
}

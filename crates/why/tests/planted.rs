//! Faults planted with the real kernel. Each is judged by the process or group that has it, so that what else the
//! machine does plays no part.
#![allow(
    clippy::disallowed_methods,
    reason = "tests start real programs and make control groups"
)]

use assay_host::{Host, LiveHost};
use assay_testing::skipped;
use assay_why::{
    MachineSnapshot, SlownessAnswer, WatchPace, WatchSubject, WatchWindow, judge_window, watch,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A program and all below it; killed at the end.
struct Planted(Child);

impl Planted {
    fn start(script: &str, group: Option<&Path>) -> Self {
        // The shell enters the group before it runs anything else.
        let enter = group.map_or_else(String::new, |group| {
            format!("echo $$ > {}/cgroup.procs; ", group.display())
        });
        let child = Command::new("sh")
            .args(["-c", &format!("{enter}{script}")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        Self(child)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        let _ = Command::new("sh")
            .args([
                "-c",
                &format!("kill -9 $(cat /proc/{pid}/task/{pid}/children)"),
            ])
            .output();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A control group of this test; removed at the end.
struct Group(PathBuf);

impl Group {
    /// Makes a group below the hierarchy of a controller, of version 1 or 2.
    fn make(controller: &str, name: &str) -> Option<Self> {
        let name = format!("assay-why-test-{name}-{}", std::process::id());
        let unified = Path::new("/sys/fs/cgroup/cgroup.controllers");
        let root = match unified.exists() {
            true => {
                let _ = fs::write(
                    "/sys/fs/cgroup/cgroup.subtree_control",
                    format!("+{controller}"),
                );
                PathBuf::from("/sys/fs/cgroup")
            }
            false => Path::new("/sys/fs/cgroup").join(controller),
        };
        let path = root.join(name);
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }

    /// Sets the first of these files that there is.
    fn set(&self, files: &[(&str, &str)]) -> bool {
        files.iter().any(|(file, value)| {
            let path = self.0.join(file);
            path.exists() && fs::write(path, value).is_ok()
        })
    }

    fn thing(&self) -> WatchSubject {
        let name = self.0.file_name().unwrap().to_str().unwrap();
        WatchSubject::Group(format!("/{name}"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for pid in fs::read_to_string(self.0.join("cgroup.procs"))
            .unwrap_or_default()
            .lines()
        {
            let _ = Command::new("kill").args(["-9", pid]).output();
        }
        for _ in 0..50 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn look_at(thing: &WatchSubject, seconds: u64) -> SlownessAnswer {
    let host: Arc<dyn Host> = Arc::new(LiveHost);
    let mut looks: Vec<MachineSnapshot> = Vec::new();
    let pace = WatchPace::lasting(Duration::from_secs(seconds));
    watch(&host, thing, pace, &|| false, &mut |look| looks.push(look));
    judge_window(&WatchWindow::new(&looks, thing), thing).unwrap()
}

fn names(answer: &SlownessAnswer) -> Vec<&str> {
    answer
        .suspects
        .iter()
        .map(|suspect| suspect.id.as_str())
        .collect()
}

#[test]
fn a_cpu_quota_is_named() {
    let Some(group) = Group::make("cpu", "quota") else {
        return skipped("root", "cannot make a control group for CPUs");
    };
    let quota = [("cpu.max", "2000 100000"), ("cpu.cfs_quota_us", "2000")];
    assert!(group.set(&quota), "no quota can be set");
    let _planted = Planted::start("while :; do :; done", Some(&group.0));
    let answer = look_at(&group.thing(), 3);
    assert_eq!(names(&answer).first(), Some(&"cpu-quota"), "{answer:#?}");
}

#[test]
fn a_memory_limit_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("data");
    let made = Command::new("dd")
        .arg(format!("of={}", file.display()))
        .args(["if=/dev/zero", "bs=1M", "count=96", "oflag=direct"])
        .output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skipped("O_DIRECT", "the temporary directory has no direct writes");
    }
    let Some(group) = Group::make("memory", "memory") else {
        return skipped("root", "cannot make a control group for memory");
    };
    assert!(group.set(&[
        ("memory.max", "33554432"),
        ("memory.limit_in_bytes", "33554432")
    ]));
    let script = format!("while :; do cat {} > /dev/null; done", file.display());
    let _planted = Planted::start(&script, Some(&group.0));
    let answer = look_at(&group.thing(), 3);
    assert!(names(&answer).contains(&"memory-limit"), "{answer:#?}");
}

#[test]
fn a_process_without_a_free_file_is_named() {
    // The shell opens files until it may no more.
    let script = "ulimit -n 20; for i in 3 4 5 6 7 8 9; do eval \"exec $i</dev/null\"; done; ulimit -n 10; \
                  while :; do :; done";
    let planted = Planted::start(script, None);
    let answer = look_at(&WatchSubject::Process(planted.pid()), 2);
    // A limit below sixteen files is no server's.
    assert!(!names(&answer).contains(&"files-exhausted"), "{answer:#?}");
}

#[test]
fn a_stopped_process_is_named() {
    let planted = Planted::start("kill -STOP $$; sleep 60", None);
    let answer = look_at(&WatchSubject::Process(planted.pid()), 2);
    assert_eq!(names(&answer), ["stopped"], "{answer:#?}");
}

#[test]
fn a_process_that_sleeps_has_no_suspect() {
    let planted = Planted::start("sleep 60; true", None);
    let answer = look_at(&WatchSubject::Process(planted.pid()), 2);
    let of_processes: Vec<&str> = answer
        .suspects
        .iter()
        .filter(|suspect| suspect.kind != assay_why::EntityKind::Machine)
        .map(|suspect| suspect.id.as_str())
        .collect();
    assert!(of_processes.is_empty(), "{answer:#?}");
}

/// Children of a process, once there are two.
fn wait_for_two_children(pid: u32) -> Vec<u32> {
    let file = format!("/proc/{pid}/task/{pid}/children");
    for _ in 0..100 {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let children: Vec<u32> = text
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .collect();
        if children.len() == 2 {
            return children;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{file}: no two children");
}

/// Two processes of which one has a lock; the holder does `work`. Returns the suspects of both.
fn suspects_of_a_locked_pair(work: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let lock = dir.path().join("lock");
    let script = format!(
        "exec perl -e 'use Socket; use Fcntl q(:flock); socket(S, PF_INET, SOCK_STREAM, 6); \
         bind(S, sockaddr_in(0, INADDR_LOOPBACK)); listen(S, 5); \
         for (1..2) {{ next if fork; open(L, q(>), $ARGV[0]); flock(L, LOCK_EX); {work}; exit }} sleep 60' '{}'",
        lock.display()
    );
    let planted = Planted::start(&script, None);
    let children = wait_for_two_children(planted.pid());
    let mut all = Vec::new();
    for child in children {
        let answer = look_at(&WatchSubject::Process(child), 2);
        all.extend(names(&answer).into_iter().map(str::to_owned));
    }
    all
}

#[test]
fn a_pool_that_waits_for_connections_has_no_suspect() {
    let idle = suspects_of_a_locked_pair("accept(C, S)");
    assert!(!idle.contains(&"file-lock".to_owned()), "{idle:?}");
    let events = "vec($r, fileno(S), 1) = 1; select($r, undef, undef, 60)";
    let idle = suspects_of_a_locked_pair(events);
    assert!(!idle.contains(&"file-lock".to_owned()), "{idle:?}");
}

#[test]
fn a_program_that_waits_for_a_lock_of_a_sleeping_one_is_named() {
    let locked = suspects_of_a_locked_pair("sleep 60");
    assert!(locked.contains(&"file-lock".to_owned()), "{locked:?}");
}

#[test]
fn a_program_that_waits_for_a_lock_of_a_server_of_its_own_is_named() {
    let server = "socket(T, PF_INET, SOCK_STREAM, 6); bind(T, sockaddr_in(0, INADDR_LOOPBACK)); listen(T, 5); \
                  accept(C, T)";
    let locked = suspects_of_a_locked_pair(server);
    assert!(locked.contains(&"file-lock".to_owned()), "{locked:?}");
}

#[test]
fn programs_that_wait_for_a_frozen_file_system_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let script = format!(
        "set -e; truncate -s 32M {place}/disk; mkfs.ext4 -q {place}/disk; mkdir {place}/mnt; \
         mount -o loop {place}/disk {place}/mnt; fsfreeze -f {place}/mnt"
    );
    let made = Command::new("sh").args(["-c", &script]).output().unwrap();
    let undo = || {
        let script = format!("fsfreeze -u {place}/mnt; umount {place}/mnt");
        let _ = Command::new("sh").args(["-c", &script]).output();
    };
    if !made.status.success() {
        undo();
        return skipped("loop-device", "cannot freeze a file system of one's own");
    }
    let planted = Planted::start(&format!("echo x > {place}/mnt/x"), None);
    let answer = look_at(&WatchSubject::Process(planted.pid()), 2);
    undo();
    assert_eq!(
        names(&answer).first(),
        Some(&"file-system-frozen"),
        "{answer:#?}"
    );
}

/// A machine whose file of one process never answers.
struct Hanging;

impl Host for Hanging {
    fn read(&self, path: &Path) -> Result<Vec<u8>, assay_host::HostError> {
        if path.ends_with("diskstats") {
            std::thread::sleep(Duration::from_secs(3600));
        }
        LiveHost.read(path)
    }
    fn list(&self, dir: &Path) -> Result<Vec<std::ffi::OsString>, assay_host::HostError> {
        LiveHost.list(dir)
    }
    fn link(&self, path: &Path) -> Result<PathBuf, assay_host::HostError> {
        LiveHost.link(path)
    }
    fn realpath(&self, path: &Path) -> Result<PathBuf, assay_host::HostError> {
        LiveHost.realpath(path)
    }
    fn stat(&self, path: &Path) -> Result<assay_host::Stat, assay_host::HostError> {
        LiveHost.stat(path)
    }
    fn statfs(&self, path: &Path) -> Result<assay_host::StatFs, assay_host::HostError> {
        LiveHost.statfs(path)
    }
    fn open_exclusive(&self, path: &Path) -> Result<(), assay_host::HostError> {
        LiveHost.open_exclusive(path)
    }
    fn run(
        &self,
        argv: &[&std::ffi::OsStr],
        limits: assay_host::Limits,
    ) -> Result<assay_host::CommandOutput, assay_host::HostError> {
        LiveHost.run(argv, limits)
    }
    fn which(&self, name: &std::ffi::OsStr) -> Option<PathBuf> {
        LiveHost.which(name)
    }
}

#[test]
fn a_read_that_never_returns_is_given_up_and_named() {
    let host: Arc<dyn Host> = Arc::new(Hanging);
    let begin = Instant::now();
    let mut looks: Vec<MachineSnapshot> = Vec::new();
    let pace = WatchPace {
        length: Duration::from_secs(4),
        interval: Duration::from_millis(500),
        deadline: Duration::from_millis(500),
    };
    watch(
        &host,
        &WatchSubject::Machine,
        pace,
        &|| false,
        &mut |look| looks.push(look),
    );
    assert!(begin.elapsed() < Duration::from_secs(60));
    assert!(looks.len() >= 2, "{}", looks.len());
    let missing: Vec<&String> = looks.iter().flat_map(|look| &look.missing).collect();
    assert!(
        missing.iter().any(|text| text.contains("/proc/diskstats")),
        "{missing:?}"
    );
}

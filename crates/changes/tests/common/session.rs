//! Sessions on a machine in memory, and a session whose process ends.

use assay_changes::{ChangeSession, Journal, Made, Switch};
use assay_host::{Host as _, HostMut, LiveHost, Recorded};
use assay_model::change::Setting;
use std::fs;
use std::path::{Path, PathBuf};

pub const SWAPPINESS: &str = "/proc/sys/vm/swappiness";

pub fn sysctl(key: &str) -> Setting {
    Setting::Sysctl { key: key.into() }
}

pub fn machine() -> Recorded {
    Recorded::new()
        .file(SWAPPINESS, "60\n")
        .file("/proc/sys/vm/laptop_mode", "0\n")
}

pub fn value(host: &dyn HostMut) -> String {
    host.read_text(Path::new(SWAPPINESS))
        .unwrap()
        .trim()
        .to_owned()
}

/// Changes the setting as another program.
pub fn meddle(host: &dyn HostMut, value: &str) {
    host.write_in_place(Path::new(SWAPPINESS), value.as_bytes())
        .unwrap();
}

/// Leaves a session as `kill -9` does: no destructor runs, and the kernel releases its lock. The session has
/// set swappiness to 10 and recorded a file.
pub fn die(journal: &Journal, host: &Recorded, target: &str) {
    let session = Box::leak(Box::new(journal.begin("trial 7", target).unwrap()));
    session.made(&Made::File("/srv".into())).unwrap_err();
    session
        .made(&Made::File(Path::new("/srv").join(session.name("x"))))
        .unwrap();
    let switch = Switch::open(session, host, &sysctl("vm.swappiness")).unwrap();
    assert_eq!(switch.set(Some("10")).unwrap(), "10");
    std::mem::forget(switch);
    bury(session);
}

/// Releases the locks of a session as the kernel does when the process ends.
pub fn bury(session: &ChangeSession) {
    let dir = fs::canonicalize(session.dir()).unwrap();
    let locks = [dir.join("lock"), dir];
    for fd in fs::read_dir("/proc/self/fd").unwrap().flatten() {
        if fs::read_link(fd.path()).is_ok_and(|target| locks.contains(&target)) {
            let fd: i32 = fd.file_name().to_str().unwrap().parse().unwrap();
            let held = rustix_file(fd);
            rustix::fs::flock(&held, rustix::fs::FlockOperation::Unlock).unwrap();
        }
    }
}

/// Returns the same open file under another descriptor; both share the lock.
fn rustix_file(fd: i32) -> rustix::fd::OwnedFd {
    let pid = rustix::process::getpid();
    let handle = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).unwrap();
    rustix::process::pidfd_getfd(&handle, fd, rustix::process::PidfdGetfdFlags::empty()).unwrap()
}

pub fn journal() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    (dir, journal)
}

pub fn sessions(dir: &Path) -> Vec<PathBuf> {
    let names = LiveHost.list(&dir.join("sessions")).unwrap();
    names
        .into_iter()
        .map(|name| dir.join("sessions").join(name))
        .collect()
}

/// Returns a journal line with its number and checksum.
pub fn sealed(number: usize, inner: &str) -> String {
    let line = format!("{{\"n\":{number},{inner}");
    let mut sum = blake3::hash(line.as_bytes()).to_hex().to_string();
    sum.truncate(16);
    format!("{line},\"sum\":\"{sum}\"}}\n")
}

/// Replaces text in the lines of a journal and computes the checksums again, as another user could.
pub fn reseal(text: &str, from: &str, to: &str) -> String {
    let lines = text.lines().enumerate().map(|(number, line)| {
        let inner = line.replace(from, to);
        let inner = inner.split_once(',').unwrap().1;
        sealed(number, inner.rsplit_once(",\"sum\"").unwrap().0)
    });
    lines.collect()
}

//! Finds and ends QEMU processes by their working directory.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

/// Kills the QEMU processes whose working directory is `dir`, and waits up to `limit` until the kernel has closed their
/// files. A guest's QEMU works in the guest's directory. It is found by this directory and not by its process number,
/// which may have been reused.
///
/// # Errors
/// A process does not end in time, or as pidfd_open(2) and pidfd_send_signal(2).
pub(crate) fn kill_all_in(dir: &Path, limit: Duration) -> io::Result<()> {
    let Ok(dir) = dir.canonicalize() else {
        return Ok(());
    };
    let deadline = Instant::now() + limit;
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        if !is_qemu_in(&entry.path(), &dir) {
            continue;
        }
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Err(Errno::SRCH) => continue,
            handle => handle?,
        };
        // The handle may be that of a new process with the number of an ended one.
        if !is_qemu_in(&entry.path(), &dir) {
            continue;
        }
        match pidfd_send_signal(&handle, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
        wait_for_end(&handle, deadline)?;
    }
    Ok(())
}

/// Returns whether a process is a QEMU that works in `dir`. `process` is the directory of the process in /proc.
fn is_qemu_in(process: &Path, dir: &Path) -> bool {
    let works_there = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == dir);
    works_there && has_name_of_qemu(process)
}

fn has_name_of_qemu(process: &Path) -> bool {
    const NAME: &[u8] = b"qemu-system";
    let command = fs::read(process.join("cmdline")).unwrap_or_default();
    let program = command.split(|byte| *byte == 0).next().unwrap_or_default();
    // A process that is ending has no memory and so no command line, but its files are still open.
    let name = match program.is_empty() {
        true => fs::read(process.join("comm")).unwrap_or_default(),
        false => program.to_vec(),
    };
    name.windows(NAME.len()).any(|part| part == NAME)
}

/// Waits until all threads of a process have ended.
fn wait_for_end(handle: &OwnedFd, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let time = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(handle, PollFlags::IN)];
        match poll(&mut fds, Some(&time)) {
            Ok(0) => return Err(io::Error::other("its QEMU cannot be killed")),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command};

    fn start(program: &Path, argument_zero: &str, dir: &Path) -> Child {
        let mut command = Command::new(program);
        command.arg0(argument_zero).arg("600").current_dir(dir);
        command.spawn().unwrap()
    }

    /// Returns whether a child process still runs, and ends it.
    fn runs(mut child: Child) -> bool {
        let runs = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        runs
    }

    #[test]
    fn only_qemu_in_the_directory_is_killed_and_has_ended_then() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let sleep = Path::new("/bin/sleep");
        let named = other.path().join("qemu-system-x86");
        fs::copy(sleep, &named).unwrap();
        let ended = [
            start(sleep, "/usr/bin/qemu-system-x86_64", dir.path()),
            // Like a process that is ending: without a command line.
            start(&named, "", dir.path()),
        ];
        let running = [
            start(sleep, "sleep", dir.path()),
            start(sleep, "qemu-system-x86_64", other.path()),
        ];
        kill_all_in(dir.path(), Duration::from_secs(60)).unwrap();
        assert_eq!(ended.map(runs), [false, false]);
        assert_eq!(running.map(runs), [true, true]);
        kill_all_in(&dir.path().join("missing"), Duration::ZERO).unwrap();
    }
}

//! Child processes that do not outlive us, and processes found by where they work.

use rustix::process::{Pid, Signal};
use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// The kernel kills the child when the thread that starts it ends, however it ends
/// (`PR_SET_PDEATHSIG`, prctl(2)).
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to set PR_SET_PDEATHSIG in the child"
)]
pub(crate) fn die_with_us(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one prctl system call and nothing else; it
    // does not allocate and takes no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
}

/// The child gets a session of its own, so that neither Ctrl-C nor the end of the terminal
/// reaches it.
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to call setsid in the child"
)]
pub(crate) fn survive_us(command: &mut Command) {
    // SAFETY: as above, one system call.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

/// The child inherits these files and holds them open, under whatever number.
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to clear FD_CLOEXEC in the child alone"
)]
pub(crate) fn hand_over(command: &mut Command, files: Vec<File>) {
    // SAFETY: as above, one system call for each file.
    unsafe {
        command.pre_exec(move || {
            for file in &files {
                rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?;
            }
            Ok(())
        });
    }
}

/// Processes of QEMU whose working directory is `dir`: a guest's QEMU works in its directory, so
/// that it is found without a number that might have been given to another process since.
pub(crate) fn working_in(dir: &Path) -> Vec<Pid> {
    let Ok(dir) = dir.canonicalize() else {
        return Vec::new();
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let there = fs::read_link(entry.path().join("cwd")).ok()? == dir;
            let command = fs::read(entry.path().join("cmdline")).ok()?;
            let program = command.split(|byte| *byte == 0).next()?;
            let qemu = program
                .windows(b"qemu-system".len())
                .any(|word| word == b"qemu-system");
            (there && qemu).then(|| Pid::from_raw(pid)).flatten()
        })
        .collect()
}

/// Start time of a process in clock ticks since boot, field 22 of proc_pid_stat(5): with it a
/// process number names one process for ever. None when there is no such process, or only its
/// remains.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

/// Whether that process runs.
pub(crate) fn is_alive(pid: u32, start: u64) -> bool {
    pid != 0 && start_time(pid) == Some(start)
}

//! Running a command to its end or to its time limit.

use crate::error::{HostError, command_line};
use crate::{CommandOutput, Limits, MAX_BYTES};
use rustix::process::Signal;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Runs `program` with the arguments `argv[1..]`.
pub(crate) fn run(
    program: &Path,
    argv: &[&OsStr],
    limits: Limits,
) -> Result<CommandOutput, HostError> {
    let failed = |reason: String| HostError::Command {
        argv: command_line(argv),
        reason,
    };
    let timeout = || HostError::Timeout {
        argv: command_line(argv),
        limit: limits.timeout,
    };
    let deadline = Instant::now() + limits.timeout;
    let mut command = Command::new(program);
    die_with_us(&mut command);
    let mut child = command
        .args(argv.iter().skip(1))
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .current_dir("/")
        // A group of its own, so that its children end with it.
        .process_group(0)
        .spawn()
        .map_err(|error| failed(error.to_string()))?;
    let stdout = reader(child.stdout.take());
    let stderr = reader(child.stderr.take());
    let ended = (|| {
        let stdout = receive(&stdout, deadline)
            .ok_or_else(timeout)?
            .map_err(failed)?;
        let stderr = receive(&stderr, deadline)
            .ok_or_else(timeout)?
            .map_err(failed)?;
        let status = wait(&mut child, deadline)
            .map_err(|error| failed(error.to_string()))?
            .ok_or_else(timeout)?;
        let status = status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        Ok(CommandOutput {
            status,
            stdout,
            stderr,
        })
    })();
    if ended.is_err() {
        kill(&mut child);
    }
    ended
}

/// The kernel kills the command when the thread that waits for it ends: a command that outlives a
/// killed assay could still change something after another assay has put everything back.
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to set PR_SET_PDEATHSIG in the child"
)]
fn die_with_us(command: &mut Command) {
    let us = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes two system calls and nothing else; it does
    // not allocate and takes no lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            match rustix::process::getppid() == Some(us) {
                true => Ok(()),
                // It ended before the wish was known.
                false => Err(rustix::io::Errno::SRCH.into()),
            }
        });
    }
}

type Bytes = Result<Vec<u8>, String>;

/// Reads a pipe to its end on a thread of its own, so that neither pipe fills up and blocks.
fn reader(pipe: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = pipe.map_or(Ok(0), |pipe| {
            pipe.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes)
        });
        let outcome = match read {
            Ok(_) if bytes.len() > MAX_BYTES => {
                Err(format!("wrote more than {} MiB", MAX_BYTES >> 20))
            }
            Ok(_) => Ok(bytes),
            Err(error) => Err(error.to_string()),
        };
        let _ = sender.send(outcome);
    });
    receiver
}

fn receive(receiver: &mpsc::Receiver<Bytes>, deadline: Instant) -> Option<Bytes> {
    receiver
        .recv_timeout(deadline.saturating_duration_since(Instant::now()))
        .ok()
}

/// Waits for a child whose pipes are closed already, which nearly always has ended too.
fn wait(child: &mut Child, deadline: Instant) -> std::io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        let _ = rustix::process::kill_process_group(group, Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Host as _, Live};

    fn argv<'a>(words: &'a [&'a str]) -> Vec<&'a OsStr> {
        words.iter().map(OsStr::new).collect()
    }

    #[test]
    fn output_and_status_are_kept_apart() {
        let script = "echo out; echo err >&2; exit 3";
        let found = Live
            .run(&argv(&["sh", "-c", script]), Limits::default())
            .unwrap();
        assert_eq!((found.status, found.text().as_str()), (3, "out\n"));
        assert_eq!(found.complaint(), "exit status 3: err");
    }

    #[test]
    fn much_output_on_both_pipes_does_not_block() {
        let script = "head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2";
        let found = Live
            .run(&argv(&["sh", "-c", script]), Limits::default())
            .unwrap();
        assert_eq!(
            (found.stdout.len(), found.stderr.len()),
            (1_000_000, 1_000_000)
        );
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_its_children() {
        let limits = Limits {
            timeout: Duration::from_millis(200),
        };
        // The inner sleep keeps the pipe open; it has to go as well.
        let error = Live
            .run(&argv(&["sh", "-c", "sleep 77.7 & sleep 77.7"]), limits)
            .unwrap_err();
        assert!(matches!(error, HostError::Timeout { .. }), "{error}");
        let mut left = 1;
        for _ in 0..100 {
            let processes = Live.list(Path::new("/proc")).unwrap();
            left = processes
                .iter()
                .filter_map(|pid| {
                    Live.read(&Path::new("/proc").join(pid).join("cmdline"))
                        .ok()
                })
                .filter(|line| line.as_slice() == b"sleep\x0077.7\0")
                .count();
            if left == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(left, 0);
    }

    /// The child of the next test: waits for a command until it is killed.
    #[test]
    fn waiter() {
        if std::env::var_os("ASSAY_TEST_WAIT").is_some() {
            let _ = Live.run(&argv(&["sleep", "66.6"]), Limits::default());
        }
    }

    #[test]
    fn a_command_dies_with_the_process_that_waits_for_it() {
        let sleeping = || {
            let processes = Live.list(Path::new("/proc")).unwrap();
            let line = |pid: &std::ffi::OsString| {
                let path = Path::new("/proc").join(pid).join("cmdline");
                Live.read(&path).ok()
            };
            let lines = processes.iter().filter_map(line);
            lines
                .filter(|line| line.ends_with(b"sleep\x0066.6\0"))
                .count()
        };
        let until = |count: usize| {
            (0..500).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                sleeping() == count
            })
        };
        let mut waiter = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "command::tests::waiter"])
            .env("ASSAY_TEST_WAIT", "1")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let began = until(1);
        waiter.kill().unwrap();
        waiter.wait().unwrap();
        assert!(began && until(0));
    }

    #[test]
    fn a_command_that_is_not_installed_is_absent() {
        let error = Live
            .run(&argv(&["assay-no-such-command"]), Limits::default())
            .unwrap_err();
        assert!(error.is_absent());
        assert_eq!(
            error.to_string(),
            "assay-no-such-command: command not found"
        );
    }

    #[test]
    fn speaks_english_and_reads_nothing() {
        let found = Live
            .run(&argv(&["sh", "-c", "echo $LC_ALL; cat"]), Limits::default())
            .unwrap();
        assert_eq!(found.text(), "C\n");
    }
}

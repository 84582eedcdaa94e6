//! A command as a load: run again and again, timed from spawn to exit.

use crate::Cancel;
use crate::measured::{Done, LOOK, LoadError, Measured, Tally, Timing, finish, rest};
use assay_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// What to run.
#[derive(Clone, Debug)]
pub struct Request {
    /// The program and its arguments; no shell looks at them.
    pub argv: Vec<OsString>,
    /// How long.
    pub timing: Timing,
}

/// Runs the command, one after the other. Standard input is empty; output is read and thrown away
/// (some programs do less when they see that it goes to /dev/null). What a command leaves running
/// is killed with it.
///
/// # Errors
/// No such command, or not one run that succeeded. Runs that failed among others are in
/// `Measured::errors`.
pub fn run(request: &Request, cancel: &Cancel) -> Result<Measured, LoadError> {
    let Some(program) = request.argv.first() else {
        return Err(LoadError::Request {
            what: "command".to_owned(),
            why: "no program given".to_owned(),
        });
    };
    let program = program.to_string_lossy().into_owned();
    let begin = Instant::now();
    let mut tally = Tally::new(&request.timing, begin);
    let mut cpu = Duration::ZERO;
    while tally.goes_on(Instant::now()) && !cancel.is_cancelled() {
        let start = Instant::now();
        let mut child = start_child(&request.argv).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => LoadError::NoCommand {
                program: program.clone(),
            },
            _ => LoadError::Start {
                program: program.clone(),
                source,
            },
        })?;
        let ended = wait(&mut child, start, request.timing.limit, cancel);
        let ended = ended.map_err(|source| LoadError::Io {
            what: "waiting for a command",
            source,
        })?;
        let Some(ended) = ended else { break };
        cpu += ended.cpu;
        let done = ended.judge(&program, request.timing.limit);
        let failed = done.is_err();
        tally.record(start, ended.at, done);
        if failed {
            rest(cancel);
        }
    }
    finish("command", vec![tally], begin.elapsed(), cpu, cancel)
}

fn start_child(argv: &[OsString]) -> io::Result<Child> {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    die_with_us(&mut command);
    command.spawn()
}

/// The kernel kills the command when the thread that started it ends, so that `kill -9` of assay
/// leaves no load behind.
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to set PR_SET_PDEATHSIG in the child"
)]
fn die_with_us(command: &mut Command) {
    // SAFETY: between fork and exec the closure makes one prctl system call and nothing else; it
    // does not allocate and takes no lock.
    unsafe {
        command.pre_exec(|| {
            rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        });
    }
}

/// How one run ended.
struct Ended {
    at: Instant,
    status: ExitStatus,
    timed_out: bool,
    stderr: Vec<u8>,
    cpu: Duration,
}

impl Ended {
    fn judge(&self, program: &str, limit: Nanos) -> Done {
        if self.timed_out {
            return Err(LoadError::TimedOut {
                what: program.to_owned(),
                limit,
            });
        }
        if self.status.success() {
            return Ok(0);
        }
        let stderr = String::from_utf8_lossy(&self.stderr);
        let stderr = stderr.lines().map(str::trim).find(|line| !line.is_empty());
        Err(LoadError::Exit {
            program: program.to_owned(),
            status: match (self.status.code(), self.status.signal()) {
                (Some(code), _) => format!("exit status {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or(0)),
            },
            stderr: stderr.unwrap_or_default().to_owned(),
        })
    }
}

/// An output of the command; what is read is thrown away but for the start.
struct Pipe {
    /// `None` at its end.
    file: Option<File>,
    start: Vec<u8>,
}

impl Pipe {
    /// Kept of standard error for a message.
    const KEPT: usize = 4096;

    fn new(fd: Option<OwnedFd>) -> io::Result<Self> {
        if let Some(fd) = &fd {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(Self {
            file: fd.map(File::from),
            start: Vec::new(),
        })
    }

    /// Takes what is there, a few buffers at a time.
    fn drain(&mut self) {
        let mut buffer = [0; 16 << 10];
        for _ in 0..16 {
            let Some(file) = &mut self.file else { return };
            match file.read(&mut buffer) {
                Ok(0) => self.file = None,
                Ok(n) => {
                    let room = Self::KEPT - self.start.len();
                    self.start.extend(&buffer[..n.min(room)]);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.file = None,
            }
        }
    }
}

/// Takes the ended process from the kernel, with its CPU time and that of the children it waited
/// for.
#[allow(unsafe_code, reason = "only wait4 tells the CPU time of one child")]
fn reap(pid: Pid) -> io::Result<(ExitStatus, Duration)> {
    let mut status = 0;
    // SAFETY: an all-zero rusage is a valid value of a struct of integers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both pointers are to live values of the types that wait4 fills in.
    let waited = unsafe { libc::wait4(pid.as_raw_nonzero().get(), &mut status, 0, &mut usage) };
    if waited < 0 {
        return Err(io::Error::last_os_error());
    }
    let time = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    Ok((
        ExitStatus::from_raw(status),
        time(usage.ru_utime) + time(usage.ru_stime),
    ))
}

/// Waits for the end and drains the output; kills at the limit and when cancelled (`None`).
fn wait(
    child: &mut Child,
    start: Instant,
    limit: Nanos,
    cancel: &Cancel,
) -> io::Result<Option<Ended>> {
    let pid = Pid::from_child(child);
    let handle = pidfd_open(pid, PidfdFlags::empty())?;
    let mut pipes = [
        Pipe::new(child.stdout.take().map(OwnedFd::from))?,
        Pipe::new(child.stderr.take().map(OwnedFd::from))?,
    ];
    let limit = Duration::from(limit);
    let mut stopped = None;
    let at = loop {
        let left = limit.saturating_sub(start.elapsed()).min(LOOK);
        let slice = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(left.as_nanos().max(1_000_000) as u32),
        };
        let mut fds = vec![PollFd::new(&handle, PollFlags::IN)];
        let open = pipes.iter().filter_map(|pipe| pipe.file.as_ref());
        fds.extend(open.map(|file| PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)));
        match poll(&mut fds, Some(&slice)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ended = !fds[0].revents().is_empty();
        let now = Instant::now();
        drop(fds);
        pipes.iter_mut().for_each(Pipe::drain);
        if ended {
            break now;
        }
        if stopped.is_none() && (cancel.is_cancelled() || now - start >= limit) {
            stopped = Some(cancel.is_cancelled());
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
        }
    };
    // What it left running in its group goes too.
    let _ = rustix::process::kill_process_group(pid, Signal::KILL);
    let (status, cpu) = reap(pid)?;
    let [_, stderr] = pipes;
    Ok((stopped != Some(true)).then(|| Ended {
        at,
        status,
        timed_out: stopped == Some(false),
        stderr: stderr.start,
        cpu,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    fn request(argv: &[&[u8]], washout: u64, runtime: u64) -> Request {
        Request {
            argv: argv
                .iter()
                .map(|a| OsStr::from_bytes(a).to_owned())
                .collect(),
            timing: Timing {
                washout: Nanos(washout * 1_000_000),
                runtime: Nanos(runtime * 1_000_000),
                limit: Nanos(2_000_000_000),
            },
        }
    }

    #[test]
    fn a_real_command_is_counted() {
        let request = request(
            &[b"sh", b"-c", b"sleep 0.02; echo out; echo err >&2"],
            100,
            400,
        );
        let measured = run(&request, &Cancel::default()).unwrap();
        let io = measured.job.read.unwrap();
        assert!(io.ios > 0 && io.lat.n == io.ios && io.lat.histogram.count() == io.ios);
        // Sleeping takes at least as long as asked.
        assert!(io.lat.min >= 20_000_000 && io.runtime.0 >= 20_000_000 * io.ios);
        assert!(measured.cpu.0 > 0 && measured.errors.is_empty() && !measured.cancelled);
    }

    #[test]
    fn arguments_reach_the_command_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join(OsStr::from_bytes(b"a b;$(c)\\'\"\xff\n"));
        std::fs::write(&odd, "").unwrap();
        let request = request(&[b"test", b"-f", odd.as_os_str().as_bytes()], 0, 1);
        run(&request, &Cancel::default()).unwrap();
    }

    #[test]
    fn what_fails_says_how() {
        let missing = run(&request(&[b"/no/such/program"], 0, 1), &Cancel::default());
        assert!(matches!(missing, Err(LoadError::NoCommand { .. })));
        assert!(run(&request(&[], 0, 1), &Cancel::default()).is_err());
        let failing = request(&[b"sh", b"-c", b"echo ' why' >&2; exit 3"], 0, 20);
        let error = run(&failing, &Cancel::default()).unwrap_err();
        assert_eq!(error.to_string(), "sh: ended with exit status 3: why");
        let killed = request(&[b"sh", b"-c", b"kill -9 $$"], 0, 20);
        let error = run(&killed, &Cancel::default()).unwrap_err();
        assert_eq!(error.to_string(), "sh: ended with signal 9");
    }

    #[test]
    fn failures_among_successes_are_counted_apart() {
        let dir = tempfile::tempdir().unwrap();
        let flip = dir.path().join("flip");
        let script = b"rmdir \"$1\" 2>/dev/null || { mkdir \"$1\"; exit 1; }";
        let path = flip.as_os_str().as_bytes();
        let measured = run(
            &request(&[b"sh", b"-c", script, b"sh", path], 0, 200),
            &Cancel::default(),
        );
        let measured = measured.unwrap();
        assert_eq!(measured.errors[0].kind, "exit-status");
        assert!(measured.errors[0].first.contains("exit status 1"));
        let good = measured.job.read.unwrap().ios;
        assert!(good.abs_diff(measured.errors[0].count) <= 1);
    }

    #[test]
    fn one_that_hangs_is_killed_with_what_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let script = b"sleep 1000 & echo $! > \"$1\"; wait";
        let path = file.as_os_str().as_bytes();
        let mut hanging = request(&[b"sh", b"-c", script, b"sh", path], 0, 1);
        hanging.timing.limit = Nanos(300_000_000);
        let error = run(&hanging, &Cancel::default()).unwrap_err();
        assert!(matches!(error, LoadError::TimedOut { .. }), "{error}");
        let pid = std::fs::read_to_string(&file).unwrap();
        let stat = format!("/proc/{}/stat", pid.trim());
        // It ends when the kernel gets to it; a zombie waits for whoever adopted it.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn much_output_does_not_block_it() {
        let request = request(&[b"head", b"-c", b"3000000", b"/dev/zero"], 0, 1);
        assert!(run(&request, &Cancel::default()).is_ok());
    }

    #[test]
    fn cancelling_ends_it() {
        let cancel = Cancel::default();
        let later = cancel.clone();
        let thread = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            later.cancel();
        });
        let mut request = request(&[b"sleep", b"100"], 0, 100);
        request.timing.limit = Nanos(200_000_000_000);
        let measured = run(&request, &cancel).unwrap();
        assert!(measured.cancelled && measured.job.read.unwrap().ios == 0);
        thread.join().unwrap();
    }
}

//! Starts all programs that assay runs. Unless intended otherwise, the programs and their children end with assay.
//!
//! Every program has a process group of its own. Ctrl-C in the terminal therefore reaches only assay, which ends its
//! programs in order. A signal to the group also reaches the program's children. If assay is killed, the kernel kills
//! the program (`PR_SET_PDEATHSIG`, prctl(2)) but not its children. A program that forks is therefore started with
//! [`Dies::Asked`], or in a namespace that ends with it (`unshare --kill-child`).

mod collect;
#[cfg(test)]
mod tests;

pub use collect::{Collected, Keep, Leftovers, StopQuery};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, mpsc};
use std::time::{Duration, Instant};

/// Creates an unnamed file with this content that only this process and its children can read. The file is in memory.
/// If a sandbox forbids this, the file is in the directory for temporary files.
fn create_unnamed_file(bytes: &[u8]) -> io::Result<File> {
    let made = rustix::fs::memfd_create("input", MemfdFlags::CLOEXEC);
    let mut file = match made {
        Err(Errno::NOSYS | Errno::PERM) => {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            let private = Mode::RUSR | Mode::WUSR;
            rustix::fs::open(std::env::temp_dir(), flags, private)
        }
        made => made,
    }
    .map(File::from)?;
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// When a program is ended at the latest. Dropping its [`Running`] also ends the program, except for
/// [`Dies::OnItsOwn`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dies {
    /// The program is killed when the thread that started it ends. For programs for which this thread waits. It needs
    /// no extra thread, which would add to the measured time, and the program has the thread's view of mounts.
    WithThread,
    /// The program is killed when assay ends. For servers that one thread starts and other threads use. They have the
    /// view of mounts with which assay started.
    WithAssay,
    /// Like [`Dies::WithThread`], but with SIGTERM. A master process can therefore end its workers, even those outside
    /// of its process group.
    Asked,
    /// The program continues after assay has ended. It has a session of its own, so that it survives Ctrl-C and the end
    /// of the terminal.
    OnItsOwn,
}

/// Time between SIGTERM and SIGKILL when assay ends a program.
const END_LIMIT: Duration = Duration::from_secs(3);

/// A program that assay started.
#[derive(Debug)]
pub struct Running {
    child: Child,
    dies: Dies,
    /// Process descriptor (pidfd), which becomes readable when the program ends; `None` before Linux 5.3.
    handle: Option<OwnedFd>,
    ended: Option<ProgramEnd>,
}

/// How a program ended, and the CPU time that it used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProgramEnd {
    /// Exit status or signal.
    pub status: ExitStatus,
    /// CPU time of the program and of those children for which it waited (getrusage(2)).
    pub cpu: Duration,
}

impl ProgramEnd {
    /// Returns the exit status. As in shells, it is 128 + signal number if a signal ended the program.
    #[must_use]
    pub fn code(&self) -> i32 {
        let signal = || 128 + self.status.signal().unwrap_or(0);
        self.status.code().unwrap_or_else(signal)
    }

    /// Returns whether the exit status is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status.success()
    }
}

impl std::fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.status.code(), self.status.signal()) {
            (Some(code), _) => write!(f, "exit status {code}"),
            (None, signal) => write!(f, "signal {}", signal.unwrap_or(0)),
        }
    }
}

impl Running {
    /// Starts a program with empty standard input. The caller sets output, environment and directory of the command.
    ///
    /// # Errors
    /// As fork(2) and execve(2).
    pub fn start(mut command: Command, dies: Dies) -> io::Result<Self> {
        command.stdin(Stdio::null());
        Self::begin(command, dies)
    }

    /// Like [`Running::start`], with a file as standard input.
    ///
    /// # Errors
    /// As fork(2) and execve(2).
    pub fn start_with_input(mut command: Command, input: File, dies: Dies) -> io::Result<Self> {
        command.stdin(input);
        Self::begin(command, dies)
    }

    /// Like [`Running::start`], with bytes in an unnamed file as standard input.
    ///
    /// # Errors
    /// As fork(2) and execve(2); the file cannot be created.
    pub fn start_with_bytes(command: Command, input: &[u8], dies: Dies) -> io::Result<Self> {
        let input = create_unnamed_file(input).map_err(|error| {
            let what = format!("no file without a name for what it reads: {error}");
            io::Error::new(error.kind(), what)
        })?;
        Self::start_with_input(command, input, dies)
    }

    fn begin(mut command: Command, dies: Dies) -> io::Result<Self> {
        match dies {
            Dies::OnItsOwn => own_session(&mut command),
            Dies::Asked => die_with_us(&mut command, Signal::TERM),
            Dies::WithThread | Dies::WithAssay => die_with_us(&mut command, Signal::KILL),
        }
        let child = match dies {
            Dies::WithAssay => start_on_lasting_thread(command)?,
            _ => command.spawn()?,
        };
        let handle = rustix::process::pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        Ok(Self {
            child,
            dies,
            handle: handle.ok(),
            ended: None,
        })
    }

    /// Returns the process number, which is also the number of the process group.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn number(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until the program ends or a signal arrives, at most for `time`. Returns whether the program has ended.
    ///
    /// # Errors
    /// As poll(2) and waitid(2).
    pub fn wait(&self, time: Duration) -> io::Result<bool> {
        if self.ended.is_some() {
            return Ok(true);
        }
        self.pause([], time)?;
        self.has_ended()
    }

    /// Returns how the program ended; `None` if it is still running. Does not wait.
    ///
    /// # Errors
    /// As waitid(2).
    pub fn ended(&mut self) -> io::Result<Option<ProgramEnd>> {
        match self.ended.is_some() || self.has_ended()? {
            true => self.reap().map(Some),
            false => Ok(None),
        }
    }

    /// Sends a signal to the program's process group. Does nothing if the program is known to have ended, because the
    /// process number may already be in use again.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            let _ = rustix::process::kill_process_group(self.number(), signal);
        }
    }

    /// Kills the program's process group and reaps the program.
    ///
    /// # Errors
    /// As wait4(2).
    pub fn kill(&mut self) -> io::Result<ProgramEnd> {
        self.signal(Signal::KILL);
        self.reap()
    }

    /// Waits until the program ends, however long it takes, and reaps it.
    ///
    /// # Errors
    /// As wait4(2).
    #[allow(unsafe_code, reason = "only wait4 tells the CPU time of one child")]
    pub fn reap(&mut self) -> io::Result<ProgramEnd> {
        if let Some(ended) = self.ended {
            return Ok(ended);
        }
        let pid = self.number().as_raw_nonzero().get();
        let mut status = 0;
        // SAFETY: an all-zero rusage is a valid value of a struct of integers.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both pointers are to live values of the types that wait4 fills in.
        while unsafe { libc::wait4(pid, &mut status, 0, &mut usage) } < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        let time = |time: libc::timeval| {
            let part = |number| u64::try_from(number).unwrap_or(0);
            Duration::from_secs(part(time.tv_sec)) + Duration::from_micros(part(time.tv_usec))
        };
        let ended = ProgramEnd {
            status: ExitStatus::from_raw(status),
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
        };
        self.ended = Some(ended);
        Ok(ended)
    }

    /// Returns whether the program has ended. It remains a zombie, so that its process number is not used again.
    fn has_ended(&self) -> io::Result<bool> {
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        Ok(rustix::process::waitid(WaitId::Pid(self.number()), peek)?.is_some())
    }

    /// Sleeps until the program ends, a pipe has data, a signal arrives, or the time is over.
    fn pause<'a>(
        &'a self,
        pipes: impl IntoIterator<Item = BorrowedFd<'a>>,
        time: Duration,
    ) -> io::Result<()> {
        const BLIND: Duration = Duration::from_millis(10);
        let time = match self.handle {
            Some(_) => time,
            None => time.min(BLIND),
        };
        let time = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let handle = self.handle.as_ref().map(|handle| handle.as_fd());
        let mut fds: Vec<_> = pipes
            .into_iter()
            .chain(handle)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.dies == Dies::OnItsOwn || self.ended.is_some() {
            return;
        }
        if self.dies == Dies::Asked {
            self.signal(Signal::TERM);
            let end = Instant::now() + END_LIMIT;
            let left = || end.saturating_duration_since(Instant::now());
            while !left().is_zero() && matches!(self.wait(left()), Ok(false)) {}
        }
        let _ = self.kill();
    }
}

/// Lets the program inherit these open files. They keep their descriptor numbers.
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to clear FD_CLOEXEC in the child alone"
)]
pub fn hand_over(command: &mut Command, files: Vec<File>) {
    // SAFETY: between fork and exec the closure makes one system call for each file; it does not
    // allocate and takes no lock.
    unsafe {
        command.pre_exec(move || {
            for file in &files {
                rustix::io::fcntl_setfd(file, rustix::io::FdFlags::empty())?;
            }
            Ok(())
        });
    }
}

/// Requests that the kernel sends the signal to the program when the forking thread ends.
#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to set PR_SET_PDEATHSIG in the child"
)]
fn die_with_us(command: &mut Command, signal: Signal) {
    command.process_group(0);
    let us = rustix::process::getpid();
    // SAFETY: between fork and exec the closure makes two system calls and nothing else; it does
    // not allocate and takes no lock.
    unsafe {
        command.pre_exec(move || {
            rustix::process::set_parent_process_death_signal(Some(signal))?;
            match rustix::process::getppid() == Some(us) {
                true => Ok(()),
                // The parent ended before the request took effect.
                false => Err(rustix::io::Errno::SRCH.into()),
            }
        });
    }
}

#[allow(
    unsafe_code,
    reason = "pre_exec is the only way to call setsid in the child"
)]
fn own_session(command: &mut Command) {
    // SAFETY: as above, one system call.
    unsafe {
        command.pre_exec(|| {
            rustix::process::setsid()?;
            Ok(())
        });
    }
}

type Order = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a program from a thread that exists as long as assay, because `PR_SET_PDEATHSIG` refers to the thread that
/// forks.
fn start_on_lasting_thread(command: Command) -> io::Result<Child> {
    static STARTER: OnceLock<Mutex<mpsc::Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (sender, orders) = mpsc::channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, answer) in orders {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, child) = mpsc::channel();
    let gone = || io::Error::other("the thread that starts programs has ended");
    let order = (command, answer);
    match starter.lock() {
        Ok(starter) => starter.send(order).map_err(|_| gone())?,
        Err(_) => return Err(gone()),
    }
    child.recv().map_err(|_| gone())?
}

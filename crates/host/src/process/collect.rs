//! Reads a program's two output pipes while the program runs, so that no full pipe blocks the program.

use super::{ProgramEnd, Running};
use rustix::process::Signal;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Limits of the output, and what happens to processes that the program leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Maximum number of bytes of standard output that are kept.
    pub stdout: usize,
    /// Maximum number of bytes of standard error that are kept.
    pub stderr: usize,
    /// What happens to processes that remain in the program's process group.
    pub leftovers: Leftovers,
}

/// What happens to processes in its process group when a program ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They are killed. For load generators, whose remaining processes would disturb the next measurement.
    Kill,
    /// They continue to run. For administrators' commands, which may have started a service.
    Leave,
}

/// Output of a program that has ended, and how it ended.
#[derive(Debug)]
pub struct Collected {
    /// How the program ended.
    pub ended: ProgramEnd,
    /// Time when the program ended.
    pub at: Instant,
    /// Whether the program was killed because `stop` returned true.
    pub stopped: bool,
    /// Whether an output exceeded its limit.
    pub overfull: bool,
    /// Start of the standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// Start of the standard error, up to the limit.
    pub stderr: Vec<u8>,
}

/// Values that are passed to each call of `stop`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopQuery {
    /// Time at which `stop` is called.
    pub now: Instant,
    /// Whether an output has exceeded its limit.
    pub overfull: bool,
}

/// Maximum time between two calls of `stop`.
const LOOK: Duration = Duration::from_millis(40);

impl Running {
    /// Reads the program's output until the program ends. Calls `stop` several times a second, and kills the process
    /// group if `stop` returns true. Does not wait for other processes that keep a pipe open after the program has
    /// ended.
    ///
    /// # Errors
    /// As poll(2) and wait4(2). The program is killed in this case.
    pub fn collect(
        mut self,
        keep: Keep,
        mut stop: impl FnMut(StopQuery) -> bool,
    ) -> io::Result<Collected> {
        let mut pipes = [
            Pipe::new(self.child.stdout.take().map(OwnedFd::from), keep.stdout)?,
            Pipe::new(self.child.stderr.take().map(OwnedFd::from), keep.stderr)?,
        ];
        let mut stopped = false;
        let at = loop {
            let open = pipes.iter().filter_map(|pipe| pipe.file.as_ref());
            self.pause(open.map(|file| file.as_fd()), LOOK)?;
            let now = Instant::now();
            // This order ensures that everything it wrote before its end is in the pipes.
            let ended = self.has_ended()?;
            pipes.iter_mut().for_each(Pipe::drain);
            if ended {
                break now;
            }
            let overfull = pipes.iter().any(|pipe| pipe.overfull);
            if !stopped && stop(StopQuery { now, overfull }) {
                stopped = true;
                self.signal(Signal::KILL);
            }
        };
        if keep.leftovers == Leftovers::Kill {
            self.signal(Signal::KILL);
        }
        let ended = self.reap()?;
        let [stdout, stderr] = pipes;
        Ok(Collected {
            ended,
            at,
            stopped,
            overfull: stdout.overfull || stderr.overfull,
            stdout: stdout.start,
            stderr: stderr.start,
        })
    }
}

/// An output pipe. Only the start of its content is kept.
struct Pipe {
    /// The open pipe; `None` after the end of the output.
    file: Option<File>,
    start: Vec<u8>,
    keep: usize,
    overfull: bool,
}

impl Pipe {
    fn new(fd: Option<OwnedFd>, keep: usize) -> io::Result<Self> {
        if let Some(fd) = &fd {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(Self {
            file: fd.map(File::from),
            start: Vec::new(),
            keep,
            overfull: false,
        })
    }

    /// Reads available data, a few buffers at a time.
    fn drain(&mut self) {
        let mut buffer = [0; 16 << 10];
        for _ in 0..16 {
            let Some(file) = &mut self.file else { return };
            match file.read(&mut buffer) {
                Ok(0) => self.file = None,
                Ok(n) => {
                    let room = self.keep - self.start.len();
                    self.start.extend(&buffer[..n.min(room)]);
                    self.overfull |= n > room;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.file = None,
            }
        }
    }
}

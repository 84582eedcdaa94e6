//! What a program writes to its two pipes, read while it runs so that neither fills up and blocks.

use super::{ProgramEnd, Running};
use rustix::process::Signal;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// How much of the output is kept, and what happens to what the program leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// First bytes of standard output to keep.
    pub stdout: usize,
    /// First bytes of standard error to keep.
    pub stderr: usize,
    /// What becomes of processes that it leaves in its group.
    pub leftovers: Leftovers,
}

/// Processes of its group that a program leaves running when it ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leftovers {
    /// They go with it. For loads: what it left would run beside the next one.
    Kill,
    /// They stay. For commands of an administrator's: they may have started a service.
    Leave,
}

/// What a program wrote and how it ended.
#[derive(Debug)]
pub struct Collected {
    /// How it ended.
    pub ended: ProgramEnd,
    /// When.
    pub at: Instant,
    /// Whether it was killed because `stop` said so.
    pub stopped: bool,
    /// Whether one of the outputs was longer than what was to be kept.
    pub overfull: bool,
    /// The first bytes of standard output.
    pub stdout: Vec<u8>,
    /// The first bytes of standard error.
    pub stderr: Vec<u8>,
}

/// What `stop` is told each time it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopQuery {
    /// Now.
    pub now: Instant,
    /// Whether one of the outputs is longer than what is kept.
    pub overfull: bool,
}

/// How often `stop` is asked at least.
const LOOK: Duration = Duration::from_millis(40);

impl Running {
    /// Reads what it writes to its pipes until it ends. `stop` is asked several times a second
    /// whether to kill it, with everything in its group. What outlives it and still holds a pipe
    /// is not waited for.
    ///
    /// # Errors
    /// As poll(2) and wait4(2); it is killed then.
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
            // In this order: what it wrote before it ended is in the pipes by then.
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

/// An output; what is read is thrown away but for the start.
struct Pipe {
    /// `None` at its end.
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

    /// Takes what is there, a few buffers at a time.
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

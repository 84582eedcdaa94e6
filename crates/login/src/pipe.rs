//! Runs a program and reads its output lines, each with its time of arrival.

use assay_host::process::{Dies, Running};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::io::Errno;
use std::io;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum number of bytes to keep of a line. The limit is necessary because a server may send endless lines.
const LONGEST: usize = 64 << 10;
/// Interval at which a wait checks `stop`.
const SLICE: Duration = Duration::from_millis(50);

/// Stream from which a line was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Standard output.
    Out,
    /// Standard error.
    Error,
}

/// A running program.
pub struct ProgramLines {
    running: Running,
    pipes: [(From, Option<OwnedFd>, Vec<u8>); 2],
}

/// Next output of a program.
pub enum PipeOutput {
    /// A line without its line end. After some time without a line end, the text so far counts as a line.
    Line(From, String),
    /// The program has ended and all output was read.
    Ended,
    /// Nothing arrived before the deadline.
    Late,
    /// `stop` returned true.
    Stopped,
}

impl ProgramLines {
    /// Starts the program with empty standard input.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (out, out_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (error, error_end) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        command.stdout(Stdio::from(out_end));
        command.stderr(Stdio::from(error_end));
        for end in [&out, &error] {
            fcntl_setfl(end, OFlags::NONBLOCK)?;
        }
        Ok(Self {
            // Dropping the command closes this process's copies of the pipe ends.
            running: Running::start(command, Dies::WithAssay)?,
            pipes: [
                (From::Out, Some(out), Vec::new()),
                (From::Error, Some(error), Vec::new()),
            ],
        })
    }

    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.running.pid()
    }

    /// Returns the next line with its time of arrival.
    pub fn next(
        &mut self,
        deadline: Instant,
        stop: &dyn Fn() -> bool,
    ) -> io::Result<(Instant, PipeOutput)> {
        loop {
            for (from, _, bytes) in &mut self.pipes {
                if let Some(line) = take_line(bytes) {
                    return Ok((Instant::now(), PipeOutput::Line(*from, line)));
                }
            }
            if stop() {
                return Ok((Instant::now(), PipeOutput::Stopped));
            }
            let now = Instant::now();
            if now >= deadline {
                return Ok((now, PipeOutput::Late));
            }
            if self.pipes.iter().all(|(_, pipe, _)| pipe.is_none()) {
                if self.running.ended()?.is_some() {
                    return Ok((now, PipeOutput::Ended));
                }
                self.running.wait(SLICE.min(deadline - now))?;
                continue;
            }
            self.read(SLICE.min(deadline - now))?;
        }
    }

    fn read(&mut self, time: Duration) -> io::Result<()> {
        let time = Timespec {
            tv_sec: 0,
            tv_nsec: time.subsec_nanos().into(),
        };
        let mut open: Vec<PollFd<'_>> = self
            .pipes
            .iter()
            .filter_map(|(_, pipe, _)| Some(PollFd::new(pipe.as_ref()?, PollFlags::IN)))
            .collect();
        match poll(&mut open, Some(&time)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut buffer = [0; 8192];
        for (_, pipe, bytes) in &mut self.pipes {
            let Some(fd) = pipe else { continue };
            match rustix::io::read(&*fd, &mut buffer) {
                Ok(0) => {
                    *pipe = None;
                    if !bytes.is_empty() {
                        bytes.push(b'\n');
                    }
                }
                Ok(n) => {
                    let room = LONGEST.saturating_sub(bytes.len());
                    bytes.extend_from_slice(&buffer[..n.min(room)]);
                    if room < n {
                        bytes.push(b'\n');
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Removes and returns the first complete line.
fn take_line(bytes: &mut Vec<u8>) -> Option<String> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line: Vec<u8> = bytes.drain(..=end).collect();
    let text = String::from_utf8_lossy(&line[..end]);
    Some(text.trim_end_matches('\r').to_owned())
}

//! The watchdog, a separate process on the remote machine. It shares only a pipe and the journal with
//! [`crate::remote::serve`]. If the process of `serve` is killed or hangs, the watchdog rolls everything back.

use assay_host::process::{Dies, Running};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Message to the watchdog that everything is rolled back, so that the watchdog can end.
const DISMISSED: u8 = b'.';
/// Message to the watchdog that [`crate::remote::serve`] is alive.
const GOES_ON: u8 = b'+';

/// Maximum time to wait until the kernel releases the lock of the journal, after the process with the lock was killed.
const LOCKS_GO: Duration = Duration::from_secs(15);

/// A running watchdog. Dropping it without [`Guard::dismiss`] rolls everything back.
#[derive(Debug)]
pub struct Guard {
    pipe: PipeWriter,
    process: Running,
    told: Instant,
}

impl Guard {
    /// Starts a command that calls [`watch`] with its standard input.
    ///
    /// # Errors
    /// The errors of pipe(2), fork(2) and execve(2).
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (read, pipe) = io::pipe()?;
        // A hanging watchdog must not block the sender of heartbeats.
        rustix::io::ioctl_fionbio(&pipe, true)?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let process =
            Running::start_with_input(command, File::from(OwnedFd::from(read)), Dies::OnItsOwn)?;
        Ok(Self {
            pipe,
            process,
            told: Instant::now(),
        })
    }

    /// Sends a heartbeat to the watchdog.
    pub fn goes_on(&mut self) {
        if self.told.elapsed() >= Duration::from_secs(1) {
            self.told = Instant::now();
            let _ = self.pipe.write_all(&[GOES_ON]);
        }
    }

    /// Ends the watchdog, because nothing is left to roll back.
    pub fn dismiss(mut self) {
        let _ = self.pipe.write_all(&[DISMISSED]);
        drop(self.pipe);
        let _ = self.process.reap();
    }
}

/// Runs the watchdog: waits until `pipe` reports that nothing is left to do. If the pipe is silent for longer than
/// `silence`, kills the process that owns the pipe. After this, or if the pipe closes without the report, calls
/// `take_back` until it returns true. Returns whether something had to be rolled back.
pub fn watch(
    silence: Duration,
    mut pipe: impl Read + Send + 'static,
    take_back: &mut dyn FnMut() -> bool,
) -> bool {
    // The number cannot be reused while the process is our parent.
    let parent = getppid();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut words = [0u8; 64];
        while let Ok(count @ 1..) = pipe.read(&mut words) {
            if tell.send(words[..count].contains(&DISMISSED)).is_err() {
                return;
            }
        }
    });
    loop {
        match told.recv_timeout(silence) {
            Ok(true) => return false,
            Ok(false) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                end(parent);
                break;
            }
        }
    }
    let begun = Instant::now();
    while !take_back() && begun.elapsed() < LOCKS_GO {
        std::thread::sleep(Duration::from_millis(100));
    }
    true
}

fn end(parent: Option<Pid>) {
    if let Some(parent) = parent
        && getppid() == Some(parent)
    {
        let _ = kill_process(parent, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_back_when_the_pipe_ends_without_its_word() {
        for (words, back) in [(&b"++."[..], false), (b"++", true), (b"", true)] {
            let mut called = 0;
            let taken = watch(Duration::from_secs(5), words, &mut || {
                called += 1;
                called == 2
            });
            assert_eq!(
                (taken, called),
                (back, if back { 2 } else { 0 }),
                "{words:?}"
            );
        }
    }
}

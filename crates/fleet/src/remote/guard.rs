//! A process on the other machine that shares nothing with [`crate::remote::serve`] but a pipe and the journal. When
//! that one is killed, or stands still, everything is taken back all the same.

use assay_host::process::{Dies, Running};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Everything is as it was: the guard goes home.
const DISMISSED: u8 = b'.';
/// [`crate::remote::serve`] goes on.
const GOES_ON: u8 = b'+';

/// How long what was killed may hold its journal.
const LOCKS_GO: Duration = Duration::from_secs(15);

/// A guard that stands by. When this is dropped without [`Guard::dismiss`], it takes everything back.
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
    /// As pipe(2), fork(2) and execve(2).
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (read, pipe) = io::pipe()?;
        // A guard that stands still itself must not stop who tells it that all is well.
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

    /// Says, now and then, that all is well.
    pub fn goes_on(&mut self) {
        if self.told.elapsed() >= Duration::from_secs(1) {
            self.told = Instant::now();
            let _ = self.pipe.write_all(&[GOES_ON]);
        }
    }

    /// Nothing is left to take back: it ends.
    pub fn dismiss(mut self) {
        let _ = self.pipe.write_all(&[DISMISSED]);
        drop(self.pipe);
        let _ = self.process.reap();
    }
}

/// Stands by until `pipe` says that nothing is left to do. When the pipe ends without that word, or is silent
/// for longer than `silence`, who held it is killed, and `take_back` is called until it says that nothing
/// of it is alive any more. Returns whether anything had to be taken back.
pub fn watch(
    silence: Duration,
    mut pipe: impl Read + Send + 'static,
    take_back: &mut dyn FnMut() -> bool,
) -> bool {
    // Its number is not another's as long as it is our parent.
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

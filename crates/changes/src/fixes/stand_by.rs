//! The stand-by process. It waits while a change may lock the user out, or while a tuning session runs unattended. It
//! rolls the changes back if the assay process that made them is killed, hangs in a dead terminal, or exceeds the time
//! limit. The two processes share only the journal and a pipe.
#![allow(
    clippy::disallowed_methods,
    reason = "it waits by the clock of the machine that it sets back"
)]

use crate::{ChangeError, Journal};
use assay_host::HostMut;
use assay_host::process::{Dies, Running};
use rustix::process::{Pid, Signal, getppid, kill_process};
use std::fs::File;
use std::io::{self, PipeWriter, Read, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Message from the assay process: nothing is left to roll back.
const DISMISSED: u8 = b'.';
/// Message from the assay process: the time for the user's confirmation begins.
const WAITS: u8 = b'w';
/// Time limit for making the change and reading it back. Commands of services may take minutes.
const TO_MAKE: Duration = Duration::from_secs(600);
/// Extra time beyond the user's time to confirm, so that the assay process itself rolls back first.
const GRACE: Duration = Duration::from_secs(10);
/// Time to wait until the kernel releases the locks of a killed process.
const LOCKS_GO: Duration = Duration::from_secs(10);

/// A running stand-by process. If this value is dropped without [`StandBy::dismiss`], the process rolls back the
/// change.
#[derive(Debug)]
pub struct StandBy {
    pipe: PipeWriter,
    process: Running,
}

impl StandBy {
    /// Starts a command that calls [`watch`] with its standard input.
    ///
    /// # Errors
    /// As pipe(2), fork(2) and execve(2).
    pub fn start(mut command: Command) -> io::Result<Self> {
        let (read, pipe) = io::pipe()?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let read = File::from(OwnedFd::from(read));
        let process = Running::start_with_input(command, read, Dies::OnItsOwn)?;
        Ok(Self { pipe, process })
    }

    /// Sends the message that the user's time to confirm begins now.
    pub(crate) fn waits(&mut self) {
        let _ = self.pipe.write_all(&[WAITS]);
    }

    /// Ends the process, because nothing is left to roll back.
    pub fn dismiss(mut self) {
        let _ = self.pipe.write_all(&[DISMISSED]);
        drop(self.pipe);
        let _ = self.process.reap();
    }
}

/// What the stand-by process watches, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct StandByOrder<'a> {
    /// Number of the session to watch.
    pub session: &'a str,
    /// Time that the user has to confirm. Some seconds later the stand-by process kills the assay process, which should
    /// have rolled back by then. With `None`, the time is unlimited while the assay process lives.
    pub within: Option<Duration>,
}

/// Waits until a message on `pipe` reports that nothing is left to do. If the pipe is closed without this
/// message, or the time has passed, rolls back the session. Returns descriptions of the changes that were
/// rolled back.
///
/// # Errors
/// The journal cannot be read or written.
pub fn watch(
    watch: StandByOrder<'_>,
    mut pipe: impl Read + Send + 'static,
    journal: &Journal,
    host: &dyn HostMut,
) -> Result<Vec<String>, ChangeError> {
    // The process id cannot be reused while that process is the parent.
    let parent = getppid();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut word = [0u8; 1];
        // The thread ends when the pipe is closed.
        while matches!(pipe.read(&mut word), Ok(1)) && tell.send(word[0]).is_ok() {}
    });
    let mut until = watch.within.map(|_| Instant::now() + TO_MAKE);
    loop {
        let word = match until {
            Some(until) => told.recv_timeout(until.saturating_duration_since(Instant::now())),
            None => told.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match word {
            Ok(DISMISSED) => return Ok(Vec::new()),
            Ok(WAITS) => until = watch.within.map(|within| Instant::now() + within + GRACE),
            Ok(_) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                end(parent);
                break;
            }
        }
    }
    let begun = Instant::now();
    while !journal.is_left(watch.session)? {
        if begun.elapsed() > LOCKS_GO {
            // The change was kept, or another process rolled it back.
            return Ok(Vec::new());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let all = journal.recover_session(watch.session, host)?;
    Ok(all.into_iter().map(|one| one.what).collect())
}

fn end(parent: Option<Pid>) {
    if let Some(parent) = parent
        && getppid() == Some(parent)
    {
        let _ = kill_process(parent, Signal::KILL);
    }
}

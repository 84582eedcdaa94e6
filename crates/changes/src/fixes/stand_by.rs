//! A process that stands by while somebody may be locked out, or while a session of tuning runs unattended: it
//! takes the changes back when the assay that made them is killed, hangs in a dead terminal, or lets the time
//! pass. It shares nothing with that assay but the journal and a pipe.
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

/// What the assay that makes the change says when nothing is left to take back.
const DISMISSED: u8 = b'.';
/// What it says when it begins to wait for the user.
const WAITS: u8 = b'w';
/// How long making the change and reading it back may take: commands of services have minutes.
const TO_MAKE: Duration = Duration::from_secs(600);
/// How much longer than the user's time is waited, so that the assay itself comes first.
const GRACE: Duration = Duration::from_secs(10);
/// How long a killed assay's locks may take to go.
const LOCKS_GO: Duration = Duration::from_secs(10);

/// A process that stands by. When this is dropped without [`StandBy::dismiss`], it takes the change back.
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

    /// From now on the user has the time that was promised.
    pub(crate) fn waits(&mut self) {
        let _ = self.pipe.write_all(&[WAITS]);
    }

    /// Nothing is left to take back: it ends.
    pub fn dismiss(mut self) {
        let _ = self.pipe.write_all(&[DISMISSED]);
        drop(self.pipe);
        let _ = self.process.reap();
    }
}

/// Whom a process stands by for.
#[derive(Clone, Copy, Debug)]
pub struct StandByOrder<'a> {
    /// The session's number.
    pub session: &'a str,
    /// How long the user has to confirm. Some seconds later its assay is killed: it did not keep to the time
    /// that it promised. None: as long as its assay lives.
    pub within: Option<Duration>,
}

/// Stands by until `pipe` says that nothing is left to do. When the pipe ends without that word, or time is
/// up, the session is taken back. Returns what was taken back, in words.
///
/// # Errors
/// The journal cannot be read or written.
pub fn watch(
    watch: StandByOrder<'_>,
    mut pipe: impl Read + Send + 'static,
    journal: &Journal,
    host: &dyn HostMut,
) -> Result<Vec<String>, ChangeError> {
    // Its number is not another's as long as it is our parent.
    let parent = getppid();
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let mut word = [0u8; 1];
        // It ends with the pipe, and this with it.
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
            // It was kept, or taken back by somebody else.
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

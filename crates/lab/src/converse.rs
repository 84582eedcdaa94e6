//! Communicates with a program in the guest while it runs.

use crate::agent_requests::CommandOutputPart;
use crate::error::LabError;
use crate::guest::Guest;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// A running program in the guest. To close the program's standard input, drop [`Conversation::hears`].
pub struct Conversation<'scope> {
    /// Standard output of the program. A read times out after a short while ([`ErrorKind::TimedOut`]) and can
    /// be repeated.
    pub says: ProgramOutput,
    /// Standard input of the program; closed when dropped.
    pub hears: ProgramInput,
    /// Waits for the end of the program.
    pub end: End<'scope>,
}

/// Handle with which a caller waits for the end of a program.
pub struct End<'scope>(ScopedJoinHandle<'scope, Result<ConversationEnd, LabError>>);

/// Exit status and error output of a program that ended.
#[derive(Clone, Debug)]
pub struct ConversationEnd {
    /// Exit status of the program.
    pub status: i32,
    /// What the program wrote to standard error.
    pub complaint: String,
}

impl Guest {
    /// Starts a program in the guest and connects its input and output. The program is killed after `limit`.
    pub fn converse<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        argv: Vec<String>,
        limit: Duration,
    ) -> Conversation<'scope> {
        let (hears, input) = channel();
        let (output, says) = channel();
        let input = Box::new(ProgramOutput::new(input, None));
        let run = move || {
            let words: Vec<_> = argv.iter().map(OsStr::new).collect();
            let mut complaint = Vec::new();
            let status =
                self.stream(&words, Some(limit), Some(input), &mut |piece| match piece {
                    CommandOutputPart::Out(bytes) => {
                        // A closed receiver does not need the output.
                        let _ = output.send(bytes.to_vec());
                    }
                    CommandOutputPart::Err(bytes) => complaint.extend_from_slice(bytes),
                })?;
            Ok(ConversationEnd {
                status,
                complaint: String::from_utf8_lossy(&complaint).trim().to_owned(),
            })
        };
        Conversation {
            says: ProgramOutput::new(says, Some(LOOK)),
            hears: ProgramInput(hears),
            end: End(scope.spawn(run)),
        }
    }
}

/// Maximum time that one read waits for data.
const LOOK: Duration = Duration::from_millis(100);

impl End<'_> {
    /// Waits until the program ends.
    ///
    /// # Errors
    /// The program does not exist or takes too long, or the guest has ended.
    ///
    /// # Panics
    /// The thread that waits for the program panicked.
    pub fn wait(self) -> Result<ConversationEnd, LabError> {
        match self.0.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Reader of the program's standard output.
pub struct ProgramOutput {
    from: Receiver<Vec<u8>>,
    limit: Option<Duration>,
    rest: Vec<u8>,
}

impl ProgramOutput {
    fn new(from: Receiver<Vec<u8>>, limit: Option<Duration>) -> Self {
        Self {
            from,
            limit,
            rest: Vec::new(),
        }
    }
}

impl Read for ProgramOutput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() {
            let received = match self.limit {
                Some(limit) => self.from.recv_timeout(limit),
                None => self.from.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match received {
                Ok(bytes) => self.rest = bytes,
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => return Err(ErrorKind::TimedOut.into()),
            }
        }
        let count = into.len().min(self.rest.len());
        into[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        Ok(count)
    }
}

/// Writer to the program's standard input.
pub struct ProgramInput(Sender<Vec<u8>>);

impl Write for ProgramInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map_err(|_| ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

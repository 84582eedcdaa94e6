//! Exchanges lines with a remote verb while it runs.

use super::{RemoteLink, SessionError};
use crate::line::Lines;
use crate::remote::outbox::Outbox;
use crate::session::SessionFault;
use assay_protocol::{AgentRequest, Reply};
use assay_render::text::escape_line;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// Maximum length of an output line in bytes. The result of one load step has some hundred thousand bytes.
const LONGEST: usize = 16 << 20;

/// Maximum time for a stopped verb to end and send its results.
const TO_END: Duration = Duration::from_secs(20);

/// Sends input to a running verb, from any thread.
#[derive(Clone)]
pub struct Speaker {
    out: Outbox,
    request: u64,
}

impl Speaker {
    /// Sends bytes to the standard input of the verb.
    pub fn say(&self, bytes: &[u8]) {
        let input = AgentRequest::Input(bytes.to_vec());
        self.out.put(input.frame(self.request).encode());
    }

    /// Closes the standard input of the verb.
    pub fn end(&self) {
        self.say(&[]);
    }
}

/// Callbacks that are called while the verb runs.
pub struct Talk<'a> {
    /// Returns whether the verb must end now.
    pub stop: &'a dyn Fn() -> bool,
    /// Called once, when the verb has started.
    pub begun: &'a mut dyn FnMut(Speaker),
    /// Receives each line of standard output with the time of its arrival.
    pub heard: &'a mut dyn FnMut(Instant, &str),
    /// Receives each line of standard error, without control characters.
    pub say: &'a mut dyn FnMut(&str),
}

impl RemoteLink<'_> {
    /// Runs a verb to its end, and forwards lines in both directions. Returns the exit status; 128 + signal if a signal
    /// ended the verb.
    ///
    /// # Errors
    /// [`SessionError`], as for [`RemoteLink::run`].
    pub fn talk(
        &mut self,
        arguments: &[impl AsRef<OsStr>],
        talk: &mut Talk<'_>,
    ) -> Result<i32, SessionError> {
        let request = self.begin(arguments, true);
        (talk.begun)(Speaker {
            out: self.out.clone(),
            request,
        });
        let mut stdout = Vec::new();
        let mut stderr = Lines::default();
        let mut asked: Option<Instant> = None;
        loop {
            match asked {
                None if (talk.stop)() => {
                    asked = Some(Instant::now());
                    self.send(request, &AgentRequest::Interrupt);
                }
                Some(at) if at.elapsed() > TO_END => {
                    let reason = "it does not end, though it was told to";
                    return Err(self.session.failed(SessionFault::Deadline, reason));
                }
                _ => {}
            }
            let Some(reply) = self.reply(request)? else {
                continue;
            };
            match reply {
                Reply::Out(bytes) => {
                    let at = Instant::now();
                    // A long line arrives in many pieces; each piece is searched once.
                    let mut looked = stdout.len();
                    stdout.extend_from_slice(&bytes);
                    while let Some(end) = stdout[looked..].iter().position(|byte| *byte == b'\n') {
                        let line: Vec<u8> = stdout.drain(..=looked + end).collect();
                        looked = 0;
                        (talk.heard)(at, String::from_utf8_lossy(&line).trim_end());
                    }
                    if stdout.len() > LONGEST {
                        let reason = "it prints a line of more than 16 MiB";
                        return Err(self.session.failed(SessionFault::TooMuch, reason));
                    }
                }
                Reply::Err(bytes) => {
                    stderr.push(&bytes);
                    while let Some(line) = stderr.next() {
                        (talk.say)(&escape_line(line.trim_end()));
                    }
                }
                Reply::Exit(status) => {
                    let rest = stderr.rest();
                    if !rest.is_empty() {
                        (talk.say)(&escape_line(&String::from_utf8_lossy(&rest)));
                    }
                    return Ok(status);
                }
                Reply::Failed { reason, .. } => {
                    let reason = String::from_utf8_lossy(&reason);
                    return Err(self.session.failed(SessionFault::Other, &reason));
                }
                _ => {}
            }
        }
    }
}

//! An open ssh session. It sends input to a remote shell, receives the output, and stores the error messages of ssh.

use crate::session::{SessionError, SshSession, check_name};
use assay_host::process::{Dies, Running};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Maximum number of received chunks in the queue. If the queue is full, the sender blocks.
const WAITING: usize = 64;
/// Maximum size of a chunk in bytes.
const PIECE: usize = 64 << 10;
/// Maximum length of a line in bytes.
const LONGEST_LINE: usize = 16 << 10;
/// Maximum number of bytes that are kept of ssh's error messages.
const MOST_COMPLAINT: usize = 16 << 10;

/// An ssh session with a remote shell that waits for input.
#[derive(Debug)]
pub struct Line {
    ssh: Running,
    /// Received output in chunks. The channel closes when the session ends.
    pub heard: Receiver<Vec<u8>>,
    complaints: Arc<Mutex<Vec<u8>>>,
}

impl Line {
    /// Logs in to the machine. Returns the session and a pipe, which is the input of the remote shell.
    ///
    /// # Errors
    /// The errors of fork(2) and execve(2), or the machine's name is invalid.
    pub fn start(session: &SshSession) -> io::Result<(Self, PipeWriter)> {
        check_name(&session.host).map_err(io::Error::other)?;
        let (input, to) = io::pipe()?;
        let (from, output) = io::pipe()?;
        let (complains, complaint) = io::pipe()?;
        let mut command = Command::new("ssh");
        command
            .args(session.arguments())
            .stdout(Stdio::from(OwnedFd::from(output)))
            .stderr(Stdio::from(OwnedFd::from(complaint)));
        let input = File::from(OwnedFd::from(input));
        let ssh = Running::start_with_input(command, input, Dies::WithThread)?;
        let complaints = Arc::default();
        keep_last(complains, Arc::clone(&complaints));
        let line = Self {
            ssh,
            heard: listen(from),
            complaints,
        };
        Ok((line, to))
    }

    /// Ends the session if it still runs, and returns why it ended. `before` is the output until now.
    pub fn ended(&mut self, session: &SshSession, before: &[u8]) -> SessionError {
        let _ = self.ssh.wait(Duration::from_secs(5));
        let code = self.ssh.kill().map_or(255, |ended| ended.code());
        // A separate thread reads ssh's messages.
        std::thread::sleep(Duration::from_millis(50));
        let complaints = self.complaints.lock();
        let complaints = complaints.unwrap_or_else(PoisonError::into_inner).clone();
        session.complaint(code, &complaints, before)
    }

    /// Waits at most `most` until the remote side has ended, then kills the session.
    pub fn close(&mut self, most: Duration) {
        let _ = self.ssh.wait(most);
        let _ = self.ssh.kill();
    }
}

/// Reads a session's output on a separate thread, so that the caller can detect silence. The thread ends with the
/// session.
pub fn listen(mut line: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (tell, heard) = sync_channel(WAITING);
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        loop {
            match line.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) if tell.send(buffer[..count].to_vec()).is_ok() => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                _ => return,
            }
        }
    });
    heard
}

/// Keeps the last bytes of ssh's error messages, at most `MOST_COMPLAINT`.
fn keep_last(mut pipe: PipeReader, kept: Arc<Mutex<Vec<u8>>>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&buffer[..count]);
            let more = kept.len().saturating_sub(MOST_COMPLAINT);
            kept.drain(..more);
        }
    });
}

/// Splits the received output into lines.
#[derive(Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    all: usize,
}

impl Lines {
    /// Adds a received chunk.
    pub fn push(&mut self, bytes: &[u8]) {
        self.all += bytes.len();
        self.text.extend_from_slice(bytes);
    }

    /// Returns the next complete line; `None` if there is none. A line that is too long is returned in several pieces.
    #[allow(
        clippy::should_implement_trait,
        reason = "more may come after there was none"
    )]
    pub fn next(&mut self) -> Option<String> {
        let end = self.text.iter().position(|byte| *byte == b'\n');
        let end = match end {
            Some(end) => end + 1,
            None if self.text.len() >= LONGEST_LINE => LONGEST_LINE,
            None => return None,
        };
        let line: Vec<u8> = self.text.drain(..end.min(LONGEST_LINE)).collect();
        Some(String::from_utf8_lossy(&line).into_owned())
    }

    /// Returns the number of bytes received until now.
    #[must_use]
    pub fn all(&self) -> usize {
        self.all
    }

    /// Returns the received bytes that were not yet returned as lines.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text)
    }
}

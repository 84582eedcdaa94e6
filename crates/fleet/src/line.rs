//! A session that stays open: what is said to a machine, what it answers as it comes, what ssh complains of.

use crate::session::{SessionError, SshSession, check_name};
use assay_host::process::{Dies, Running};
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Pieces that wait at most: who sends without end waits for us then.
const WAITING: usize = 64;
/// Bytes of a piece, at most.
const PIECE: usize = 64 << 10;
/// The longest line that is taken as one.
const LONGEST_LINE: usize = 16 << 10;
/// What is kept of the complaints of ssh.
const MOST_COMPLAINT: usize = 16 << 10;

/// A shell on a machine that waits for what it is to do.
#[derive(Debug)]
pub struct Line {
    ssh: Running,
    /// What comes, in pieces. It ends with the line.
    pub heard: Receiver<Vec<u8>>,
    complaints: Arc<Mutex<Vec<u8>>>,
}

impl Line {
    /// Logs in. What is written is what the shell there reads.
    ///
    /// # Errors
    /// As fork(2) and execve(2); the name is none of a machine.
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

    /// Why the line ended; `before` is what was heard. A line that has not ended is ended.
    pub fn ended(&mut self, session: &SshSession, before: &[u8]) -> SessionError {
        let _ = self.ssh.wait(Duration::from_secs(5));
        let code = self.ssh.kill().map_or(255, |ended| ended.code());
        // What it complained about comes on a thread of its own.
        std::thread::sleep(Duration::from_millis(50));
        let complaints = self.complaints.lock();
        let complaints = complaints.unwrap_or_else(PoisonError::into_inner).clone();
        session.complaint(code, &complaints, before)
    }

    /// Waits for the other side to end, which was told to, and ends the line.
    pub fn close(&mut self, most: Duration) {
        let _ = self.ssh.wait(most);
        let _ = self.ssh.kill();
    }
}

/// What comes over a line, read on a thread of its own so that silence can be noticed. It ends with the line.
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

/// Keeps the end of what ssh complains about.
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

/// Takes lines out of what comes in pieces.
#[derive(Debug, Default)]
pub struct Lines {
    text: Vec<u8>,
    all: usize,
}

impl Lines {
    /// What came next.
    pub fn push(&mut self, bytes: &[u8]) {
        self.all += bytes.len();
        self.text.extend_from_slice(bytes);
    }

    /// The next line; one that is too long in pieces.
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

    /// Bytes that came so far.
    #[must_use]
    pub fn all(&self) -> usize {
        self.all
    }

    /// What follows the lines that were taken.
    pub fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.text)
    }
}

//! Receives the answers of a remote machine, and assigns each answer to its request by the number.

use super::LOOK;
use assay_fleet::line::{Line, Lines};
use assay_fleet::session::SshSession;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum size of an answer in bytes. An answer has a line of about 40 bytes for each thread of the server.
const MOST_ANSWER: usize = 4 << 20;
/// Maximum length of a line in bytes.
const LONGEST: usize = 512;
/// Time limit for an answer, after which the session ends.
const PATIENCE: Duration = Duration::from_secs(5);

/// State that the reader thread and the requesters share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    news: Condvar,
    pub(super) stop: AtomicBool,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Number of the last request.
    pub(super) last: u64,
    pub(super) asked: BTreeMap<u64, Instant>,
    pub(super) answers: BTreeMap<u64, Answer>,
    /// Reason why the session ended; `None` while it is open.
    pub(super) gone: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) asked: Instant,
    pub(super) came: Instant,
    pub(super) lines: Vec<String>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer with this number. Ends the session if the answer does not arrive in time.
    pub(super) fn answer(&self, number: u64) -> Result<Answer, String> {
        let end = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            if let Some(answer) = state.answers.get(&number) {
                return Ok(answer.clone());
            }
            if let Some(why) = &state.gone {
                return Err(why.clone());
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = format!("no counters came for {} s", PATIENCE.as_secs());
                state.gone = Some(why.clone());
                self.stop.store(true, Ordering::Relaxed);
                return Err(why);
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits a short time for the end of the session, and returns its reason.
    pub(super) fn end_soon(&self) -> String {
        let end = Instant::now() + PATIENCE;
        let mut state = self.state();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match &state.gone {
                Some(why) => return why.clone(),
                None if left.is_zero() => return "its session does not take anything".to_owned(),
                None => {}
            }
            let waited = self.news.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn end(&self, why: String) {
        self.state().gone.get_or_insert(why);
        self.news.notify_all();
    }

    /// Reads answers until the session ends.
    pub(super) fn read(&self, mut line: Line, mut lines: Lines, session: &SshSession) {
        let mut open = None;
        loop {
            while let Some(text) = lines.next() {
                if let Err(why) = self.take(&mut open, &text, Instant::now()) {
                    line.close(Duration::ZERO);
                    return self.end(why.to_owned());
                }
            }
            match line.heard.recv_timeout(LOOK) {
                Ok(bytes) => lines.push(&bytes),
                Err(RecvTimeoutError::Disconnected) => {
                    return self.end(line.ended(session, b"").reason);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.stop.load(Ordering::Relaxed) {
                return line.close(Duration::ZERO);
            }
        }
    }

    /// Processes a line of an answer. An answer consists of `begin 7`, data lines and `end 7`.
    pub(super) fn take(
        &self,
        open: &mut Option<Open>,
        text: &str,
        now: Instant,
    ) -> Result<(), &'static str> {
        const NO_ANSWER: &str = "what it sent is no answer to what it was asked";
        let text = text.strip_suffix('\n').unwrap_or(text);
        if text.len() > LONGEST {
            return Err(NO_ANSWER);
        }
        let word = |word: &str| text.strip_prefix(word)?.parse::<u64>().ok();
        match open {
            None => {
                let number = word("begin ").ok_or(NO_ANSWER)?;
                if !self.state().asked.contains_key(&number) {
                    return Err(NO_ANSWER);
                }
                *open = Some(Open {
                    number,
                    bytes: 0,
                    lines: Vec::new(),
                });
            }
            Some(own) if word("end ") == Some(own.number) => {
                let mut state = self.state();
                let asked = state.asked.remove(&own.number).ok_or(NO_ANSWER)?;
                let answer = Answer {
                    asked,
                    came: now,
                    lines: std::mem::take(&mut own.lines),
                };
                state.answers.insert(own.number, answer);
                // Two readings belong together. Older answers are no longer needed.
                while state.answers.len() > 4 {
                    state.answers.pop_first();
                }
                *open = None;
                self.news.notify_all();
            }
            Some(own) => {
                own.bytes += text.len() + 24;
                if own.bytes > MOST_ANSWER {
                    return Err("it sends more than a server has threads");
                }
                own.lines.push(text.to_owned());
            }
        }
        Ok(())
    }
}

/// An answer that is being received.
pub(super) struct Open {
    number: u64,
    bytes: usize,
    pub(super) lines: Vec<String>,
}

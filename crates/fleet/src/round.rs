//! Checks each of many machines once. Several machines are checked at the same time, each with its own time limit.

use crate::lanes::Lanes;
use crate::resolve::{Endpoint, endpoint};
use crate::session::{Sent, SessionError, SessionFault, SshSession};
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of simultaneous sessions. A session mostly waits for its machine.
const AT_ONCE: usize = 32;

/// Maximum number of retries of a session that the machine closes before the login.
const AGAIN: u32 = 2;

/// Period in which the first sessions start, at random moments.
const SPREAD: Duration = Duration::from_millis(300);

/// Result of checking one machine in a round.
#[derive(Debug)]
pub enum Outcome<T> {
    /// The machine was checked. Contains the result that was computed from its bundle.
    Done(T),
    /// The session with the machine failed, with this error.
    Failed(SessionError),
    /// The machine was not checked, because it has the same address and login as the machine with this number.
    Same(usize),
}

/// Function that computes a result from the output of a machine, which is given by its number.
pub type Judge<'a, T> = &'a (dyn Fn(usize, Sent) -> Result<T, SessionError> + Sync);
/// Function that is called with the number and the result of each finished machine.
pub type OnMachineDone<'a, T> = &'a (dyn Fn(usize, &Outcome<T>) + Sync);

/// Machines to check, and the script that collects their bundles.
pub struct Round<'a> {
    /// One session per machine.
    pub sessions: &'a [SshSession],
    /// Collector script, which is sent to each machine.
    pub script: &'a str,
    /// Returns whether the user wants to stop.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Function that is called when a machine is finished. It receives the number of finished machines and the numbers
    /// of the running machines.
    pub tell: &'a (dyn Fn(usize, &[usize]) + Sync),
    /// Seed for the random start times of sessions.
    pub seed: u64,
}

struct State<T> {
    lanes: Lanes,
    asked: Vec<usize>,
    outcomes: Vec<Option<Outcome<T>>>,
    done: usize,
}

impl Round<'_> {
    /// Checks all machines. `judge` computes a result on the thread of its session. `came` is called for each finished
    /// machine, also after a failure.
    pub fn ask<T: Send>(&self, judge: Judge<'_, T>, came: OnMachineDone<'_, T>) -> Vec<Outcome<T>> {
        let ends: Vec<Result<Endpoint, SessionError>> = self.endpoints();
        let mut outcomes: Vec<Option<Outcome<T>>> = Vec::new();
        let mut first: BTreeMap<(Endpoint, bool), usize> = BTreeMap::new();
        for (at, end) in ends.iter().enumerate() {
            outcomes.push(match end {
                Err(error) => Some(Outcome::Failed(error.clone())),
                Ok(end) => {
                    let key = (end.clone(), self.sessions[at].sudo);
                    let other = *first.entry(key).or_insert(at);
                    (other != at).then_some(Outcome::Same(other))
                }
            });
        }
        for (at, outcome) in outcomes.iter().enumerate() {
            if let Some(outcome) = outcome {
                came(at, outcome);
            }
        }
        // Numbers of the machines to check, and their lanes.
        let open: Vec<usize> = (0..outcomes.len())
            .filter(|at| outcomes[*at].is_none())
            .collect();
        let lanes = open
            .iter()
            .map(|at| ends[*at].as_ref().ok()?.bastion.clone());
        let state = Mutex::new(State {
            lanes: Lanes::new(lanes),
            asked: Vec::new(),
            done: outcomes.len() - open.len(),
            outcomes,
        });
        let changed = Condvar::new();
        std::thread::scope(|scope| {
            for worker in 0..AT_ONCE.min(open.len()) {
                let (state, changed, open) = (&state, &changed, &open);
                scope.spawn(move || self.work(worker, state, changed, open, (judge, came)));
            }
        });
        let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
        let lost = |at: usize| {
            Outcome::Failed(self.sessions[at].failed(SessionFault::Interrupted, "interrupted"))
        };
        let outcomes = state.outcomes.into_iter().enumerate();
        outcomes
            .map(|(at, one)| one.unwrap_or_else(|| lost(at)))
            .collect()
    }

    /// Resolves the names of the machines with ssh. Only a few are resolved at a time, because each starts a process.
    fn endpoints(&self) -> Vec<Result<Endpoint, SessionError>> {
        let resolve = |session: &SshSession| {
            endpoint(&session.host, session.config.as_deref())
                .map_err(|reason| session.failed(SessionFault::Name, &reason))
        };
        let share = self.sessions.len().div_ceil(8).max(1);
        std::thread::scope(|scope| {
            let parts: Vec<_> = self
                .sessions
                .chunks(share)
                .map(|part| scope.spawn(move || part.iter().map(resolve).collect::<Vec<_>>()))
                .collect();
            let mut all = Vec::new();
            for part in parts {
                match part.join() {
                    Ok(found) => all.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            all
        })
    }

    fn work<T: Send>(
        &self,
        worker: usize,
        state: &Mutex<State<T>>,
        changed: &Condvar,
        open: &[usize],
        (judge, came): (Judge<'_, T>, OnMachineDone<'_, T>),
    ) {
        let lock =
            || -> MutexGuard<'_, State<T>> { state.lock().unwrap_or_else(PoisonError::into_inner) };
        self.pause(self.instant(worker as u64, SPREAD));
        loop {
            let mut now = lock();
            let (number, lane) = loop {
                if (self.stop)() || now.lanes.is_empty() {
                    return;
                }
                match now.lanes.take() {
                    Some(found) => break found,
                    // The lanes of all waiting machines are full.
                    None => {
                        let wait = Duration::from_millis(100);
                        now = changed
                            .wait_timeout(now, wait)
                            .unwrap_or_else(PoisonError::into_inner)
                            .0;
                    }
                }
            };
            let at = open[number];
            now.asked.push(at);
            (self.tell)(now.done, &now.asked);
            drop(now);
            let outcome = match self.session(at).and_then(|sent| judge(at, sent)) {
                Ok(found) => Outcome::Done(found),
                Err(error) => Outcome::Failed(error),
            };
            if !(self.stop)() {
                came(at, &outcome);
            }
            let mut now = lock();
            now.lanes.done(lane.as_ref());
            now.asked.retain(|other| *other != at);
            now.outcomes[at] = Some(outcome);
            now.done += 1;
            (self.tell)(now.done, &now.asked);
            drop(now);
            changed.notify_all();
        }
    }

    /// Runs a session. Retries if sshd or a bastion closed the connection because of too many simultaneous connections.
    fn session(&self, at: usize) -> Result<Sent, SessionError> {
        let begin = Instant::now();
        let mut session = self.sessions[at].clone();
        let whole = session.deadline;
        for attempt in 0.. {
            let found = session.run(self.script, &mut |_| (self.stop)());
            let dropped = |error: &SessionError| {
                error.kind == SessionFault::Unreachable
                    && ["kex_exchange", "Connection reset", "Connection closed"]
                        .iter()
                        .any(|words| error.reason.contains(words))
            };
            match found {
                Err(error) if attempt < AGAIN && dropped(&error) => {
                    let wait = Duration::from_millis(500) * (attempt + 1);
                    let seed = at as u64 * 8 + u64::from(attempt);
                    self.pause(wait + self.instant(seed, wait));
                    session.deadline = whole.saturating_sub(begin.elapsed());
                    if session.deadline < Duration::from_secs(1) || (self.stop)() {
                        return Err(error);
                    }
                }
                found => return found,
            }
        }
        unreachable!("the loop ends with a return")
    }

    fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !(self.stop)() {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }

    /// Returns a pseudorandom time less than `most`, derived from the seed and `number` (splitmix64).
    fn instant(&self, number: u64, most: Duration) -> Duration {
        let mut x = self
            .seed
            .wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let millis = u64::try_from(most.as_millis()).unwrap_or(u64::MAX).max(1);
        Duration::from_millis((x ^ (x >> 31)) % millis)
    }
}

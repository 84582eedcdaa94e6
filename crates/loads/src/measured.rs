//! What our own loads have in common: how long they run, what they return, how they fail.
//!
//! All are closed loops: the next operation begins when the one before has ended, so a server that
//! stalls is asked less. They tell how long one operation takes, not what a server does under an
//! arrival rate of its own.

use crate::Cancel;
use crate::latencies::Latencies;
use assay_model::Nanos;
use assay_model::sample::{Operation, Operations, Worker};
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// How often a waiting load looks whether it was cancelled.
pub(crate) const LOOK: Duration = Duration::from_millis(40);
/// Rest after a failed operation, so that a dead server is not asked as fast as possible.
pub(crate) const REST: Duration = Duration::from_millis(10);
/// As long as this nothing has to succeed: a service may still be starting.
const FIRST_SUCCESS_WITHIN: Duration = Duration::from_secs(1);

/// How long a load runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Operations that begin in this time at the start are not counted.
    pub washout: Nanos,
    /// After it, operations begin during this time; those under way at its end are finished and
    /// counted. At least one is.
    pub runtime: Nanos,
    /// An operation that takes longer has failed.
    pub limit: Nanos,
}

/// What a load returns.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadResult {
    /// The operations, of one kind; latencies in fio's bins.
    pub worker: Worker,
    /// From the first operation's start to the last one's end, washout included.
    pub wall: Nanos,
    /// CPU time over the same span: of the load generator's threads; of the commands themselves
    /// for commands. Near `wall` times threads, the load generator was the limit.
    pub cpu: Nanos,
    /// Operations that failed after the washout, by kind. They are in no other figure.
    pub errors: Vec<Failures>,
    /// Whether it was cancelled; what had ended by then is counted.
    pub cancelled: bool,
}

impl LoadResult {
    /// How many operations ended well.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.worker.operations.values().map(|done| done.count).sum()
    }
}

/// Operations that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// [`LoadError::kind`].
    pub kind: &'static str,
    /// How many.
    pub count: u64,
    /// What the first one said.
    pub first: String,
}

/// Why an operation failed, or all of them.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// What was asked for cannot be done by any server.
    #[error("{what}: {why}")]
    Request {
        /// The URL, address or argument.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nobody listens there.
    #[error("{address}: nothing listens there ({source}); is the service running on this port?")]
    NotListening {
        /// Address.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The connection broke.
    #[error("{address}: the connection broke: {source}")]
    Connection {
        /// Address.
        address: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No end within the limit.
    #[error("{what}: no end within {limit}")]
    TimedOut {
        /// What was asked.
        what: String,
        /// The limit.
        limit: Nanos,
    },
    /// An answer that is not what was asked for.
    #[error("{what}: {why}")]
    WrongAnswer {
        /// What was asked.
        what: String,
        /// What came.
        why: String,
    },
    /// The login was refused.
    #[error("{address}: login refused: {answer}")]
    LoginRefused {
        /// Address.
        address: String,
        /// What the server said.
        answer: String,
    },
    /// No such program.
    #[error("{program}: no such command; install it or give its full path")]
    NoCommand {
        /// The program.
        program: String,
    },
    /// It cannot be started.
    #[error("{program}: cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("{program}: ended with {status}{}", first_complaint(.stderr))]
    Exit {
        /// The program.
        program: String,
        /// `exit status 1`, `signal 9`.
        status: String,
        /// First line of its standard error.
        stderr: String,
    },
    /// The machine refused something that has nothing to do with the server.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
}

fn first_complaint(stderr: &str) -> String {
    match stderr.is_empty() {
        true => String::new(),
        false => format!(": {stderr}"),
    }
}

impl LoadError {
    /// Name of this kind of failure, for counting.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Request { .. } => "bad-request",
            Self::NotListening { .. } => "not-listening",
            Self::Connection { .. } => "connection-broken",
            Self::TimedOut { .. } => "timed-out",
            Self::WrongAnswer { .. } => "wrong-answer",
            Self::LoginRefused { .. } => "login-refused",
            Self::NoCommand { .. } => "no-command",
            Self::Start { .. } => "not-started",
            Self::Exit { .. } => "exit-status",
            Self::Io { .. } => "io",
        }
    }
}

/// What an operation yields: bytes moved.
pub(crate) type Done = Result<u64, LoadError>;

/// Books one closed loop, or several that share a thread.
pub(crate) struct Tally {
    begin: Instant,
    counting_from: Instant,
    deadline: Instant,
    latencies: Latencies,
    bytes: u64,
    /// From the start of the first counted operation to the end of the last one.
    counted: Option<(Instant, Instant)>,
    errors: BTreeMap<&'static str, (u64, LoadError)>,
    /// The first failure of the washout.
    early: Option<LoadError>,
    succeeded: bool,
}

impl Tally {
    pub fn new(timing: &Timing, begin: Instant) -> Self {
        let counting_from = begin + Duration::from(timing.washout);
        Self {
            begin,
            counting_from,
            deadline: counting_from + Duration::from(timing.runtime),
            latencies: Latencies::default(),
            bytes: 0,
            counted: None,
            errors: BTreeMap::new(),
            early: None,
            succeeded: false,
        }
    }

    /// Whether another operation begins.
    pub fn goes_on(&self, now: Instant) -> bool {
        let patience = FIRST_SUCCESS_WITHIN.max(self.counting_from - self.begin);
        let failed = self.early.is_some() || !self.errors.is_empty();
        let hopeless = failed && !self.succeeded && now - self.begin >= patience;
        !hopeless && (now < self.deadline || self.counted.is_none())
    }

    /// Books an operation.
    pub fn record(&mut self, start: Instant, end: Instant, done: Done) {
        let counts = start >= self.counting_from;
        self.succeeded |= done.is_ok();
        if !counts {
            self.early = self.early.take().or(done.err());
            return;
        }
        let first = self.counted.map_or(start, |(first, _)| first.min(start));
        self.counted = Some((first, end));
        match done {
            Ok(bytes) => {
                self.latencies.record(end - start);
                self.bytes += bytes;
            }
            Err(error) => self.errors.entry(error.kind()).or_insert((0, error)).0 += 1,
        }
    }

    /// Time in which operations were counted.
    fn span(&self) -> Duration {
        self.counted
            .map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

/// Puts the loops together.
///
/// # Errors
/// The first failure when nothing succeeded.
pub(crate) fn finish(
    (name, kind): (&str, Operation),
    tallies: Vec<Tally>,
    wall: Duration,
    cpu: Duration,
    cancel: &Cancel,
) -> Result<LoadResult, LoadError> {
    let mut latencies = Latencies::default();
    let mut io = Operations::default();
    let mut errors: BTreeMap<&'static str, (u64, LoadError)> = BTreeMap::new();
    let mut early = None;
    let mut longest = Duration::ZERO;
    for tally in tallies {
        let span = tally.span();
        longest = longest.max(span);
        // Loops end at different times: each has a rate of its own.
        if !span.is_zero() {
            io.per_s += tally.latencies.count() as f64 / span.as_secs_f64();
            io.bytes_per_s += tally.bytes as f64 / span.as_secs_f64();
        }
        io.bytes.0 += tally.bytes;
        latencies.merge(&tally.latencies);
        early = early.or(tally.early);
        for (kind, (count, first)) in tally.errors {
            errors.entry(kind).or_insert((0, first)).0 += count;
        }
    }
    let cancelled = cancel.is_cancelled();
    if latencies.count() == 0 && !cancelled {
        let first = errors.into_values().max_by_key(|(count, _)| *count);
        return match first.map(|(_, error)| error).or(early) {
            Some(error) => Err(error),
            None => Err(LoadError::Request {
                what: name.to_owned(),
                why: "nothing was to be done".to_owned(),
            }),
        };
    }
    io.count = latencies.count();
    io.errors = errors.values().map(|(count, _)| count).sum();
    io.runtime = longest.into();
    io.lat = latencies.summary();
    let errors = errors.into_iter().map(|(kind, (count, first))| Failures {
        kind,
        count,
        first: first.to_string(),
    });
    Ok(LoadResult {
        worker: Worker {
            name: name.to_owned(),
            runtime: io.runtime,
            operations: [(kind, io)].into(),
            ..Worker::default()
        },
        wall: wall.into(),
        cpu: cpu.into(),
        errors: errors.collect(),
        cancelled,
    })
}

/// CPU time of the calling thread (CLOCK_THREAD_CPUTIME_ID).
pub(crate) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// Rests a little after a failure, but not when cancelled.
pub(crate) fn rest(cancel: &Cancel) {
    if !cancel.is_cancelled() {
        std::thread::sleep(REST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::Bytes;

    const TIMING: Timing = Timing {
        washout: Nanos(2_000_000_000),
        runtime: Nanos(3_000_000_000),
        limit: Nanos(1_000_000_000),
    };

    fn refused() -> LoadError {
        LoadError::LoginRefused {
            address: "a".to_owned(),
            answer: "no".to_owned(),
        }
    }

    #[test]
    fn the_washout_is_not_counted_and_loops_keep_their_own_rates() {
        let begin = Instant::now();
        let at = |seconds: f64| begin + Duration::from_secs_f64(seconds);
        let (mut a, mut b) = (Tally::new(&TIMING, begin), Tally::new(&TIMING, begin));
        a.record(at(1.9), at(2.5), Ok(100));
        a.record(at(2.5), at(3.5), Ok(100));
        a.record(at(3.5), at(4.5), Err(refused()));
        assert!(a.goes_on(at(4.9)) && !a.goes_on(at(5.0)));
        a.record(at(4.5), at(6.5), Ok(100));
        b.record(at(2.0), at(4.0), Ok(100));
        let all = vec![a, b];
        let wall = Duration::from_secs(7);
        let measured = finish(
            ("x", Operation::Login),
            all,
            wall,
            Duration::ZERO,
            &Cancel::default(),
        )
        .unwrap();
        let io = measured.worker.of(Operation::Login).unwrap();
        assert_eq!(
            (io.count, io.bytes, io.lat.max),
            (3, Bytes(300), 2_000_000_000)
        );
        assert!((io.per_s - (2.0 / 4.0 + 1.0 / 2.0)).abs() < 1e-9);
        assert_eq!(measured.errors[0].count, 1);
        assert_eq!(measured.errors[0].kind, "login-refused");
    }

    #[test]
    fn one_operation_is_finished_even_when_the_first_took_all_the_time() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut tally = Tally::new(&TIMING, begin);
        tally.record(at(0), at(9), Ok(1));
        assert!(tally.goes_on(at(9)));
        tally.record(at(9), at(10), Ok(1));
        assert!(!tally.goes_on(at(10)));
    }

    #[test]
    fn what_never_succeeds_gives_up_and_says_why() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut tally = Tally::new(&TIMING, begin);
        tally.record(at(0), at(1), Err(refused()));
        assert!(tally.goes_on(at(1)));
        tally.record(at(1), at(2), Err(refused()));
        assert!(!tally.goes_on(at(2)));
        let end = finish(
            ("x", Operation::Login),
            vec![tally],
            Duration::ZERO,
            Duration::ZERO,
            &Cancel::default(),
        );
        assert!(matches!(end, Err(LoadError::LoginRefused { .. })));
    }
}

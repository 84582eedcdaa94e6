//! Common parts of assay's own loads: duration, result and errors.
//!
//! All of these loads are closed loops. The next operation starts when the previous operation has ended, so a stalled
//! server receives fewer requests. The loads measure the duration of an operation, and not how a server behaves at a
//! given arrival rate.

use crate::Cancel;
use crate::latencies::Latencies;
use assay_model::Nanos;
use assay_model::sample::{Operation, Operations, Worker};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

/// Interval at which a waiting load checks for cancellation.
pub(crate) const LOOK: Duration = Duration::from_millis(40);
/// Pause after a failed operation, so that a load does not flood a server that does not answer.
pub(crate) const REST: Duration = Duration::from_millis(10);
/// Time from the start in which failures do not end the load, because a service may still be starting.
const FIRST_SUCCESS_WITHIN: Duration = Duration::from_secs(1);

/// Duration of a load, and the time limit of its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timing {
    /// Duration of the washout at the start. Operations that start in the washout are not counted.
    pub washout: Nanos,
    /// Duration of the counted part, which follows the washout. Operations in flight at its end are completed and
    /// counted. At least one operation is counted.
    pub runtime: Nanos,
    /// Time limit of one operation. An operation that takes longer counts as failed.
    pub limit: Nanos,
}

/// Observations of one run of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Statistics of the successful operations, with latencies in the bins of fio.
    pub worker: Worker,
    /// Time from the start of the first operation to the end of the last operation, including the washout.
    pub wall: Nanos,
    /// CPU time during `wall`, of the generator's threads or of the commands. If this time is close to `wall` times the
    /// number of threads, the generator was the bottleneck.
    pub cpu: Nanos,
    /// Failed operations after the washout, by kind. No other field includes them.
    pub errors: Vec<Failures>,
    /// Whether the load was cancelled. Operations that ended before the cancellation are counted.
    pub cancelled: bool,
}

impl LoadResult {
    /// Returns the number of successful operations.
    #[must_use]
    pub fn succeeded(&self) -> u64 {
        self.worker.operations.values().map(|done| done.count).sum()
    }
}

/// Operations that failed in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Short name of the failure, from [`LoadError::kind`].
    pub kind: Cow<'static, str>,
    /// Number of operations that failed in this way.
    pub count: u64,
    /// Message of the first failure.
    pub first: String,
}

/// Reason why an operation, or the whole load, failed.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum LoadError {
    /// The parameters are invalid, whatever the server does.
    #[error("{what}: {why}")]
    Request {
        /// URL, address or argument that is invalid.
        what: String,
        /// Description of the error for users.
        why: String,
    },
    /// No service listens at the address.
    #[error("{address}: nothing listens there ({source}); is the service running on this port?")]
    NotListening {
        /// Address of the server.
        address: String,
        /// Error of the kernel.
        #[serde(with = "io_error_form")]
        source: io::Error,
    },
    /// The connection broke during an operation.
    #[error("{address}: the connection broke: {source}")]
    Connection {
        /// Address of the server.
        address: String,
        /// Error of the kernel.
        #[serde(with = "io_error_form")]
        source: io::Error,
    },
    /// The operation exceeded its time limit.
    #[error("{what}: no end within {limit}")]
    TimedOut {
        /// Description of the operation.
        what: String,
        /// Time limit that was exceeded.
        limit: Nanos,
    },
    /// The server's answer is not the expected one.
    #[error("{what}: {why}")]
    WrongAnswer {
        /// Description of the operation.
        what: String,
        /// Description of the answer.
        why: String,
    },
    /// The server refused the sign-in.
    #[error("{address}: login refused: {answer}")]
    LoginRefused {
        /// Address of the server.
        address: String,
        /// Message of the server.
        answer: String,
    },
    /// The program does not exist.
    #[error("{program}: no such command; install it or give its full path")]
    NoCommand {
        /// Name of the program.
        program: String,
    },
    /// The program cannot be started.
    #[error("{program}: cannot be started: {source}")]
    Start {
        /// Name of the program.
        program: String,
        /// Error of the kernel.
        #[serde(with = "io_error_form")]
        source: io::Error,
    },
    /// The program exited with an error.
    #[error("{program}: ended with {status}{}", first_complaint(.stderr))]
    Exit {
        /// Name of the program.
        program: String,
        /// Exit status or signal as text, such as `exit status 1` or `signal 9`.
        status: String,
        /// First line of the program's standard error.
        stderr: String,
    },
    /// The program succeeded, but its output does not contain the figure.
    #[error("{program}: {why}")]
    NoFigure {
        /// Name of the program.
        program: String,
        /// Name of the missing figure, and the names of the figures that the output contains.
        why: String,
    },
    /// An operation on this machine failed; the server is not the cause.
    #[error("{what}: {source}")]
    Io {
        /// Description of the operation.
        what: Cow<'static, str>,
        /// Error of the kernel.
        #[serde(with = "io_error_form")]
        source: io::Error,
    },
}

/// Stores an error of the kernel as its number, or as text if it has no number.
mod io_error_form {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use std::io;

    pub(super) fn serialize<S: Serializer>(error: &io::Error, to: S) -> Result<S::Ok, S::Error> {
        (error.raw_os_error(), error.to_string()).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<io::Error, D::Error> {
        let (number, text) = <(Option<i32>, String)>::deserialize(from)?;
        Ok(number.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error))
    }
}

fn first_complaint(stderr: &str) -> String {
    match stderr.is_empty() {
        true => String::new(),
        false => format!(": {stderr}"),
    }
}

impl LoadError {
    /// Returns a short name of this kind of failure, by which failures are counted.
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
            Self::NoFigure { .. } => "no-figure",
            Self::Io { .. } => "io",
        }
    }
}

/// Result of an operation: the number of transferred bytes, or the error.
pub(crate) type Done = Result<u64, LoadError>;

/// Counts the operations of one closed loop, or of several closed loops in one thread.
pub(crate) struct Tally {
    begin: Instant,
    counting_from: Instant,
    deadline: Instant,
    latencies: Latencies,
    bytes: u64,
    /// Start of the first counted operation and end of the last; `None` without a counted operation.
    counted: Option<(Instant, Instant)>,
    errors: BTreeMap<&'static str, (u64, LoadError)>,
    /// Figures that the counted operations printed.
    printed: Vec<f64>,
    /// First error message of an operation that succeeded.
    complaint: Option<String>,
    /// First failure during the washout; `None` without such a failure.
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
            printed: Vec::new(),
            complaint: None,
            early: None,
            succeeded: false,
        }
    }

    /// Returns whether another operation may start. Returns false when the time is over, or if all operations since the
    /// start have failed for too long.
    pub fn goes_on(&self, now: Instant) -> bool {
        let patience = FIRST_SUCCESS_WITHIN.max(self.counting_from - self.begin);
        let failed = self.early.is_some() || !self.errors.is_empty();
        let hopeless = failed && !self.succeeded && now - self.begin >= patience;
        !hopeless && (now < self.deadline || self.counted.is_none())
    }

    /// Counts an operation by its start, its end and its result.
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

    /// Stores the figure that an operation printed. `start` is the start of this operation.
    pub fn record_printed(&mut self, start: Instant, printed: Option<f64>) {
        if start >= self.counting_from {
            self.printed.extend(printed);
        }
    }

    /// Stores an error message that a successful operation printed. Only the first message is kept.
    pub fn record_complaint(&mut self, complaint: Option<String>) {
        self.complaint = self.complaint.take().or(complaint);
    }

    /// Returns the time from the start of the first to the end of the last counted operation.
    fn span(&self) -> Duration {
        self.counted
            .map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

/// Merges the counts of all loops into a result.
///
/// # Errors
/// Returns the first failure if no operation succeeded.
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
        // Loops end at different times, so each has its own rate.
        if !span.is_zero() {
            io.per_s += tally.latencies.count() as f64 / span.as_secs_f64();
            io.bytes_per_s += tally.bytes as f64 / span.as_secs_f64();
        }
        io.bytes.0 += tally.bytes;
        io.printed.extend(tally.printed);
        io.complaint = io.complaint.take().or(tally.complaint);
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
        kind: kind.into(),
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

/// Returns the CPU time of the calling thread (CLOCK_THREAD_CPUTIME_ID).
pub(crate) fn thread_cpu() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or(0),
        u32::try_from(now.tv_nsec).unwrap_or(0),
    )
}

/// Pauses after a failure. Returns early when cancelled.
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

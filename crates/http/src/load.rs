//! Parameters of a load, and the threads that run it.

use crate::request::Request;
use crate::schedule::Listed;
use crate::tally::Tally;
use crate::tls::Tls;
use crate::worker::Worker;
use assay_model::web::{Measured, Pace, Protocol};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of connections of a load.
pub const MOST_CONNECTIONS: u32 = 100_000;

/// Parameters of a load on one server.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// Requests of the load, at least one.
    pub requests: Vec<Request>,
    /// Whether to choose requests at random instead of in order.
    pub shuffled: bool,
    /// Addresses of the server. Connections are distributed over all of them.
    pub addresses: Vec<SocketAddr>,
    /// TLS configuration; `None` means no TLS.
    pub tls: Option<Tls>,
    /// HTTP version of the requests.
    pub protocol: Protocol,
    /// Maximum simultaneous requests per connection, at least 1. More than one requires HTTP/2.
    pub streams: u32,
    /// Number of connections, at least 1. An open loop opens only as many as it needs.
    pub connections: u32,
    /// Number of requests after which a connection is closed; `None` for no limit.
    pub requests_per_connection: Option<u32>,
    /// When requests are sent: in a closed loop, at a rate, or at listed times.
    pub pace: Pace,
    /// Requests with their send times in ascending order; empty unless the pace is a list.
    pub listed: Arc<[Listed]>,
    /// Time at the start of the load in which nothing is counted.
    pub washout: Duration,
    /// Duration of the counted time, which follows the washout.
    pub window: Duration,
    /// Time limit of a request. A slower request counts as failed.
    pub limit: Duration,
    /// Number of threads, at least 1. No more threads are used than connections.
    pub threads: u32,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Progress of a running load, which other threads can read.
#[derive(Debug, Default)]
pub struct Live {
    answers: AtomicU64,
    failures: AtomicU64,
}

impl Live {
    pub(crate) fn add(&self, answers: u64, failures: u64) {
        self.answers.fetch_add(answers, Ordering::Relaxed);
        self.failures.fetch_add(failures, Ordering::Relaxed);
    }

    /// Returns the numbers of good answers and failures until now, including the washout.
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        (
            self.answers.load(Ordering::Relaxed),
            self.failures.load(Ordering::Relaxed),
        )
    }
}

/// Reason why a load cannot run. Failures of the server are in [`Measured`] instead.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The parameters are invalid.
    #[error("{0}")]
    Request(&'static str),
    /// An operation failed on this machine, not on the server.
    #[error("{what}: {source}")]
    Io {
        /// Description of the operation.
        what: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl HttpLoad {
    fn check(&self) -> Result<(), LoadError> {
        let wrong = |why| Err(LoadError::Request(why));
        let rate = self.pace.rate();
        match () {
            () if self.requests.is_empty() => wrong("there is nothing to ask"),
            () if self.addresses.is_empty() => wrong("the host has no address"),
            () if self.connections == 0 => wrong("no connection to make"),
            () if self.connections > MOST_CONNECTIONS => wrong("more than 100,000 connections"),
            () if self.streams == 0 => wrong("no request on a connection"),
            () if self.streams > 1 && self.protocol == Protocol::Http1 => {
                wrong("HTTP/1.1 has one request at a time on a connection")
            }
            () if u64::from(self.connections) * u64::from(self.streams)
                > u64::from(MOST_CONNECTIONS) =>
            {
                wrong("more than 100,000 requests at once")
            }
            () if self
                .requests
                .iter()
                .any(|one| one.protocol != self.protocol) =>
            {
                wrong("a request of another protocol than the load")
            }
            () if self.threads == 0 => wrong("no thread to run on"),
            () if matches!(self.pace, Pace::Replay { .. }) && self.listed.is_empty() => {
                wrong("the list that gives the times is empty")
            }
            () if self
                .listed
                .iter()
                .any(|one| one.which as usize >= self.requests.len()) =>
            {
                wrong("the list names a request that is not there")
            }
            () if self.requests_per_connection == Some(0) => wrong("no request on a connection"),
            () if self.window.is_zero() || self.limit.is_zero() => wrong("no time to measure in"),
            () if rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e8)) => {
                wrong("a rate is more than 0 and at most 100,000,000 requests per second")
            }
            () => Ok(()),
        }
    }
}

/// Runs a load and returns the observations. Calls `stop` some hundred times a second. If `stop` returns true, ends the
/// load and returns the counts until then.
///
/// # Errors
/// The parameters are invalid, or an operation other than a connection failed.
pub fn run(
    load: &HttpLoad,
    live: &Live,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Measured, LoadError> {
    load.check()?;
    let threads = load.threads.min(load.connections);
    let begin = Instant::now();
    let tallies = thread::scope(|scope| {
        let mut handles = Vec::new();
        for which in 0..threads {
            let named = thread::Builder::new().name(format!("http-{which}"));
            let work = move || Worker::new(load, which, threads, begin, live, stop)?.work();
            handles.push(
                named
                    .spawn_scoped(scope, work)
                    .map_err(|source| LoadError::Io {
                        what: "a thread cannot be started",
                        source,
                    })?,
            );
        }
        let ended = handles.into_iter().map(|handle| match handle.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect::<Result<Vec<Tally>, LoadError>>()
    })?;
    Ok(Tally::finish(tallies))
}

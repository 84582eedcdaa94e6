//! A load as it is asked for, and the threads that carry it out.

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

/// Most connections of one load.
pub const MOST_CONNECTIONS: u32 = 100_000;

/// What to do.
#[derive(Clone, Debug)]
pub struct HttpLoad {
    /// What is asked, at least one.
    pub requests: Vec<Request>,
    /// Requests are picked at random instead of in turn.
    pub shuffled: bool,
    /// Where; connections are spread over all of them.
    pub addresses: Vec<SocketAddr>,
    /// How, if not plainly.
    pub tls: Option<Tls>,
    /// What is spoken: that of the requests.
    pub protocol: Protocol,
    /// Requests at once on each connection, at least 1; more than one is for HTTP/2 alone.
    pub streams: u32,
    /// Connections at once, at least 1. In an open loop as many are made as are needed, up to this.
    pub connections: u32,
    /// A connection is closed after so many requests.
    pub requests_per_connection: Option<u32>,
    /// When requests are sent.
    pub pace: Pace,
    /// What is sent when, in ascending order, when the pace is that of a list.
    pub listed: Arc<[Listed]>,
    /// At the start, nothing is counted for so long.
    pub washout: Duration,
    /// Then it is counted for so long.
    pub window: Duration,
    /// A request that takes longer has failed.
    pub limit: Duration,
    /// Threads, at least 1; never more than connections.
    pub threads: u32,
    /// For everything random.
    pub seed: u64,
}

/// What can be seen of a load under way.
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

    /// Good answers and failures so far, those of the washout included.
    #[must_use]
    pub fn read(&self) -> (u64, u64) {
        (
            self.answers.load(Ordering::Relaxed),
            self.failures.load(Ordering::Relaxed),
        )
    }
}

/// Why a load cannot be carried out. What a server does wrong is no such error but in [`Measured`].
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It cannot be meant.
    #[error("{0}")]
    Request(&'static str),
    /// The machine refuses.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
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

/// Carries a load out and tells what was seen. `stop` is asked some hundred times a second whether to
/// end at once; what was counted by then is returned.
///
/// # Errors
/// It cannot be meant, or this machine refuses something that has nothing to do with a connection.
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

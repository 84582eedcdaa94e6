//! Runs one load on a server and reads the counters before and after the load.

use crate::link::{self, NetworkPath};
use crate::machine;
use crate::server::{self, ServerProcesses};
use crate::target::Target;
use crate::waits;
use assay_http::{HttpLoad, Live, LoadError};
use assay_model::web::{Pace, ServerUse, Step};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Interval of progress reports during a load.
pub(crate) const TOLD: Duration = Duration::from_millis(200);

/// A target, with the counters that are read before and after its loads.
pub struct Bench<'a> {
    target: &'a Target,
    server: &'a ServerProcesses,
    link: Result<NetworkPath, String>,
}

/// Properties in which the steps of a measurement differ.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Index of the target.
    pub target: usize,
    /// Number of the round, from 0.
    pub round: u32,
    /// Number of connections; for an open loop, the maximum number.
    pub connections: u32,
    /// When requests are sent: in a closed loop, at a rate, or at listed times.
    pub pace: Pace,
    /// Fraction of the capacity to which the pace corresponds; `None` if the pace does not come from the capacity.
    pub share: Option<f64>,
}

/// Settings that are the same for all steps.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Manner {
    /// Whether requests are chosen at random.
    pub shuffled: bool,
    /// Number of requests after which a connection is closed; `None` means no limit.
    pub requests_per_connection: Option<u32>,
    /// Time before the counted time in which the load warms up the server.
    pub washout: Duration,
    /// Duration of the counted time.
    pub window: Duration,
    /// Time limit of a request. A slower request counts as failed.
    pub limit: Duration,
    /// Number of threads of the generator. Default: half of the CPUs for a server on this machine, else all CPUs.
    pub threads: Option<u32>,
    /// Seed of all random choices.
    pub seed: u64,
}

impl<'a> Bench<'a> {
    /// Creates a bench. `speed` is the user's value for the speed of the network interface, in bits per second.
    #[must_use]
    pub fn new(target: &'a Target, server: &'a ServerProcesses, speed: Option<f64>) -> Self {
        Self {
            target,
            server,
            link: NetworkPath::to(&target.addresses[0], speed),
        }
    }

    /// Returns the server that this bench loads.
    pub(crate) fn target(&self) -> &'a Target {
        self.target
    }

    fn load(&self, manner: &Manner, shape: Shape) -> HttpLoad {
        let target = self.target;
        let cpus = machine::cpus();
        HttpLoad {
            requests: target.requests.clone(),
            protocol: target.protocol(),
            streams: target.streams,
            shuffled: manner.shuffled,
            addresses: target.addresses.clone(),
            tls: target.tls.clone(),
            connections: shape.connections,
            requests_per_connection: target
                .requests_per_connection
                .or(manner.requests_per_connection),
            pace: shape.pace,
            listed: Arc::clone(&target.listed),
            washout: manner.washout,
            window: manner.window,
            limit: manner.limit,
            threads: manner.threads.unwrap_or(match target.here {
                true => (cpus / 2).max(1),
                false => cpus,
            }),
            seed: manner.seed,
        }
    }
}

/// Runs one load and reads the counters before and after it. Several times a second, calls `tell` with the numbers of
/// good answers and failures, and the elapsed time.
///
/// # Errors
/// The load cannot run at all.
pub fn measure(
    bench: &Bench<'_>,
    manner: &Manner,
    shape: Shape,
    stop: &(dyn Fn() -> bool + Sync),
    tell: &mut (dyn FnMut((u64, u64), Duration) + Send),
) -> Result<Step, LoadError> {
    let load = &bench.load(manner, shape);
    let live = Live::default();
    let interface = bench
        .link
        .as_ref()
        .map(|link| link.interface.clone())
        .unwrap_or_default();
    let look_around = || {
        (
            machine::MachineCounters::now(),
            link::InterfaceCounters::at(&interface),
        )
    };
    let look = || server::ServerCounters::at(bench.server);
    let looks = Mutex::new(None);
    let over = Mutex::new(false);
    let begin = Instant::now();
    let sockets = Mutex::new(None);
    let measured = thread::scope(|scope| {
        let ended = || over.lock().map_or(true, |over| *over);
        let sockets = &sockets;
        scope.spawn(move || {
            let times = [load.washout, load.washout + load.window];
            let address = load.addresses[0];
            let seen = waits::watch(bench.server, address, begin, times, &ended);
            if let Ok(mut sockets) = sockets.lock() {
                *sockets = seen;
            }
        });
        let (looks, over, live) = (&looks, &over, &live);
        let (look, look_around) = (&look, &look_around);
        scope.spawn(move || {
            let (mut first, mut last) = (None, None);
            let (mut first_of_server, mut last_of_server) = (None, None);
            let (mut told, end) = (begin, load.washout + load.window);
            loop {
                let since = begin.elapsed();
                if first.is_none() && since >= load.washout {
                    first_of_server = Some(look());
                    first = Some(look_around());
                }
                let ended = over.lock().map_or(true, |over| *over);
                // Remote counters are requested early, by the time that a request takes, while the load still
                // runs.
                let took = first_of_server.as_ref().map(server::ServerCounters::took);
                let end_of_server = end - took.unwrap_or_default().min(load.window / 4);
                if last_of_server.is_none() && (ended || since >= end_of_server) {
                    last_of_server = Some(look());
                }
                if last.is_none() && (ended || since >= end) {
                    last = Some(look_around());
                }
                if ended {
                    break;
                }
                if told.elapsed() >= TOLD {
                    told = Instant::now();
                    tell(live.read(), since);
                }
                let next = match (&first, &last_of_server, &last) {
                    (None, ..) => load.washout.saturating_sub(since),
                    (_, None, _) => end_of_server.saturating_sub(since),
                    (.., None) => end.saturating_sub(since),
                    _ => TOLD,
                };
                thread::sleep(next.clamp(Duration::from_micros(200), Duration::from_millis(20)));
            }
            if let Ok(mut looks) = looks.lock() {
                *looks = first_of_server.zip(last_of_server).zip(first.zip(last));
            }
        });
        let measured = assay_http::run(load, live, stop);
        if let Ok(mut over) = over.lock() {
            *over = true;
        }
        measured
    })?;
    let looks = looks.into_inner().unwrap_or_default();
    let (server, machine, link) = match &looks {
        Some(((first_of_server, last_of_server), (first, last))) => (
            last_of_server.since(first_of_server).map(|used| ServerUse {
                sockets: sockets.into_inner().unwrap_or_default(),
                ..used
            }),
            last.0.since(&first.0),
            match &bench.link {
                Ok(link) => last.1.since(&first.1, link),
                Err(why) => Err(why.clone()),
            },
        ),
        None => {
            let why = "it ended before anything was counted".to_owned();
            (Err(why.clone()), Default::default(), Err(why))
        }
    };
    Ok(Step {
        target: shape.target,
        round: shape.round,
        connections: shape.connections,
        protocol: bench.target.protocol(),
        streams: bench.target.streams,
        pace: shape.pace,
        share: shape.share,
        measured,
        server,
        link,
        machine,
        parts: Vec::new(),
    })
}

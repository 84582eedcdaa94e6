//! Runs the steps of a measurement in rounds. Each round measures all targets. Module `connection_search` chooses the
//! numbers of connections.

mod connection_search;

use crate::server::ServerProcesses;
use crate::step::{Bench, Manner, Shape, measure};
use crate::target::Target;
use assay_http::{LoadError, MOST_CONNECTIONS};
use assay_judge::web::judge;
use assay_model::web::result::Capacity;
use assay_model::web::{Pace, Step};
use connection_search::{list_around_knees, list_from_knees};
use serde::Serialize;
use std::thread;
use std::time::Duration;

/// Numbers of connections that are tried to find the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// Measure these numbers of connections, without a search.
    List(Vec<u32>),
    /// Try 1, 2, 4, … connections for a short time each, up to this maximum, until two doublings in a row raise the
    /// rate by less than 5 %. Then measure the numbers around the smallest sufficient number in rounds.
    Doubling(u32),
}

/// Default maximum number of connections of an open loop. It is large enough for a short stall of the server, and
/// within the default limits of servers.
const OPEN: u32 = 256;
/// Maximum counted time of a search step, and the washout before it, in seconds.
const SEARCH: (f64, f64) = (0.4, 0.1);
/// Number of further searches, if the rate still rose at the largest measured number of connections.
const SEARCHES: usize = 2;
/// Pause between steps, in which the server closes old connections.
const PAUSE: Duration = Duration::from_millis(100);

/// Settings of a measurement, all fixed before its start.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Numbers of connections that are tried to find the capacity.
    pub connections: Search,
    /// Fractions of the capacity at which open loops measure the latency.
    pub shares: Vec<f64>,
    /// Further request rates at which open loops measure the latency, in requests per second.
    pub rates: Vec<f64>,
    /// Whether open loops send requests at random times (Poisson process).
    pub poisson: bool,
    /// Number of rounds, in each of which every step is measured once.
    pub rounds: u32,
    /// Counted time of a step in seconds: for capacity steps, and for latency steps.
    pub seconds: (f64, f64),
    /// Time before the counted time in which the load warms up the server, in seconds.
    pub washout: f64,
    /// Time limit of a request in seconds. A slower request counts as failed.
    pub limit: f64,
    /// Number of threads of the generator. Default: half of the CPUs for a server on this machine, else all CPUs.
    pub threads: Option<u32>,
    /// Maximum number of connections of an open loop; `None` means the default.
    pub open_connections: Option<u32>,
    /// Number of requests after which a connection is closed; `None` means no limit.
    pub requests_per_connection: Option<u32>,
    /// Whether requests are chosen at random.
    pub shuffled: bool,
    /// Speed of the network interface in bits per second, from the user; `None` if not given.
    pub link: Option<f64>,
    /// Whether the latency steps may be shortened, by at most half, if the search took longer than planned.
    #[serde(skip)]
    pub may_shorten: bool,
    /// Seed of all random choices.
    pub seed: u64,
}

/// An event of a measurement, for progress displays.
#[derive(Debug)]
pub enum WebEvent<'a> {
    /// A step of the measurement starts.
    Begins {
        /// Index of the target.
        target: usize,
        /// Number of connections of the step.
        connections: u32,
        /// When the step sends requests.
        pace: Pace,
        /// Number of the round, from 0.
        round: u32,
        /// Estimated time from the start of this step to the end of the measurement.
        left: Duration,
    },
    /// The current load makes progress.
    Goes {
        /// Number of good answers until now.
        answers: u64,
        /// Number of failures until now.
        failures: u64,
        /// Time since the step started.
        since: Duration,
        /// Estimated time until the end of the measurement.
        left: Duration,
    },
    /// A step ended with this result.
    Ended(&'a Step),
    /// The capacity of a target is known.
    Capacity {
        /// Index of the target.
        target: usize,
        /// Capacity of the target; `None` if no round is valid.
        capacity: Option<Capacity>,
    },
}

/// Reason why a measurement ended early.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// A load cannot run at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A generator is lost or violated the protocol. Contains the reason.
    #[error("{0}")]
    Generator(String),
}

/// Runs the load of a session, on this machine or on several machines at once.
pub trait Loading {
    /// Returns the number of targets.
    fn targets(&self) -> usize;
    /// Returns the pace of the requests to a target if they come from an access log; else `None`.
    fn pace(&self, target: usize) -> Option<Pace>;
    /// Returns the number of simultaneous requests per connection to a target.
    fn streams(&self, target: usize) -> u32;
    /// Reduces a step to the limits in the consent of its target.
    fn allowed(&self, shape: Shape) -> Shape;
    /// Runs one step (see [`measure`]).
    ///
    /// # Errors
    /// See [`CarryError`].
    fn step(
        &mut self,
        manner: &Manner,
        shape: Shape,
        stop: &(dyn Fn() -> bool + Sync),
        tell: &mut (dyn FnMut((u64, u64), Duration) + Send),
    ) -> Result<Step, CarryError>;
}

/// Runs loads from this machine alone.
struct Alone<'a>(Vec<Bench<'a>>);

impl Loading for Alone<'_> {
    fn targets(&self) -> usize {
        self.0.len()
    }

    fn pace(&self, target: usize) -> Option<Pace> {
        self.0[target].target().pace()
    }

    fn streams(&self, target: usize) -> u32 {
        self.0[target].target().streams
    }

    fn allowed(&self, shape: Shape) -> Shape {
        self.0[shape.target].target().allowed(shape)
    }

    fn step(
        &mut self,
        manner: &Manner,
        shape: Shape,
        stop: &(dyn Fn() -> bool + Sync),
        tell: &mut (dyn FnMut((u64, u64), Duration) + Send),
    ) -> Result<Step, CarryError> {
        Ok(measure(&self.0[shape.target], manner, shape, stop, tell)?)
    }
}

/// Runs all steps from this machine. Steps that ended before `stop` returned true, or before an error, stay in `steps`.
///
/// # Errors
/// A load cannot run at all.
pub fn carry_out(
    targets: &[Target],
    servers: &[ServerProcesses],
    settings: &Settings,
    steps: &mut Vec<Step>,
    stop: &(dyn Fn() -> bool + Sync),
    tell: &mut (dyn FnMut(WebEvent<'_>) + Send),
) -> Result<(), CarryError> {
    let benches = targets
        .iter()
        .zip(servers)
        .map(|(target, server)| Bench::new(target, server, settings.link));
    carry_out_on(&mut Alone(benches.collect()), settings, steps, stop, tell)
}

/// Runs all steps with the given load runner.
///
/// # Errors
/// See [`CarryError`].
pub fn carry_out_on(
    loading: &mut dyn Loading,
    settings: &Settings,
    steps: &mut Vec<Step>,
    stop: &(dyn Fn() -> bool + Sync),
    tell: &mut (dyn FnMut(WebEvent<'_>) + Send),
) -> Result<(), CarryError> {
    let mut session = Session {
        left: estimate(loading.targets(), settings),
        latency_seconds: settings.seconds.1,
        loading,
        settings,
        steps,
        stop,
        tell,
        slot: 0,
        searching: false,
    };
    session.capacity()?;
    session.latency()
}

/// Estimates the duration of the measurement.
#[must_use]
pub fn estimate(targets: usize, settings: &Settings) -> Duration {
    // A server on one machine often reaches its capacity at about ten connections.
    let (first, search) = match &settings.connections {
        Search::List(list) => (list.len(), 0),
        Search::Doubling(most) => (5, (most.ilog2() as usize + 1).min(8)),
    };
    let each = |steps: usize, seconds: f64| {
        steps as f64 * (seconds + settings.washout + PAUSE.as_secs_f64())
    };
    let second = count_latency_steps(settings);
    let once = each(first, settings.seconds.0) + each(second, settings.seconds.1);
    let search = search as f64 * (SEARCH.0 + SEARCH.1 + PAUSE.as_secs_f64());
    let all = (search + once * f64::from(settings.rounds)) * targets as f64;
    Duration::try_from_secs_f64(all).unwrap_or(Duration::MAX)
}

/// Returns the number of latency steps for one target in one round.
fn count_latency_steps(settings: &Settings) -> usize {
    settings.shares.len() + settings.rates.len()
}

struct Session<'a> {
    loading: &'a mut dyn Loading,
    settings: &'a Settings,
    steps: &'a mut Vec<Step>,
    stop: &'a (dyn Fn() -> bool + Sync),
    tell: &'a mut (dyn FnMut(WebEvent<'_>) + Send),
    left: Duration,
    /// Counted time of a latency step, in seconds.
    latency_seconds: f64,
    slot: u64,
    /// Whether the search for the number of connections is running. Its steps are not stored.
    searching: bool,
}

impl Session<'_> {
    /// Measures the capacity with closed loops.
    fn capacity(&mut self) -> Result<(), CarryError> {
        let mut searched = vec![Vec::new(); self.loading.targets()];
        let (mut list, most) = match self.settings.connections.clone() {
            Search::List(list) => (list, 0),
            Search::Doubling(most) => {
                self.search(1, most, &mut searched)?;
                (list_around_knees(&searched, most), most)
            }
        };
        self.rounds_of(&list)?;
        // The short search steps may have missed the maximum.
        for _ in 0..SEARCHES {
            let Some(connections) = self.next_to_try(&list, most) else {
                break;
            };
            self.search(connections, most, &mut searched)?;
            let more = list_from_knees(&searched, connections, most);
            self.rounds_of(&more)?;
            list.extend(more);
        }
        Ok(())
    }

    /// Measures these numbers of connections in rounds, with closed loops.
    fn rounds_of(&mut self, list: &[u32]) -> Result<(), CarryError> {
        for round in 0..self.settings.rounds {
            for &connections in list {
                self.all_targets(round, connections)?;
            }
        }
        Ok(())
    }

    /// Returns the next number of connections to try: twice the largest number tried until now, at most `most`. Returns
    /// `None` if the largest number did not raise the rate.
    fn next_to_try(&self, list: &[u32], most: u32) -> Option<u32> {
        let tried = *list.last()?;
        let rising = |capacity: &Option<Capacity>| capacity.is_some_and(|found| found.rising);
        let judged = judge(self.steps, self.loading.targets());
        let more = judged.capacity.iter().any(rising) && tried < most && !(self.stop)();
        more.then(|| tried.saturating_mul(2).min(most))
    }

    fn all_targets(&mut self, round: u32, connections: u32) -> Result<(), CarryError> {
        for target in self.turns(round) {
            self.step(Shape {
                target,
                round,
                connections,
                pace: Pace::Closed,
                share: None,
            })?;
        }
        Ok(())
    }

    /// Returns the order in which a round measures the targets. Each round starts with another target.
    fn turns(&self, round: u32) -> Vec<usize> {
        let n = self.loading.targets();
        (0..n).map(|at| (at + round as usize) % n.max(1)).collect()
    }

    /// Measures the latency with open loops, at fractions of the capacity and at the given rates.
    fn latency(&mut self) -> Result<(), CarryError> {
        if self.settings.may_shorten {
            self.shorten_latency_steps();
        }
        let capacity = judge(self.steps, self.loading.targets()).capacity;
        for (target, capacity) in capacity.iter().enumerate() {
            // Without a capacity stage there is no capacity to report.
            if !self
                .steps
                .iter()
                .any(|step| step.target == target && step.pace == Pace::Closed)
            {
                continue;
            }
            (self.tell)(WebEvent::Capacity {
                target,
                capacity: *capacity,
            });
        }
        for round in 0..self.settings.rounds {
            for target in self.turns(round) {
                if let Some(pace) = self.loading.pace(target) {
                    self.step(Shape {
                        target,
                        round,
                        connections: self.open(target),
                        pace,
                        share: None,
                    })?;
                }
            }
            let shares = self.settings.shares.iter().map(|share| (Some(*share), 0.0));
            let rates = self.settings.rates.iter().map(|rate| (None, *rate));
            for (share, rate) in shares.chain(rates) {
                for target in self.turns(round) {
                    let per_s = match (share, capacity[target]) {
                        (Some(share), Some(capacity)) => share * capacity.rate,
                        (Some(_), None) => continue,
                        (None, _) => rate,
                    };
                    self.step(Shape {
                        target,
                        round,
                        connections: self.open(target),
                        pace: match self.settings.poisson {
                            true => Pace::Poisson { per_s },
                            false => Pace::Constant { per_s },
                        },
                        share,
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Shortens the latency steps so that they fit into the remaining planned time.
    fn shorten_latency_steps(&mut self) {
        let targets = self.loading.targets() as f64;
        let settings = self.settings;
        let steps = count_latency_steps(settings) as f64 * f64::from(settings.rounds) * targets;
        let (whole, each) = (settings.seconds.1, PAUSE.as_secs_f64() + settings.washout);
        let fitting = self.left.as_secs_f64() / steps.max(1.0) - each;
        self.latency_seconds = fitting.clamp(whole / 2.0, whole);
    }

    /// Returns the maximum number of connections of an open loop.
    fn open(&self, target: usize) -> u32 {
        let streams = self.loading.streams(target).max(1);
        let most = self.settings.open_connections.unwrap_or(OPEN);
        most.min(MOST_CONNECTIONS / streams).max(1)
    }

    fn step(&mut self, shape: Shape) -> Result<(), CarryError> {
        let seconds = match self.loading.allowed(shape).pace {
            Pace::Closed => self.settings.seconds.0,
            _ => self.latency_seconds,
        };
        self.step_for(shape, (seconds, self.settings.washout))
    }

    /// Runs a step with these durations of counted time and washout, in seconds.
    fn step_for(&mut self, shape: Shape, (seconds, washout): (f64, f64)) -> Result<(), CarryError> {
        if (self.stop)() {
            return Ok(());
        }
        // A closed loop has no rate limit. If the consent limits the rate, an open loop replaces the closed
        // loop.
        let shape = self.loading.allowed(shape);
        let settings = self.settings;
        let whole = Duration::from_secs_f64(seconds + washout) + PAUSE;
        self.slot += 1;
        (self.tell)(WebEvent::Begins {
            target: shape.target,
            connections: shape.connections,
            pace: shape.pace,
            round: shape.round,
            left: self.left,
        });
        let manner = Manner {
            shuffled: settings.shuffled,
            requests_per_connection: settings.requests_per_connection,
            washout: Duration::from_secs_f64(washout),
            window: Duration::from_secs_f64(seconds),
            limit: Duration::from_secs_f64(settings.limit),
            threads: settings.threads,
            seed: settings.seed.wrapping_add(self.slot),
        };
        let left = self.left;
        let told = &mut self.tell;
        let step = self
            .loading
            .step(&manner, shape, self.stop, &mut |live, since| {
                let (answers, failures) = live;
                told(WebEvent::Goes {
                    answers,
                    failures,
                    since,
                    left: left.saturating_sub(since),
                });
            })?;
        if !self.searching {
            (self.tell)(WebEvent::Ended(&step));
        }
        self.left = self.left.saturating_sub(whole);
        // A step that was interrupted before the counted time has no result.
        if !step.measured.interrupted || step.measured.answers > 0 {
            self.steps.push(step);
        }
        if !(self.stop)() {
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

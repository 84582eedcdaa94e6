//! The steps of a whole measurement, in rounds in which all targets take turns.

use crate::server::ServerProcesses;
use crate::step::{Bench, Manner, Shape, measure};
use crate::target::Target;
use assay_http::{LoadError, MOST_CONNECTIONS};
use assay_judge::web::{GAIN, judge};
use assay_model::web::result::Capacity;
use assay_model::web::{Pace, Step};
use serde::Serialize;
use std::thread;
use std::time::Duration;

/// Which numbers of connections are tried for the capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Search {
    /// These.
    List(Vec<u32>),
    /// 1, 2, 4, … for a moment each until twice as many bring less than 5 % more, at most this many. The numbers
    /// around the fewest that suffice are then measured in rounds.
    Doubling(u32),
}

/// Connections that an open loop may use: enough that a short stall of the server makes nobody wait for
/// one, few enough for a server with default limits.
const OPEN: u32 = 256;
/// Time that is counted in a step of the search, at most, and time before it.
const SEARCH: (f64, f64) = (0.4, 0.1);
/// Pause between steps, for the server to close what is left.
const PAUSE: Duration = Duration::from_millis(100);

/// All that is decided before the start.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// For the capacity.
    pub connections: Search,
    /// Shares of the capacity at which the latency is measured, in an open loop.
    pub shares: Vec<f64>,
    /// Requests per second at which it is measured as well.
    pub rates: Vec<f64>,
    /// The times of an open loop are random.
    pub poisson: bool,
    /// How often each step is repeated.
    pub rounds: u32,
    /// Time that is counted in a step of the first and of the second stage.
    pub seconds: (f64, f64),
    /// Time before it that is not counted.
    pub washout: f64,
    /// A request that takes longer has failed.
    pub limit: f64,
    /// Threads of the generator; none: half of the CPUs for a server on this machine, else all.
    pub threads: Option<u32>,
    /// Connections of an open loop, at most.
    pub open_connections: Option<u32>,
    /// A connection is closed after so many requests.
    pub requests_per_connection: Option<u32>,
    /// Requests are picked at random.
    pub shuffled: bool,
    /// Bits per second that the link carries.
    pub link: Option<f64>,
    /// For everything random.
    pub seed: u64,
}

/// What happens.
#[derive(Debug)]
pub enum WebEvent<'a> {
    /// A step begins, so many of so many; the time that is left is an estimate.
    Begins {
        /// Which target.
        target: usize,
        /// Connections.
        connections: u32,
        /// Pace.
        pace: Pace,
        /// From 0.
        round: u32,
        /// From the start of this step to the end of all.
        left: Duration,
    },
    /// A load is under way: good answers and failures so far, and for how long.
    Goes {
        /// Good answers.
        answers: u64,
        /// Failures.
        failures: u64,
        /// Since the step began.
        since: Duration,
        /// As in `Begins`.
        left: Duration,
    },
    /// A step has ended.
    Ended(&'a Step),
    /// The capacity of a target was found.
    Capacity {
        /// Which target.
        target: usize,
        /// None when no round counts.
        capacity: Option<Capacity>,
    },
}

/// Why a measurement ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum CarryError {
    /// A load cannot be carried out at all.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// One of several generators is gone, or says something else than it should.
    #[error("{0}")]
    Generator(String),
}

/// What loads the targets: this machine, or several at once.
pub trait Loading {
    /// How many targets.
    fn targets(&self) -> usize;
    /// The pace of a target's own list.
    fn pace(&self, target: usize) -> Option<Pace>;
    /// Requests at once on each connection to it.
    fn streams(&self, target: usize) -> u32;
    /// As much of a step as its target agreed to.
    fn allowed(&self, shape: Shape) -> Shape;
    /// Carries one step out; as [`measure`].
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

/// Of this machine alone.
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

/// Carries all steps out. What was measured before `stop` said so, or before something failed, is in
/// `steps` all the same.
///
/// # Errors
/// A load cannot be carried out at all.
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

/// The same, by whatever loads.
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

/// Time that it all takes, about.
#[must_use]
pub fn estimate(targets: usize, settings: &Settings) -> Duration {
    // A server on one machine is often full at some ten connections.
    let (first, search) = match &settings.connections {
        Search::List(list) => (list.len(), 0),
        Search::Doubling(most) => (5, (most.ilog2() as usize + 1).min(6)),
    };
    let second = settings.shares.len() + settings.rates.len();
    let each = |steps: usize, seconds: f64| {
        steps as f64 * (seconds + settings.washout + PAUSE.as_secs_f64())
    };
    let once = each(first, settings.seconds.0) + each(second, settings.seconds.1);
    let search = search as f64 * (SEARCH.0 + SEARCH.1 + PAUSE.as_secs_f64());
    let all = (search + once * f64::from(settings.rounds)) * targets as f64;
    Duration::try_from_secs_f64(all).unwrap_or(Duration::MAX)
}

struct Session<'a> {
    loading: &'a mut dyn Loading,
    settings: &'a Settings,
    steps: &'a mut Vec<Step>,
    stop: &'a (dyn Fn() -> bool + Sync),
    tell: &'a mut (dyn FnMut(WebEvent<'_>) + Send),
    left: Duration,
    slot: u64,
    /// The steps of the search are not kept.
    searching: bool,
}

impl Session<'_> {
    /// Closed loops.
    fn capacity(&mut self) -> Result<(), CarryError> {
        let (mut list, most) = match self.settings.connections.clone() {
            Search::List(list) => (list, 0),
            Search::Doubling(most) => (self.search(most)?, most),
        };
        for round in 0..self.settings.rounds {
            for &connections in &list {
                self.all_targets(round, connections)?;
            }
        }
        // The moments of the search may have missed the top.
        while let Some(connections) = self.next_to_try(&list, most) {
            for round in 0..self.settings.rounds {
                self.all_targets(round, connections)?;
            }
            list.push(connections);
        }
        Ok(())
    }

    /// Returns twice the most connections tried where they still brought more, while `most` allows them.
    fn next_to_try(&self, list: &[u32], most: u32) -> Option<u32> {
        let tried = *list.last()?;
        let rising = |capacity: &Option<Capacity>| capacity.is_some_and(|found| found.rising);
        let judged = judge(self.steps, self.loading.targets());
        let more = judged.capacity.iter().any(rising) && tried < most && !(self.stop)();
        more.then(|| tried.saturating_mul(2).min(most))
    }

    /// Looks for the fewest connections that reach the highest rate, for a moment with each number, and returns
    /// the numbers around it that are worth measuring. What is seen here is not kept.
    fn search(&mut self, most: u32) -> Result<Vec<u32>, CarryError> {
        let targets = self.loading.targets();
        let kept = self.steps.len();
        self.searching = true;
        let mut rates: Vec<Vec<(u32, f64)>> = vec![Vec::new(); targets];
        let mut connections = 1;
        loop {
            for (target, rates) in rates.iter_mut().enumerate() {
                let seconds = (
                    self.settings.seconds.0.min(SEARCH.0),
                    self.settings.washout.min(SEARCH.1),
                );
                let shape = Shape {
                    target,
                    round: 0,
                    connections,
                    pace: Pace::Closed,
                    share: None,
                };
                self.step_for(shape, seconds)?;
                let seen = self
                    .steps
                    .drain(kept..)
                    .map(|step| step.measured.rate())
                    .sum();
                rates.push((connections, seen));
            }
            let rising = |rates: &Vec<(u32, f64)>| {
                let before = rates[..rates.len() - 1]
                    .iter()
                    .map(|(_, rate)| *rate)
                    .fold(0.0, f64::max);
                rates.last().is_some_and(|(_, rate)| *rate > GAIN * before)
            };
            if !rates.iter().any(rising) || connections >= most || (self.stop)() {
                break;
            }
            connections = connections.saturating_mul(2).min(most);
        }
        self.searching = false;
        let enough = |rates: &Vec<(u32, f64)>| {
            let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            let enough = rates.iter().find(|(_, rate)| *rate * GAIN >= best);
            enough.map_or(1, |(connections, _)| *connections)
        };
        let mut list: Vec<u32> = rates
            .iter()
            .map(enough)
            .flat_map(|knee| {
                [
                    1,
                    knee / 4,
                    knee / 2,
                    knee,
                    knee.saturating_mul(2).min(most),
                ]
            })
            .filter(|connections| *connections > 0)
            .collect();
        list.sort_unstable();
        list.dedup();
        Ok(list)
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

    /// Each round begins with another target, so that none is always the one after a certain other.
    fn turns(&self, round: u32) -> Vec<usize> {
        let n = self.loading.targets();
        (0..n).map(|at| (at + round as usize) % n.max(1)).collect()
    }

    /// Open loops at shares of the capacity.
    fn latency(&mut self) -> Result<(), CarryError> {
        let capacity = judge(self.steps, self.loading.targets()).capacity;
        for (target, capacity) in capacity.iter().enumerate() {
            // Where nothing was tried, nothing can be found.
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

    /// Connections of an open loop, at most.
    fn open(&self, target: usize) -> u32 {
        let streams = self.loading.streams(target).max(1);
        let most = self.settings.open_connections.unwrap_or(OPEN);
        most.min(MOST_CONNECTIONS / streams).max(1)
    }

    fn step(&mut self, shape: Shape) -> Result<(), CarryError> {
        let seconds = match self.loading.allowed(shape).pace {
            Pace::Closed => self.settings.seconds.0,
            _ => self.settings.seconds.1,
        };
        self.step_for(shape, (seconds, self.settings.washout))
    }

    /// Carries a step out for so many seconds that count, after so many that do not.
    fn step_for(&mut self, shape: Shape, (seconds, washout): (f64, f64)) -> Result<(), CarryError> {
        if (self.stop)() {
            return Ok(());
        }
        // A closed loop goes as fast as it can: where a rate was agreed on, it becomes an open one.
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
        // What was interrupted before anything was counted says nothing.
        if !step.measured.interrupted || step.measured.answers > 0 {
            self.steps.push(step);
        }
        if !(self.stop)() {
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}

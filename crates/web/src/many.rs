//! Runs one load from several machines at once: divides each step, starts the generators together, and combines their
//! results.
//!
//! Each generator is this program on another machine ([`generate`]). A generator resolves the servers itself and checks
//! the consent by the same rules as a single machine. The messages are JSON objects, one per line, on a [`Line`].

mod generator;
mod join;
mod split;

pub use generator::generate;
#[doc(hidden)]
pub use join::told;

use crate::Consent;
use crate::machine;
use crate::server::{self, ServerProcesses};
use crate::session::{CarryError, Loading};
use crate::step::{Manner, Shape, TOLD};
use assay_model::clock::{self, ClockExchange, Offset};
use assay_model::web::{MachineUse, Measured, Pace, Part, Protocol, ServerUse, Step};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Number of exchanges before each step that estimate the clock offset. The fastest exchange counts. Clocks drift apart
/// by less than 0.1 ms per second.
const EXCHANGES: usize = 8;
/// Time between sending the order and the common start. A few round trips are added.
const LEAD: Duration = Duration::from_millis(60);
/// Time after which a generator counts as lost, if its step takes this much longer than planned, or if it sends nothing
/// for this time.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for the last messages when all generators are stopped.
const TO_END: Duration = Duration::from_secs(10);
/// Time limit for an answer to [`GeneratorOrder::Clock`].
const CLOCK: Duration = Duration::from_secs(10);
/// Error text for an unexpected message.
const NONSENSE: &str = "it says what no generator says";
/// Interval at which `stop` is checked.
const LOOK: Duration = Duration::from_millis(50);

/// An order that the coordinating machine sends to a generator.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorOrder {
    /// Requests the time of the generator's clock.
    Clock,
    /// Requests that the generator carries out a step.
    Step {
        /// Part of the step that this generator carries out.
        shape: Shape,
        /// Settings of the step.
        manner: Manner,
        /// Time of the common start on the generator's clock, in microseconds.
        at_us: i64,
    },
}

/// A message that a generator sends to the coordinating machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// The generator has found the servers, and loading them is permitted.
    Ready {
        /// Servers in the order of their URLs.
        targets: Vec<Reached>,
        /// Identity of the generator's machine; `None` if unknown.
        machine: Option<String>,
    },
    /// Time of the generator's clock, in microseconds.
    Clock(i64),
    /// Numbers of good answers and of failures until now.
    Live(u64, u64),
    /// A step ended with this result.
    Step {
        /// How much later than ordered the step started, in microseconds.
        late_us: i64,
        /// Result of the step, as if this generator ran alone.
        step: Box<Step>,
    },
    /// The generator failed. Contains the reason.
    Failed(String),
}

/// A server, as one generator reached it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reached {
    /// Addresses that the generator loads.
    pub addresses: Vec<SocketAddr>,
    /// Consent of the server; `None` if none was required.
    pub consent: Option<Consent>,
    /// HTTP version of the connections.
    pub protocol: Protocol,
    /// Number of simultaneous requests per connection.
    pub streams: u32,
    /// Warnings for the reader of the results.
    pub remarks: Vec<String>,
}

/// A bidirectional channel of text lines to a generator.
pub trait Line: Send {
    /// Sends a line immediately.
    fn say(&mut self, line: &str);

    /// Returns the next line and the time of its arrival; `None` if no line arrives within `within`.
    ///
    /// # Errors
    /// The reason why no more lines will arrive.
    fn hear(&mut self, within: Duration) -> Result<Option<(Instant, String)>, String>;

    /// Stops the current step and the generator. Lines that the generator has already sent can still be read.
    fn end(&mut self);
}

/// Result of a generator's part: how much too late it started in microseconds, and the step. `None` if the measurement
/// was stopped before the start.
type Carried = Result<Option<(i64, Box<Step>)>, String>;

/// Time limits of a step on one generator.
#[derive(Clone, Copy)]
struct Limits<'a> {
    start: Instant,
    /// Time at which the generator counts as lost if its step has not ended.
    late: Instant,
    /// Maximum time without a message, after which the generator also counts as lost.
    silence: Duration,
    /// Flag that is set when a generator is lost. The results of all other generators are then void.
    lost: &'a AtomicBool,
}

/// A connected generator with the offset of its clock.
struct Generator {
    name: String,
    line: Box<dyn Line>,
    clock: Option<Offset>,
    lost: Option<String>,
}

/// A server, with the properties that all generators have in common.
struct Joint {
    consent: Option<Consent>,
    protocol: Protocol,
    streams: u32,
    server: ServerProcesses,
    remarks: Vec<String>,
}

/// Several generators that load the same servers together.
pub struct Many {
    generators: Vec<Generator>,
    targets: Vec<Joint>,
    begin: Instant,
    /// Maximum time without a message during a step. A generator reports its progress several times a second.
    silence: Duration,
}

impl Many {
    /// Returns warnings about a server for the reader of the results.
    #[must_use]
    pub fn remarks(&self, target: usize) -> &[String] {
        let joint = self.targets.get(target);
        joint.map_or(&[][..], |joint| joint.remarks.as_slice())
    }

    /// Returns which generator is lost, and why; `None` if all are connected.
    #[must_use]
    pub fn lost(&self) -> Option<String> {
        let mut all = self.generators.iter();
        all.find_map(|one| Some(format!("{}: {}", one.name, one.lost.as_ref()?)))
    }

    fn micros(&self, at: Instant) -> i64 {
        let since = at.saturating_duration_since(self.begin).as_micros();
        i64::try_from(since).unwrap_or(i64::MAX)
    }

    fn gone(&self) -> Result<(), CarryError> {
        match self.lost() {
            Some(lost) => Err(CarryError::Generator(lost)),
            None => Ok(()),
        }
    }

    /// Measures the clock offsets of all generators at the same time. Returns the longest round trip time.
    fn clocks(&mut self, stop: &(dyn Fn() -> bool + Sync)) -> Duration {
        let begin = self.begin;
        thread::scope(|scope| {
            for one in &mut self.generators {
                scope.spawn(move || match one.ask_clock(begin, stop) {
                    Ok(clock) => one.clock = clock,
                    Err(why) => one.lost = Some(why),
                });
            }
        });
        let errors = self.generators.iter().filter_map(|one| one.clock);
        let worst = errors.map(|clock| clock.error_us).max().unwrap_or(0);
        Duration::from_micros(u64::try_from(worst).unwrap_or(0).saturating_mul(2))
    }
}

impl Loading for Many {
    fn targets(&self) -> usize {
        self.targets.len()
    }

    fn pace(&self, _target: usize) -> Option<Pace> {
        // A log is not replayed from several machines.
        None
    }

    fn streams(&self, target: usize) -> u32 {
        self.targets[target].streams
    }

    fn allowed(&self, shape: Shape) -> Shape {
        match &self.targets[shape.target].consent {
            Some(consent) => consent.allowed(shape),
            None => shape,
        }
    }

    fn step(
        &mut self,
        manner: &Manner,
        shape: Shape,
        stop: &(dyn Fn() -> bool + Sync),
        tell: &mut (dyn FnMut((u64, u64), Duration) + Send),
    ) -> Result<Step, CarryError> {
        self.gone()?;
        let round_trip = self.clocks(stop);
        if stop() {
            let nothing = Err("it ended before anything was counted".to_owned());
            return Ok(self.whole(shape, true, nothing, MachineUse::default(), Vec::new()));
        }
        self.gone()?;
        let orders = split::orders(manner, shape, self.generators.len());
        let lead = (LEAD + 4 * round_trip).min(Duration::from_secs(10));
        let start = Instant::now() + lead;
        let start_us = self.micros(start);
        let end = start + manner.washout + manner.window;
        let late = end + manner.limit.max(Duration::from_secs(1)) + PATIENCE;
        let told: Vec<[AtomicU64; 2]> = orders.iter().map(|_| Default::default()).collect();
        let lost = AtomicBool::new(false);
        let limits = Limits {
            start,
            late,
            silence: self.silence,
            lost: &lost,
        };
        let server = &self.targets[shape.target].server;
        let (mut first, mut last) = (None, None);
        let (mut first_of_server, mut last_of_server) = (None, None);
        let ended: Vec<Carried> = thread::scope(|scope| {
            let handles: Vec<_> = self
                .generators
                .iter_mut()
                .zip(&orders)
                .zip(&told)
                .map(|((one, order), live)| {
                    let offset = one.clock.map_or(0, |clock| clock.offset_us);
                    let at_us = start_us
                        .saturating_add(order.after_us)
                        .saturating_add(offset);
                    let order = GeneratorOrder::Step {
                        shape: order.shape,
                        manner: order.manner,
                        at_us,
                    };
                    scope.spawn(move || {
                        let carried = one.carry(&order, limits, live, stop);
                        limits.lost.fetch_or(carried.is_err(), Ordering::Relaxed);
                        carried
                    })
                })
                .collect();
            let mut said = start;
            loop {
                let now = Instant::now();
                if first.is_none() && now >= start + manner.washout {
                    first_of_server = Some(server::ServerCounters::at(server));
                    first = Some(machine::MachineCounters::now());
                }
                let over = handles.iter().all(thread::ScopedJoinHandle::is_finished);
                let begun = first.is_some();
                // Remote counters are requested early, by the time that a request takes, while the load still
                // runs.
                let took = first_of_server.as_ref().map(server::ServerCounters::took);
                let ahead = took.unwrap_or_default().min(manner.window / 4);
                if last_of_server.is_none() && begun && (over || now + ahead >= end) {
                    last_of_server = Some(server::ServerCounters::at(server));
                }
                if last.is_none() && begun && (over || now >= end) {
                    last = Some(machine::MachineCounters::now());
                }
                if over {
                    break;
                }
                if now.saturating_duration_since(said) >= TOLD {
                    said = now;
                    let sum = |which: usize| -> u64 {
                        told.iter().fold(0, |sum, live| {
                            live[which].load(Ordering::Relaxed).saturating_add(sum)
                        })
                    };
                    tell((sum(0), sum(1)), now.saturating_duration_since(start));
                }
                thread::sleep(Duration::from_millis(2));
            }
            let joined = handles.into_iter().map(|handle| match handle.join() {
                Ok(ended) => ended,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        });
        let mut parts = Vec::new();
        let mut used: Option<Result<_, String>> = None;
        for ((one, order), ended) in self.generators.iter_mut().zip(&orders).zip(ended) {
            let mut part = Part {
                generator: one.name.clone(),
                connections: order.shape.connections,
                pace: order.shape.pace,
                clock: one.clock,
                late_us: 0,
                lost: None,
                measured: Measured::default(),
                link: Err("nothing is known of it".to_owned()),
                machine: MachineUse::default(),
            };
            match ended {
                // Everything stopped before this generator started.
                Ok(None) => continue,
                Ok(Some((late_us, step))) => {
                    let step = *step;
                    part.late_us = late_us;
                    part.measured = step.measured;
                    part.link = step.link;
                    part.machine = step.machine;
                    if step.server.is_ok() {
                        used = Some(step.server);
                    }
                }
                Err(why) => {
                    part.lost = Some(why.clone());
                    one.lost = Some(why);
                }
            }
            parts.push(part);
        }
        let target = &self.targets[shape.target];
        let server = match (&target.server, first_of_server.zip(last_of_server)) {
            // A generator may run on the server's machine and see more of the server.
            (ServerProcesses::Unknown(why), _) => used.unwrap_or_else(|| Err(why.clone())),
            (_, Some((first, last))) => last.since(&first),
            (_, None) => Err("it ended before anything was counted".to_owned()),
        };
        let machine = match (&target.server, first.zip(last)) {
            (ServerProcesses::Processes(_) | ServerProcesses::Group(_), Some((first, last))) => {
                last.since(&first)
            }
            // The coordinating machine takes no part in the load.
            _ => MachineUse::default(),
        };
        Ok(self.whole(shape, stop(), server, machine, parts))
    }
}

impl Many {
    /// Combines the results of all generators into one step.
    fn whole(
        &self,
        shape: Shape,
        interrupted: bool,
        server: Result<ServerUse, String>,
        machine: MachineUse,
        parts: Vec<Part>,
    ) -> Step {
        let target = &self.targets[shape.target];
        let known = parts.iter().filter(|part| part.lost.is_none());
        let mut measured = Measured::together(known.map(|part| &part.measured));
        measured.interrupted |= interrupted;
        Step {
            target: shape.target,
            round: shape.round,
            connections: shape.connections,
            protocol: target.protocol,
            streams: target.streams,
            pace: shape.pace,
            share: shape.share,
            measured,
            server,
            link: Err("each generator has one of its own".to_owned()),
            machine,
            parts,
        }
    }
}

impl Generator {
    fn say(&mut self, order: &GeneratorOrder) -> Result<(), String> {
        let line = serde_json::to_string(order).map_err(|error| error.to_string())?;
        self.line.say(&line);
        Ok(())
    }

    /// Returns the next message; `None` if no message arrives within [`LOOK`].
    fn hear(&mut self) -> Result<Option<(Instant, Word)>, String> {
        let Some((at, line)) = self.line.hear(LOOK)? else {
            return Ok(None);
        };
        match serde_json::from_str(&line) {
            Ok(word) => Ok(Some((at, word))),
            Err(_) => Err(NONSENSE.to_owned()),
        }
    }

    /// Measures the clock offset of a generator. Returns `None` if the measurement is stopped.
    fn ask_clock(
        &mut self,
        begin: Instant,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Offset>, String> {
        let micros = |at: Instant| {
            let since = at.saturating_duration_since(begin).as_micros();
            i64::try_from(since).unwrap_or(i64::MAX)
        };
        let mut exchanges = Vec::new();
        while exchanges.len() < EXCHANGES {
            let sent = Instant::now();
            self.say(&GeneratorOrder::Clock)?;
            let (received, there) = loop {
                match self.hear()? {
                    // An answer that arrived before the question does not count.
                    Some((at, Word::Clock(there))) if at >= sent => break (at, there),
                    Some((_, Word::Failed(why))) => return Err(why),
                    Some(_) => return Err(NONSENSE.to_owned()),
                    None if stop() => return Ok(self.clock),
                    None if sent.elapsed() > CLOCK => {
                        return Err(format!("no answer within {} s", CLOCK.as_secs()));
                    }
                    None => {}
                }
            };
            exchanges.push(ClockExchange {
                sent: micros(sent),
                there,
                received: micros(received),
            });
        }
        Ok(clock::best_offset(&exchanges))
    }

    /// Sends the generator its part of a step and waits for the result. Returns `None` if the measurement was stopped
    /// before the start.
    fn carry(
        &mut self,
        order: &GeneratorOrder,
        limits: Limits<'_>,
        live: &[AtomicU64; 2],
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Carried {
        self.say(order)?;
        let mut late = limits.late;
        let mut heard_at = limits.start;
        let mut asked = false;
        loop {
            let word = match self.hear() {
                Err(_) if asked || stop() => return Ok(None),
                heard => heard?,
            };
            match word {
                Some((at, Word::Live(answers, failures))) => {
                    heard_at = heard_at.max(at);
                    live[0].store(answers, Ordering::Relaxed);
                    live[1].store(failures, Ordering::Relaxed);
                }
                Some((_, Word::Step { late_us, step })) => {
                    return match join::accepted(order, *step) {
                        Some(step) => Ok(Some((late_us, Box::new(step)))),
                        None => Err("what it says of its part cannot be".to_owned()),
                    };
                }
                Some((_, Word::Failed(why))) => return Err(why),
                // An unrequested clock or a second greeting violates the protocol.
                Some((_, Word::Ready { .. } | Word::Clock(_))) => return Err(NONSENSE.to_owned()),
                None => {}
            }
            if !asked && (stop() || limits.lost.load(Ordering::Relaxed)) {
                asked = true;
                self.line.end();
                late = late.min(Instant::now() + TO_END);
            }
            let now = Instant::now();
            if now > late {
                return Err("it does not come to an end".to_owned());
            }
            if now.saturating_duration_since(heard_at) > limits.silence {
                let seconds = limits.silence.as_secs();
                return Err(format!("nothing was heard from it for {seconds} s"));
            }
        }
    }
}

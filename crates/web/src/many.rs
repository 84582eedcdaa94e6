//! One load from several machines at once: what each has to do, when all begin, and what they gave together.
//!
//! Each generator is this program on a machine of its own ([`generate`]), which finds the server itself: whether
//! it may be loaded from there is asked there, by the same rules as for one machine. What goes between is a JSON
//! object on each line; [`Line`] carries it.

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

/// Exchanges before each step, of which the fastest counts: clocks drift apart, by less than a tenth of a
/// millisecond in a second.
const EXCHANGES: usize = 8;
/// From the order to the start at least, beside some round trips.
const LEAD: Duration = Duration::from_millis(60);
/// A generator that takes so much longer than its step, or of which nothing is heard for so long, is gone.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same when all shall end.
const TO_END: Duration = Duration::from_secs(10);
/// An answer to the question for the clock.
const CLOCK: Duration = Duration::from_secs(10);
/// What is said of one that does not answer what it was asked.
const NONSENSE: &str = "it says what no generator says";
/// How often is looked whether to stop.
const LOOK: Duration = Duration::from_millis(50);

/// What a generator is asked to do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GeneratorOrder {
    /// Say what your clock shows.
    Clock,
    /// Carry this out.
    Step {
        /// Its own part of it.
        shape: Shape,
        /// How.
        manner: Manner,
        /// When it begins, by its own clock, in microseconds.
        at_us: i64,
    },
}

/// What a generator says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// It found the servers, and may load them.
    Ready {
        /// In the order of the URLs.
        targets: Vec<Reached>,
        /// Which machine it is, where that is known.
        machine: Option<String>,
    },
    /// What its clock shows, in microseconds.
    Clock(i64),
    /// Good answers and failures so far.
    Live(u64, u64),
    /// What it did.
    Step {
        /// By how much it began after its time.
        late_us: i64,
        /// As if it had been alone.
        step: Box<Step>,
    },
    /// It could not.
    Failed(String),
}

/// A server as one generator found it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Reached {
    /// Where it loads it.
    pub addresses: Vec<SocketAddr>,
    /// What the server agreed to, where that had to be asked.
    pub consent: Option<Consent>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Requests at once on each connection.
    pub streams: u32,
    /// What a reader must know.
    pub remarks: Vec<String>,
}

/// The way to a generator.
pub trait Line: Send {
    /// Sends a line, at once.
    fn say(&mut self, line: &str);

    /// The next line that came, with the time at which it did; none when nothing comes within this time.
    ///
    /// # Errors
    /// Why nothing will come any more.
    fn hear(&mut self, within: Duration) -> Result<Option<(Instant, String)>, String>;

    /// Has the generator end what it does, and itself. What it did until then is still heard.
    fn end(&mut self);
}

/// By how much a generator began after its time, and what it did; none when all shall end and it did, before it began.
type Carried = Result<Option<(i64, Box<Step>)>, String>;

/// How long a step may take a generator.
#[derive(Clone, Copy)]
struct Limits<'a> {
    start: Instant,
    /// By then it is given up.
    late: Instant,
    /// After so long without a word as well.
    silence: Duration,
    /// One of them is gone: what the others do is void.
    lost: &'a AtomicBool,
}

/// A generator as it is directed.
struct Generator {
    name: String,
    line: Box<dyn Line>,
    clock: Option<Offset>,
    lost: Option<String>,
}

/// A server as all generators found it.
struct Joint {
    consent: Option<Consent>,
    protocol: Protocol,
    streams: u32,
    server: ServerProcesses,
    remarks: Vec<String>,
}

/// Several generators that load the same servers.
pub struct Many {
    generators: Vec<Generator>,
    targets: Vec<Joint>,
    begin: Instant,
    /// In a step a generator says some times a second how far it is.
    silence: Duration,
}

impl Many {
    /// What a reader must know of a server.
    #[must_use]
    pub fn remarks(&self, target: usize) -> &[String] {
        let joint = self.targets.get(target);
        joint.map_or(&[][..], |joint| joint.remarks.as_slice())
    }

    /// Which generator is gone, and why.
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

    /// Asks all clocks at once. The longest round trip.
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
                // What is far away is asked so much earlier as it takes, while the load goes on.
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
                // All shall end, and it did before it began.
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
            // One of the generators may be on the machine of the server, and see more.
            (ServerProcesses::Unknown(why), _) => used.unwrap_or_else(|| Err(why.clone())),
            (_, Some((first, last))) => last.since(&first),
            (_, None) => Err("it ended before anything was counted".to_owned()),
        };
        let machine = match (&target.server, first.zip(last)) {
            (ServerProcesses::Processes(_) | ServerProcesses::Group(_), Some((first, last))) => {
                last.since(&first)
            }
            // Nothing here has a part in it.
            _ => MachineUse::default(),
        };
        Ok(self.whole(shape, stop(), server, machine, parts))
    }
}

impl Many {
    /// The parts of a step as one.
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

    /// The next word; none when none comes soon.
    fn hear(&mut self) -> Result<Option<(Instant, Word)>, String> {
        let Some((at, line)) = self.line.hear(LOOK)? else {
            return Ok(None);
        };
        match serde_json::from_str(&line) {
            Ok(word) => Ok(Some((at, word))),
            Err(_) => Err(NONSENSE.to_owned()),
        }
    }

    /// None when all shall end.
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
                    // An answer that is there before the question is none.
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

    /// Has its part carried out. None when all shall end and it did, before it began.
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
                // The first clock that nobody asked for, or a second greeting, is as good as a lie.
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

//! One generator thread with its share of the connections. The thread uses edge-triggered epoll. A small answer takes
//! one wait, one read and one write.

mod failure;
mod http1;
mod http2_connections;
mod low_mark;
mod used;

use crate::answer::{HttpResponse, Memory};
use crate::connection::{Connection, ConnectionPhase};
use crate::load::{HttpLoad, Live, LoadError};
use crate::schedule::Intents;
use crate::stream::BUFFER;
use crate::tally::Tally;
use assay_model::web::{FailureKind, Pace, Protocol};
use http2_connections::Http2Connections;
use low_mark::LowMark;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::event::epoll::{self, CreateFlags, Event, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use used::Used;

/// Interval in nanoseconds at which slow requests and `stop` are checked.
const LOOK: u64 = 10_000_000;
/// Time in nanoseconds from the start of the load in which all requests may fail, because the service may still be
/// starting.
const PATIENCE: u64 = 1_000_000_000;
/// Time in nanoseconds after the end of an open loop in which due requests are still sent.
const GRACE: u64 = 1_000_000_000;
/// Maximum number of events per wait.
const EVENTS: usize = 256;
/// One in this many wake-ups has its duration recorded; only in a closed loop.
const SAMPLED: u32 = 16;

/// Events which mean that the server sent data or closed its side.
const SPOKEN: EventFlags = EventFlags::IN
    .union(EventFlags::RDHUP)
    .union(EventFlags::HUP)
    .union(EventFlags::ERR);

pub struct Worker<'a> {
    load: &'a HttpLoad,
    address: usize,
    epoll: OwnedFd,
    connections: Vec<Connection>,
    /// Connections that several requests share; only with HTTP/2.
    links: Http2Connections,
    /// Free connections; only in an open loop. The connection that was used last is taken first.
    free: Vec<u32>,
    /// Whether a due request found no free connection.
    starved: bool,
    /// Time until which no connection was free, in nanoseconds from the start.
    starved_until: u64,
    intents: Option<Intents>,
    tally: Tally,
    memory: Memory,
    /// Number of received bytes from which the kernel wakes this thread.
    mark: LowMark,
    buffer: Vec<u8>,
    begin: Instant,
    /// Time of the last wake-up, in nanoseconds from the start.
    now: u64,
    /// Start and end of the counted time, in nanoseconds from the start.
    window: (u64, u64),
    /// Whether requests are due only until the end of the counted time.
    ends: bool,
    turn: usize,
    random: Option<ChaCha8Rng>,
    limit: u64,
    live: &'a Live,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Worker<'a> {
    pub fn new(
        load: &'a HttpLoad,
        which: u32,
        threads: u32,
        begin: Instant,
        live: &'a Live,
        stop: &'a (dyn Fn() -> bool + Sync),
    ) -> Result<Self, LoadError> {
        let intents = Intents::new(load.pace, which, threads, load.seed, &load.listed);
        let own = load.connections / threads + u32::from(which < load.connections % threads);
        let share = own * load.streams;
        let phase = match intents {
            Some(_) => ConnectionPhase::Free,
            None => ConnectionPhase::Resting(0),
        };
        let washout = nanos(load.washout);
        let window = (washout, washout.saturating_add(nanos(load.window)));
        // No request is due after the window: the load ends with its last answer.
        let ends = load.listed.last().is_some_and(|last| last.due < window.1);
        let random = load.shuffled.then(|| {
            let mut random = ChaCha8Rng::seed_from_u64(load.seed);
            random.set_stream(u64::from(which) | 1 << 32);
            random
        });
        Ok(Self {
            load,
            address: which as usize,
            epoll: epoll::create(CreateFlags::CLOEXEC).map_err(|error| LoadError::Io {
                what: "epoll_create1",
                source: error.into(),
            })?,
            connections: (0..share).map(|_| Connection::new(phase)).collect(),
            links: Http2Connections::new(own as usize),
            free: match intents {
                Some(_) => (0..share).rev().collect(),
                None => Vec::new(),
            },
            starved: false,
            starved_until: 0,
            intents,
            tally: Tally::new(window.0, window.1)
                .counting_once(load.pace == Pace::Closed)
                .stretching(match ends {
                    true => GRACE.min(nanos(load.limit)),
                    false => 0,
                }),
            memory: Memory::default(),
            mark: LowMark::new(load.pace == Pace::Closed, load.protocol, load.tls.is_none()),
            buffer: vec![0; BUFFER],
            begin,
            now: 0,
            window,
            ends,
            turn: which as usize % load.requests.len(),
            random,
            limit: nanos(load.limit),
            live,
            stop,
        })
    }

    fn clock(&self) -> u64 {
        nanos(self.begin.elapsed())
    }

    /// Runs this thread's share of the load.
    pub fn work(mut self) -> Result<Tally, LoadError> {
        if self.intents.is_some() {
            // By default timers may be 50 µs late to save power (prctl(2)).
            let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        }
        let mut events: Vec<Event> = Vec::with_capacity(EVENTS);
        let (mut looked, mut wakes) = (0, 0u32);
        let mut used: Option<Used> = None;
        let mut told = (0, 0);
        self.now = self.clock();
        self.look();
        self.send_due();
        while !self.is_over() {
            events.clear();
            self.wait(&mut events).map_err(|error| LoadError::Io {
                what: "epoll_wait",
                source: error.into(),
            })?;
            self.now = self.clock();
            self.tally.pass(self.now);
            if used.is_none() && self.now >= self.window.0 {
                used = Some(Used::now());
            }
            for event in &events {
                // The kernel's structure is packed, so fields are copied.
                let (data, flags) = ({ event.data }.u64(), { event.flags });
                let (at, generation) = ((data >> 32) as usize, data as u32);
                match self.load.protocol {
                    Protocol::Http2 => self.drive_link(at, generation, flags),
                    Protocol::Http1 if self.connections[at].generation == generation => {
                        self.drive(at, flags);
                    }
                    Protocol::Http1 => {}
                }
            }
            wakes = wakes.wrapping_add(1);
            if self.intents.is_some() {
                self.send_due();
            } else if wakes % SAMPLED == 0 && !events.is_empty() {
                let took = self.clock() - self.now;
                self.tally.late(self.now, took);
            }
            if self.now - looked >= LOOK {
                looked = self.now;
                self.look();
                let total = self.tally.total;
                self.live.add(total.0 - told.0, total.1 - told.1);
                told = total;
                if (self.stop)() {
                    self.tally.interrupted = true;
                    break;
                }
                if total == (0, total.1) && total.1 > 0 && self.now > PATIENCE.max(self.window.0) {
                    self.tally.gave_up = true;
                    break;
                }
            }
            if self.now >= self.window.1
                && !self.ends
                && let Some(used) = used.as_mut()
            {
                used.end(&mut self.tally);
            }
        }
        let now = self.clock();
        if now < self.window.1 {
            self.tally.cut(now);
        }
        if let Some(mut used) = used {
            used.end(&mut self.tally);
        }
        self.give_back_due(now);
        self.links.cut();
        Ok(self.tally)
    }

    /// Counts due requests that are never sent because the load ends at `now`.
    fn give_back_due(&mut self, now: u64) {
        let Some(intents) = &mut self.intents else {
            return;
        };
        let end = self.window.1.min(now);
        while intents.next() < end {
            if self.starved || self.starved_until > intents.next() {
                self.tally.waited(intents.next());
            }
            self.tally.unsent(intents.next());
            intents.advance();
        }
    }

    fn is_over(&self) -> bool {
        match &self.intents {
            None => self.now >= self.window.1 && !self.connections.iter().any(Connection::is_busy),
            Some(intents) => {
                let all_sent = intents.next() >= self.window.1;
                self.now >= self.window.1
                    && (all_sent || self.now >= self.window.1 + GRACE.min(self.limit))
                    && self.free.len() == self.connections.len()
            }
        }
    }

    /// Waits for events. In an open loop, waits no longer than until the next due request.
    fn wait(&self, events: &mut Vec<Event>) -> rustix::io::Result<()> {
        let mut time = LOOK;
        if let Some(intents) = &self.intents
            && !self.free.is_empty()
            && intents.next() < self.window.1
        {
            time = time.min(intents.next().saturating_sub(self.clock()));
        }
        // epoll_wait(2) has millisecond resolution, and its successor is missing in some kernels.
        if time < LOOK && time > 0 {
            match poll(
                &mut [PollFd::new(&self.epoll, PollFlags::IN)],
                Some(&timespec(time)),
            ) {
                Ok(_) | Err(rustix::io::Errno::INTR) => time = 0,
                Err(error) => return Err(error),
            }
        }
        let room = rustix::buffer::spare_capacity(events);
        match epoll::wait(&self.epoll, room, Some(&timespec(time))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends requests that exceed their time limit, and starts requests whose pause is over.
    fn look(&mut self) {
        for at in 0..self.connections.len() {
            let connection = &self.connections[at];
            if let ConnectionPhase::Resting(until) = connection.phase {
                if self.now >= until {
                    self.next(at);
                }
            } else if connection.is_busy()
                && self.now - connection.begun.min(self.now) >= self.limit
            {
                match self.load.protocol {
                    Protocol::Http1 => self.expire(at),
                    Protocol::Http2 => self.expire_stream(at),
                }
            } else {
                self.look_below_mark(at);
            }
        }
    }

    /// Starts the next request of this connection, in a closed loop.
    fn next(&mut self, at: usize) {
        if self.now >= self.window.1 {
            self.connections[at].close();
            self.connections[at].phase = ConnectionPhase::Over;
        } else {
            self.begin(at, self.now, self.now, None);
        }
    }

    /// Sends the requests that are due, in an open loop.
    fn send_due(&mut self) {
        while let Some(intents) = &mut self.intents
            && intents.next() < self.window.1
        {
            let due = intents.next();
            let now = nanos(self.begin.elapsed());
            if due > now || now >= self.window.1 + GRACE.min(self.limit) {
                return;
            }
            let Some(at) = self.free.pop() else {
                self.starved = true;
                return;
            };
            let which = intents.which();
            intents.advance();
            if self.starved_until > due {
                self.tally.waited(due);
            }
            // The request is in flight from now on, not from the last wake-up.
            self.tally.pass(now);
            self.tally
                .late(due, now - due.max(self.starved_until).min(now));
            self.begin(at as usize, due, now, which);
        }
    }

    /// Starts a request over the open stream; without one, over a new connection. Sends the request with the index
    /// `named`, or the next request if `named` is `None`.
    fn begin(&mut self, at: usize, intended: u64, now: u64, named: Option<usize>) {
        let which = match &mut self.random {
            _ if named.is_some() => named.unwrap_or_default(),
            Some(random) => (random.next_u64() % self.load.requests.len() as u64) as usize,
            None => {
                self.turn = (self.turn + 1) % self.load.requests.len();
                self.turn
            }
        };
        let request = &self.load.requests[which];
        let connection = &mut self.connections[at];
        connection.which = which;
        connection.intended = intended;
        connection.begun = now;
        connection.sent = 0;
        connection.came = 0;
        connection.again = false;
        connection
            .reader
            .restart(request.head, request.expect.hash.is_some());
        self.tally.begin(intended);
        match connection.stream {
            _ if self.load.protocol == Protocol::Http2 => self.ask(at),
            // The event of its end was not handled yet.
            Some(ref stream)
                if connection.answers > 0
                    && failure::has_ended_at_rest(stream, connection.answered, now) =>
            {
                connection.close();
                self.connect(at, now);
            }
            Some(_) => {
                connection.phase = ConnectionPhase::Sending;
                self.mark(at);
                self.send(at);
            }
            None => self.connect(at, now),
        }
    }

    /// Counts an answer as good, or as a failure.
    pub(super) fn judge(&mut self, at: usize, answer: &HttpResponse) {
        let connection = &self.connections[at];
        let request = &self.load.requests[connection.which];
        let expect = &request.expect;
        let bad = match () {
            () if answer.status != expect.status => Some(FailureKind::WrongStatus),
            () if expect.length.is_some_and(|length| length != answer.body) => {
                Some(FailureKind::WrongBody)
            }
            () if expect.hash.is_some() && expect.hash != answer.hash => {
                Some(FailureKind::WrongBody)
            }
            () => None,
        };
        let (intended, begun) = (connection.intended, connection.begun);
        match bad {
            None => self.tally.good(intended, begun, self.now, answer.body),
            Some(kind) => {
                if kind == FailureKind::WrongStatus {
                    self.tally.count_status(answer.status, intended);
                }
                self.tally.fail(kind, intended, self.now, || match kind {
                    FailureKind::WrongStatus => {
                        format!("status {}, expected {}", answer.status, expect.status)
                    }
                    _ => match expect.length {
                        Some(length) if length != answer.body => {
                            format!("a body of {} bytes, expected {length}", answer.body)
                        }
                        _ => "a body with other content".to_owned(),
                    },
                })
            }
        }
    }

    /// Ends the request of this connection. In a closed loop, the connection pauses until `rest_until` before its next
    /// request.
    pub(super) fn ended(&mut self, at: usize, rest_until: u64) {
        let connection = &mut self.connections[at];
        if self.intents.is_some() {
            connection.phase = ConnectionPhase::Free;
            self.free.push(at as u32);
            if std::mem::take(&mut self.starved) {
                self.starved_until = self.now;
            }
        } else if rest_until > self.now {
            connection.phase = ConnectionPhase::Resting(rest_until);
        } else {
            self.next(at);
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn timespec(nanos: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(nanos / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: (nanos % 1_000_000_000) as i64,
    }
}

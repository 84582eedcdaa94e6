//! Runs the requests of one role: their due times, their connections and their results.

use super::link::ServerLink;
use super::timer::{self, micros};
use crate::record::{Probe, RecordEvent, RoleRecord};
use crate::role::Role;
use crate::wire::{CLIENT_HEADER, Joined, LiveRole};
use assay_http::{ConnectionSlot, Exchanged, Manner, ProbeError, Request};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Time after the end of the run in which unfinished requests may still complete. It is longer than the goal of any
/// role.
const GRACE: Duration = Duration::from_secs(2);

/// Execution of one role of an order.
pub struct Task<'a> {
    pub role: &'a Role,
    pub begin: Instant,
    pub end: Instant,
    pub link: &'a ServerLink,
    pub joined: &'a Joined,
    pub live: &'a Mutex<Vec<LiveRole>>,
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Congestion control algorithm that the plan requests.
    pub congestion: Option<&'a str>,
}

/// Complete answer to one request, or the error.
pub type RequestOutcome = Result<Exchanged, ProbeError>;

impl Task<'_> {
    /// Builds a request for a body of `bytes` bytes; returns `None` if the request is invalid.
    pub fn fetch(&self, bytes: u64) -> Option<Request> {
        let target = format!("/bytes/{bytes}");
        self.link.request("GET", &target, &self.headers(), b"").ok()
    }

    /// Returns the headers that identify the client and the role. The server counts retransmissions by them.
    pub fn headers(&self) -> Vec<(String, String)> {
        let joined = self.joined;
        let client = format!("{} {} {}", joined.client, joined.key, self.role.name);
        vec![(CLIENT_HEADER.to_owned(), client)]
    }

    /// Returns a slot for a connection of this role. The slot opens its connection at the first request.
    pub fn exchange(&self) -> ConnectionSlot {
        let algorithm = self.congestion.map(str::to_owned);
        self.link.exchange().with_congestion(algorithm)
    }

    /// Returns whether the user or the controller ended the run.
    pub fn stopped(&self) -> bool {
        (self.stop)()
    }

    /// Returns whether the time of the run has passed or the run was aborted, so that no new request may start.
    pub fn over(&self) -> bool {
        self.stopped() || Instant::now() >= self.end
    }

    /// Converts a time to microseconds since the start.
    pub fn at(&self, time: Instant) -> u64 {
        micros(self.begin, time)
    }

    /// Returns the due time of event `number`, if events are `every_us` microseconds apart.
    pub fn due(&self, number: u64, every_us: f64) -> Instant {
        self.begin + Duration::from_micros((number as f64 * every_us) as u64)
    }

    /// Sleeps until `time`, or until the run is stopped.
    pub fn wait(&self, time: Instant) {
        timer::sleep_until(time, &|| self.stopped());
    }

    /// Sends one request, and counts the received bytes in the time slots of their arrival. The request may continue
    /// shortly after the end of the run; with `cut` it stops exactly at the end.
    pub fn ask(
        &self,
        exchange: &mut ConnectionSlot,
        request: &Request,
        record: &mut RoleRecord,
        cut: bool,
    ) -> RequestOutcome {
        let end = if cut { self.end } else { self.end + GRACE };
        let stop = || self.stopped() || Instant::now() >= end;
        let mut manner = Manner {
            limit: Duration::from_secs(30),
            keep: 0,
            stop: &stop,
            came: &mut |at, bytes| {
                if at < self.end {
                    record.count(self.at(at), bytes);
                    self.tell(|live| live.bytes += bytes);
                }
            },
        };
        let came = exchange.ask(request, &mut manner)?;
        match came.answer.status {
            200 => Ok(came),
            _ => Err(ProbeError::Wrong {
                address: self.link.address(),
                why: assay_http::answer::Wrong::Form("another status than 200"),
            }),
        }
    }

    /// Sends a request at its due time, and records the result. Returns whether a complete answer arrived.
    pub fn ask_when_due(
        &self,
        exchange: &mut ConnectionSlot,
        request: &Request,
        record: &mut RoleRecord,
        (due, late): (Instant, Duration),
    ) -> bool {
        let asked = self.ask(exchange, request, record, false);
        let ended = asked.as_ref().map(|came| came.ended);
        self.note(record, due, late, ended);
        asked.is_ok()
    }

    /// Records the result of a due event, and adds it to the live display.
    pub fn note(
        &self,
        record: &mut RoleRecord,
        due: Instant,
        late: Duration,
        ended: Result<Instant, &ProbeError>,
    ) {
        let event = RecordEvent {
            due: self.at(due),
            late: u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
            took: ended.ok().map(|ended| micros(due, ended)),
        };
        if let Err(error) = ended {
            record.fail(&reason(error));
        }
        self.show(&event);
        record.events.push(event);
    }

    /// Records an event that never started, because all connections were in use or the client was late.
    pub fn never(&self, record: &mut RoleRecord, due: Instant, late: Duration) {
        record.fail("not begun before the end");
        record.events.push(RecordEvent {
            due: self.at(due),
            late: u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
            took: None,
        });
    }

    /// Adds the result of a due event to the live display.
    pub fn show(&self, event: &RecordEvent) {
        let within = self.role.within_us();
        self.tell(|live| {
            live.ended += 1;
            let over = event
                .took
                .is_none_or(|took| within.is_some_and(|within| took > within));
            live.over += u64::from(over);
            live.longest_us = live.longest_us.max(event.took.unwrap_or(0));
        });
    }

    fn tell(&self, change: impl FnOnce(&mut LiveRole)) {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(role) = live.iter_mut().find(|role| role.role == self.role.name) {
            change(role);
        }
    }
}

/// Describes an error without addresses and times, so that equal errors have equal texts and can be counted.
pub fn reason(error: &ProbeError) -> String {
    match error {
        ProbeError::Connect { source, .. } => format!("no connection: {}", source.kind()),
        ProbeError::Broken { source, .. } => format!("the connection broke: {}", source.kind()),
        ProbeError::Tls { .. } => "TLS failed".to_owned(),
        ProbeError::Wrong { why, .. } => why.to_string(),
        ProbeError::Protocol { why, .. } => why.clone(),
        ProbeError::Slow { .. } | ProbeError::Interrupted => "no answer until the end".to_owned(),
    }
}

/// Merges the records of the threads of one role.
pub fn together(records: impl IntoIterator<Item = RoleRecord>) -> RoleRecord {
    let mut all = RoleRecord::default();
    for record in records {
        all.events.extend(record.events);
        all.probes.extend::<Vec<Probe>>(record.probes);
        if let Some(segments) = record.segments {
            all.add_segments(segments);
        }
        if all.slots.len() < record.slots.len() {
            all.slots.resize(record.slots.len(), 0);
        }
        for (sum, bytes) in all.slots.iter_mut().zip(&record.slots) {
            *sum += bytes;
        }
        for (why, count) in record.failures {
            *all.failures.entry(why).or_default() += count;
        }
    }
    all
}

/// Runs `work` on `count` threads. Each call receives the number of its thread, from 0.
pub fn threads(count: u32, work: impl Fn(u32) -> RoleRecord + Sync) -> Vec<RoleRecord> {
    thread::scope(|scope| {
        let work = &work;
        let handles: Vec<_> = (0..count)
            .map(|which| scope.spawn(move || work(which)))
            .collect();
        let joined = handles.into_iter().map(|handle| match handle.join() {
            Ok(record) => record,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    })
}

//! One role of a part: when something is due, one request, and what became of it.

use super::link::ServerLink;
use super::timer::{self, micros};
use crate::record::{Probe, RecordEvent, RoleRecord};
use crate::role::Role;
use crate::wire::{CLIENT_HEADER, Joined, LiveRole};
use assay_http::{ConnectionSlot, Exchanged, Manner, ProbeError, Request};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What is under way at the end is waited for, for so long: longer than any goal.
const GRACE: Duration = Duration::from_secs(2);

/// One role of a part.
pub struct Task<'a> {
    pub role: &'a Role,
    pub begin: Instant,
    pub end: Instant,
    pub link: &'a ServerLink,
    pub joined: &'a Joined,
    pub live: &'a Mutex<Vec<LiveRole>>,
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Congestion control that the plan asks for.
    pub congestion: Option<&'a str>,
}

/// What one request saw.
pub type RequestOutcome = Result<Exchanged, ProbeError>;

impl Task<'_> {
    /// The request for so many bytes; none when it cannot be put in words.
    pub fn fetch(&self, bytes: u64) -> Option<Request> {
        let target = format!("/bytes/{bytes}");
        self.link.request("GET", &target, &self.headers(), b"").ok()
    }

    /// Who asks and for which role: the server counts what it sends again.
    pub fn headers(&self) -> Vec<(String, String)> {
        let joined = self.joined;
        let client = format!("{} {} {}", joined.client, joined.key, self.role.name);
        vec![(CLIENT_HEADER.to_owned(), client)]
    }

    /// A place for a connection of this role.
    pub fn exchange(&self) -> ConnectionSlot {
        let algorithm = self.congestion.map(str::to_owned);
        self.link.exchange().with_congestion(algorithm)
    }

    /// Whether the user or the controller ended it.
    pub fn stopped(&self) -> bool {
        (self.stop)()
    }

    /// Whether nothing new is begun.
    pub fn over(&self) -> bool {
        self.stopped() || Instant::now() >= self.end
    }

    /// Microseconds since the start.
    pub fn at(&self, time: Instant) -> u64 {
        micros(self.begin, time)
    }

    /// When something is due.
    pub fn due(&self, number: u64, every_us: f64) -> Instant {
        self.begin + Duration::from_micros((number as f64 * every_us) as u64)
    }

    /// Sleeps until then.
    pub fn wait(&self, time: Instant) {
        timer::sleep_until(time, &|| self.stopped());
    }

    /// One request; the bytes that come are counted where they come. It may last until a little after the
    /// end; `cut` ends it at the end itself.
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

    /// One request that was due, and begun so late; what became of it is noted. Whether it was answered.
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

    /// Notes what became of something that was due, and shows it.
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

    /// Notes what was due and never begun: because all connections were in use until then, or because the
    /// client itself was late.
    pub fn never(&self, record: &mut RoleRecord, due: Instant, late: Duration) {
        record.fail("not begun before the end");
        record.events.push(RecordEvent {
            due: self.at(due),
            late: u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
            took: None,
        });
    }

    /// Shows what became of something that was due.
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

/// Why, without addresses and times, so that it can be counted.
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

/// What several threads saw.
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

/// Runs the same on so many threads, each with its number.
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

//! A part in a run: all roles of a person at once, from the common start to the end.

use super::link::Link;
use super::timer::micros;
use super::{bulk, fetches, packets, stream, timer};
use crate::record::{Event, PersonRecord, Probe, RoleRecord, Start};
use crate::role::{Role, Workload};
use crate::wire::{Joined, Live, LiveRole, Order};
use assay_http::{Exchange, Exchanged, Manner, ProbeError, Request};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What is under way at the end is waited for, for so long: longer than any goal.
const GRACE: Duration = Duration::from_secs(2);

/// A part that is carried out.
pub struct Carrying<'a> {
    order: &'a Order,
    begin: Instant,
    joined: &'a Joined,
    link: &'a Link,
    aborted: AtomicBool,
    /// When it was aborted, in microseconds from the start; `u64::MAX`: it was not.
    until: AtomicU64,
    live: Mutex<Vec<LiveRole>>,
}

impl<'a> Carrying<'a> {
    pub fn new(order: &'a Order, begin: Instant, joined: &'a Joined, link: &'a Link) -> Self {
        let live = order.roles.iter().map(|role| LiveRole {
            role: role.name.clone(),
            ..LiveRole::default()
        });
        Self {
            order,
            begin,
            joined,
            link,
            aborted: AtomicBool::new(false),
            until: AtomicU64::new(u64::MAX),
            live: Mutex::new(live.collect()),
        }
    }

    /// Ends it now; what was measured is kept.
    pub fn abort(&self) {
        self.until
            .fetch_min(micros(self.begin, Instant::now()), Ordering::SeqCst);
        self.aborted.store(true, Ordering::SeqCst);
    }

    /// How it went since the last time this was asked.
    pub fn live(&self) -> Live {
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = live.iter().map(|role| LiveRole {
            role: role.role.clone(),
            ..LiveRole::default()
        });
        let fresh = fresh.collect();
        Live {
            roles: std::mem::replace(&mut live, fresh),
        }
    }

    /// Waits for the start, does everything, and tells what was seen.
    pub fn carry_out(&self, stop: &(dyn Fn() -> bool + Sync)) -> PersonRecord {
        let stop = || stop() || self.aborted.load(Ordering::SeqCst);
        timer::exact();
        timer::sleep_until(self.begin, &stop);
        let late = Instant::now().saturating_duration_since(self.begin);
        let length = Duration::from_secs(self.order.seconds.into());
        let end = self.begin + length;
        let roles = thread::scope(|scope| {
            let handles: Vec<_> = self
                .order
                .roles
                .iter()
                .map(|role| {
                    let task = Task {
                        carrying: self,
                        role,
                        begin: self.begin,
                        end,
                        stop: &stop,
                    };
                    scope.spawn(move || task.carry_out())
                })
                .collect();
            let joined = handles.into_iter().map(|handle| match handle.join() {
                Ok(record) => record,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        });
        // Ctrl-C ends it as an abort does.
        if stop() {
            self.abort();
        }
        let ran = micros(self.begin, end).min(self.until.load(Ordering::SeqCst));
        let mut record = PersonRecord {
            person: self.order.person.clone(),
            client: self.joined.name.clone(),
            agent: format!("assay {}", env!("CARGO_PKG_VERSION")),
            start: Start {
                late_us: i64::try_from(late.as_micros()).unwrap_or(i64::MAX),
                ..Start::default()
            },
            ran_us: ran,
            void: Vec::new(),
            remarks: Vec::new(),
            roles,
        };
        for role in &mut record.roles {
            // What was due after an abort never was.
            role.events.retain(|event| event.due < ran);
            role.events.sort_by_key(|event| event.due);
        }
        if ran < micros(self.begin, end) {
            record.remarks.push("the run was ended early".to_owned());
            for role in &mut record.roles {
                role.events.retain(|event| event.took.is_some());
            }
        }
        record
    }
}

/// One role of a part.
pub struct Task<'a> {
    carrying: &'a Carrying<'a>,
    pub role: &'a Role,
    pub begin: Instant,
    pub end: Instant,
    stop: &'a (dyn Fn() -> bool + Sync),
}

/// What one request saw.
pub type Asked = Result<Exchanged, ProbeError>;

impl Task<'_> {
    fn carry_out(&self) -> RoleRecord {
        let mut record = match &self.role.workload {
            Workload::Fetches { .. } => fetches::evenly(self),
            Workload::Pages { .. } => fetches::pages(self),
            Workload::Stream { .. } => stream::stream(self),
            Workload::Bulk { .. } => bulk::bulk(self),
            Workload::Responsiveness { .. } => bulk::responsiveness(self),
            Workload::Packets { .. } => packets::packets(self),
        };
        record.role.clone_from(&self.role.name);
        record
    }

    pub fn link(&self) -> &Link {
        self.carrying.link
    }

    pub fn joined(&self) -> &Joined {
        self.carrying.joined
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
        exchange: &mut Exchange,
        request: &Request,
        record: &mut RoleRecord,
        cut: bool,
    ) -> Asked {
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
                address: self.link().address(),
                why: assay_http::answer::Wrong::Form("another status than 200"),
            }),
        }
    }

    /// Notes what became of something that was due, and shows it.
    pub fn note(
        &self,
        record: &mut RoleRecord,
        due: Instant,
        late: Duration,
        ended: Result<Instant, &ProbeError>,
    ) {
        let event = Event {
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
        record.events.push(Event {
            due: self.at(due),
            late: u64::try_from(late.as_micros()).unwrap_or(u64::MAX),
            took: None,
        });
    }

    /// Shows what became of something that was due.
    pub fn show(&self, event: &Event) {
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
        let mut live = self
            .carrying
            .live
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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
        ProbeError::Slow { .. } | ProbeError::Interrupted => "no answer until the end".to_owned(),
    }
}

/// What several threads saw.
pub fn together(records: impl IntoIterator<Item = RoleRecord>) -> RoleRecord {
    let mut all = RoleRecord::default();
    for record in records {
        all.events.extend(record.events);
        all.probes.extend::<Vec<Probe>>(record.probes);
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

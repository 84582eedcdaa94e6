//! Executes the server's order for one person: runs all roles at the same time, from the common start to the end.

use super::link::ServerLink;
use super::task::Task;
use super::timer::micros;
use super::{bulk, fetches, packets, stream, timer};
use crate::record::{PersonRecord, RoleRecord, Start};
use crate::role::Workload;
use crate::wire::{ClientOrder, Joined, Live, LiveRole};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// An order that is being executed.
pub struct Carrying<'a> {
    order: &'a ClientOrder,
    begin: Instant,
    joined: &'a Joined,
    link: &'a ServerLink,
    aborted: AtomicBool,
    /// Time at which the run was aborted, in microseconds from the start; `u64::MAX` if it was not aborted.
    until: AtomicU64,
    live: Mutex<Vec<LiveRole>>,
}

impl<'a> Carrying<'a> {
    pub fn new(
        order: &'a ClientOrder,
        begin: Instant,
        joined: &'a Joined,
        link: &'a ServerLink,
    ) -> Self {
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

    /// Aborts the run now. The data measured until now is kept.
    pub fn abort(&self) {
        self.until
            .fetch_min(micros(self.begin, Instant::now()), Ordering::SeqCst);
        self.aborted.store(true, Ordering::SeqCst);
    }

    /// Returns the progress since the last call of this function.
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

    /// Waits for the start, runs all roles and returns the record.
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
                        role,
                        begin: self.begin,
                        end,
                        link: self.link,
                        joined: self.joined,
                        live: &self.live,
                        stop: &stop,
                        congestion: self.order.congestion.as_deref(),
                    };
                    scope.spawn(move || carry_out(&task))
                })
                .collect();
            let joined = handles.into_iter().map(|handle| match handle.join() {
                Ok(record) => record,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        });
        // Ctrl-C has the same effect as an abort.
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
            roles,
            ..PersonRecord::default()
        };
        for role in &mut record.roles {
            // Drop events that were due after the abort.
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

fn carry_out(task: &Task<'_>) -> RoleRecord {
    let mut record = match &task.role.workload {
        Workload::Fetches { .. } => fetches::evenly(task),
        Workload::Pages { .. } => fetches::pages(task),
        Workload::Stream { .. } => stream::stream(task),
        Workload::Bulk { .. } => bulk::bulk(task),
        Workload::Responsiveness { .. } => bulk::responsiveness(task),
        Workload::Packets { .. } => packets::packets(task),
    };
    record.role.clone_from(&task.role.name);
    record
}

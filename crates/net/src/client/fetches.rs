//! Roles that fetch single objects or web pages at regular times.

use super::task::{Task, threads, together};
use super::timer;
use crate::record::RoleRecord;
use crate::role::Workload;
use assay_http::ProbeError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Instant;

/// Runs an open loop: each fetch is due at a fixed time, independent of earlier fetches. The next free connection
/// executes the next fetch.
pub fn evenly(task: &Task<'_>) -> RoleRecord {
    let Workload::Fetches {
        bytes,
        every_ms,
        connections,
    } = task.role.workload
    else {
        return RoleRecord::default();
    };
    let Some(request) = task.fetch(bytes) else {
        return RoleRecord::default();
    };
    let every = every_ms * 1e3;
    let next = AtomicU64::new(0);
    let records = threads(connections, |_| {
        timer::exact();
        let mut record = RoleRecord::default();
        let mut exchange = task.exchange();
        loop {
            let free = Instant::now();
            let due = task.due(next.fetch_add(1, Ordering::SeqCst), every);
            if due >= task.end {
                return record;
            }
            task.wait(due);
            let late = Instant::now().saturating_duration_since(due.max(free));
            if task.over() {
                if task.stopped() {
                    return record;
                }
                task.never(&mut record, due, late);
                continue;
            }
            task.ask_when_due(&mut exchange, &request, &mut record, (due, late));
        }
    });
    together(records)
}

/// Fetches all objects of a page at once, each on its own connection. The next page starts only after the page is
/// complete; due times before that are skipped.
pub fn pages(task: &Task<'_>) -> RoleRecord {
    let Workload::Pages {
        objects,
        bytes,
        every_ms,
    } = task.role.workload
    else {
        return RoleRecord::default();
    };
    let Some(request) = task.fetch(bytes) else {
        return RoleRecord::default();
    };
    let (request, every) = (&request, every_ms * 1e3);
    let mut record = RoleRecord::default();
    let objects_seen = std::thread::scope(|scope| {
        let (back, came) = mpsc::channel::<Result<Instant, ProbeError>>();
        let workers: Vec<_> = (0..objects)
            .map(|_| {
                let (go, begin) = mpsc::channel::<()>();
                let back = back.clone();
                let handle = scope.spawn(move || {
                    let mut record = RoleRecord::default();
                    let mut exchange = task.exchange();
                    for () in begin {
                        let asked = task.ask(&mut exchange, request, &mut record, false);
                        let _ = back.send(asked.map(|came| came.ended));
                    }
                    record
                });
                (go, handle)
            })
            .collect();
        timer::exact();
        let mut number = 0;
        loop {
            let due = task.due(number, every);
            task.wait(due);
            if due >= task.end || task.over() {
                break;
            }
            let late = Instant::now().saturating_duration_since(due);
            for (go, _) in &workers {
                let _ = go.send(());
            }
            let mut last = Ok(due);
            for _ in &workers {
                last = match (last, came.recv()) {
                    (Ok(last), Ok(Ok(ended))) => Ok(ended.max(last)),
                    (Err(error), _) | (_, Ok(Err(error))) => Err(error),
                    (Ok(last), Err(_)) => Ok(last),
                };
            }
            task.note(&mut record, due, late, last.as_ref().map(|ended| *ended));
            let since = Instant::now().saturating_duration_since(task.begin);
            number = (number + 1).max((since.as_secs_f64() * 1e6 / every).ceil() as u64);
        }
        let records: Vec<RoleRecord> = workers
            .into_iter()
            .filter_map(|(go, handle)| {
                drop(go);
                handle.join().ok()
            })
            .collect();
        records
    });
    // A failed object fails its page, which is already recorded.
    together(objects_seen.into_iter().chain([record]))
}

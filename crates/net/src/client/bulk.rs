//! Roles that transfer as much as possible: downloads, uploads, and probes of responsiveness during a download.

use super::task::{Task, threads, together};
use super::timer::{self, micros};
use crate::record::{Probe, RoleRecord, Segments};
use crate::role::{Direction, Workload};
use assay_host::tcp_info::{self, SentSegments};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::time::{Duration, Instant};

/// Bytes per request of the download that saturates the link.
const FILLING: u64 = 16 << 20;

/// Sends requests on every connection, each as soon as the previous request is complete.
pub fn bulk(task: &Task<'_>) -> RoleRecord {
    let Workload::Bulk {
        direction,
        bytes,
        connections,
    } = task.role.workload
    else {
        return RoleRecord::default();
    };
    let mut record = together(threads(connections, |which| match direction {
        Direction::Down => {
            let headers = task.headers();
            endlessly(task, "GET", &format!("/bytes/{bytes}"), &headers, b"")
        }
        Direction::Up => {
            let mut body = vec![0; usize::try_from(bytes).unwrap_or(1 << 20)];
            ChaCha8Rng::seed_from_u64(which.into()).fill_bytes(&mut body);
            endlessly(task, "POST", "/bytes", &task.headers(), &body)
        }
    }));
    if direction == Direction::Up {
        // The server counts the bytes of uploads and fills in these slots.
        record.slots.clear();
    }
    record
}

fn endlessly(
    task: &Task<'_>,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &[u8],
) -> RoleRecord {
    let mut record = RoleRecord::default();
    let Ok(request) = task.link.request(method, path, headers, body) else {
        return record;
    };
    let mut exchange = task.exchange();
    let upload = method == "POST";
    let mut counted = SentSegments::default();
    while !task.over() {
        let asked = task.ask(&mut exchange, &request, &mut record, true);
        let now = exchange.connection().filter(|_| upload);
        if let Some(now) = now.and_then(tcp_info::sent_segments) {
            // The counters of a new connection start at 0.
            let before = match now.sent < counted.sent {
                true => SentSegments::default(),
                false => counted,
            };
            record.add_segments(Segments {
                sent: now.sent - before.sent,
                again: now.again.saturating_sub(before.again),
            });
            counted = now;
        }
        if let Err(error) = &asked
            && !task.over()
        {
            record.fail(&super::task::reason(error));
            task.wait(Instant::now() + Duration::from_millis(100));
        }
    }
    record
}

/// Saturates the link with a download. Sends probes on new connections at the same time.
pub fn responsiveness(task: &Task<'_>) -> RoleRecord {
    let Workload::Responsiveness {
        connections,
        every_ms,
    } = task.role.workload
    else {
        return RoleRecord::default();
    };
    together(threads(connections + 1, |which| match which {
        0 => probes(task, every_ms * 1e3),
        _ => {
            let headers = task.headers();
            endlessly(task, "GET", &format!("/bytes/{FILLING}"), &headers, b"")
        }
    }))
}

fn probes(task: &Task<'_>, every: f64) -> RoleRecord {
    timer::exact();
    let mut record = RoleRecord::default();
    let Some(request) = task.fetch(1) else {
        return record;
    };
    let mut number = 0;
    loop {
        let due = task.due(number, every);
        task.wait(due);
        if due >= task.end || task.over() {
            return record;
        }
        let late = Instant::now().saturating_duration_since(due);
        // Bytes of the probes are counted separately from the download.
        let mut own = RoleRecord::default();
        let asked = task.ask(&mut task.exchange(), &request, &mut own, false);
        if let Ok(came) = &asked
            && let (Some(connected), Some(secured)) = (came.connected, came.secured)
        {
            record.probes.push(Probe {
                tcp: micros(came.began, connected),
                tls: micros(connected, secured),
                http: micros(secured, came.ended),
            });
        }
        task.note(
            &mut record,
            due,
            late,
            asked.as_ref().map(|came| came.ended),
        );
        let since = Instant::now().saturating_duration_since(task.begin);
        number = (number + 1).max((since.as_secs_f64() * 1e6 / every).ceil() as u64);
    }
}

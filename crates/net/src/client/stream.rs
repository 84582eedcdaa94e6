//! Fetches a film in pieces over one connection. If a piece is late, the next pieces are fetched without a pause until
//! they are in time again.

use super::task::Task;
use super::timer;
use crate::record::RoleRecord;
use crate::role::Workload;
use std::time::Instant;

/// Fetches a film for the duration of the run.
pub fn stream(task: &Task<'_>) -> RoleRecord {
    let Workload::Stream {
        bytes, bit_per_s, ..
    } = task.role.workload
    else {
        return RoleRecord::default();
    };
    let Some(request) = task.fetch(bytes) else {
        return RoleRecord::default();
    };
    timer::exact();
    let piece = bytes as f64 * 8e6 / bit_per_s;
    let mut record = RoleRecord::default();
    let mut exchange = task.exchange();
    for number in 0.. {
        let free = Instant::now();
        let due = task.due(number, piece);
        if due >= task.end || task.stopped() {
            break;
        }
        task.wait(due);
        let late = Instant::now().saturating_duration_since(due.max(free));
        if task.over() {
            task.never(&mut record, due, late);
            continue;
        }
        let came = task.ask_when_due(&mut exchange, &request, &mut record, (due, late));
        if !came && !task.stopped() {
            // Limits the request rate if the server refuses at once.
            task.wait(Instant::now() + std::time::Duration::from_millis(100));
        }
    }
    record
}

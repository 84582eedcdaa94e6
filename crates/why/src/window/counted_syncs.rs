//! Corrects the time that processes wait for syncs, from the flush counters of the disks. Sampling misses a flush of a
//! tenth of a millisecond; counters miss none.

use super::derived::set;
use super::{WatchWindow, WatchedEntity};
use crate::machine_snapshot::EntityKind;

/// Minimum flushes per second of a disk that are considered; fewer may come from journals, which commit every few
/// seconds.
const FEWEST: f64 = 20.0;
/// Size in bytes of the smallest write of a file system.
const PAGE: f64 = 4096.0;

/// Raises the sync waiting of processes to the total that the disks have counted. If the samples found more, they stay.
pub(super) fn add_counted_syncs(window: &mut WatchWindow) {
    let (mut flushes, mut waited) = (0.0, 0.0);
    // A layer counts the flushes of its lower disks again.
    let is_lowest = |disk: &&WatchedEntity| !disk.texts.contains_key("lower");
    for disk in window.of_kind(EntityKind::Disk).filter(is_lowest) {
        let count = disk.number("flush.ops");
        if count >= FEWEST {
            flushes += count;
            // What is flushed was written before, and its writer waited for that too. Other writes may wait longer.
            let write = disk.number("write.await").min(disk.number("flush.await"));
            waited += disk.number("flush.wait") + count.min(disk.number("write.ops")) * write;
        }
    }
    set(&mut window.machine, "disk.flushes", flushes);
    if flushes < FEWEST {
        return;
    }
    let syncs: f64 = window.entities.iter().map(count_likely_syncs).sum();
    if syncs < FEWEST {
        return;
    }
    for process in &mut window.entities {
        let share = count_likely_syncs(process) / syncs;
        let threads = process.number("threads").max(1.0);
        let counted = (waited * share).min(threads);
        if counted > process.number("wait.flush") {
            set(process, "wait.flush", counted);
        }
    }
}

/// Estimates how many syncs per second a process made. A sync is a small write followed by a sleep, so the result is
/// limited by both rates. A large write, or one that reaches no disk, counts little.
fn count_likely_syncs(process: &WatchedEntity) -> f64 {
    if process.kind != EntityKind::Process || process.number("kernel") >= 0.5 {
        return 0.0;
    }
    let pages = process.number("io.write") / PAGE;
    pages
        .min(process.number("io.writes"))
        .min(process.number("switches"))
}

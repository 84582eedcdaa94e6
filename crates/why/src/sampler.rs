//! Takes snapshots of a machine at a fixed interval. A read that exceeds its deadline is abandoned, recorded and not
//! repeated, so a dead disk or a hung network share cannot block the watch or its end.
#![allow(
    clippy::disallowed_methods,
    reason = "keeps the pace of the looks by the clock"
)]

use crate::WatchSubject;
use crate::machine_snapshot::{FACT, MachineSnapshot};
use crate::read::{MachineReader, SharedProgress};
use crate::suspect_page::list_used_facts;
use assay_host::Host;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

/// Duration, interval and deadline of a watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchPace {
    /// Time from the first snapshot to the last.
    pub length: Duration,
    /// Time between two snapshots.
    pub interval: Duration,
    /// Time limit for a single read.
    pub deadline: Duration,
}

impl WatchPace {
    /// Returns a pace of one snapshot per second.
    #[must_use]
    pub fn lasting(length: Duration) -> Self {
        Self {
            length,
            interval: Duration::from_secs(1)
                .min(length / 2)
                .max(Duration::from_millis(100)),
            deadline: Duration::from_secs(2),
        }
    }
}

/// Additional time for the second snapshot, in case other programs use all CPUs.
const STARVED: Duration = Duration::from_secs(30);
/// Priority of the thread that looks, as of nice(1): above that of most programs.
const PRIORITY: i32 = -10;
/// Number of thread state samples between two snapshots.
const SAMPLES: u32 = 5;

/// A thread that takes the snapshots.
struct Worker {
    looks: Receiver<MachineSnapshot>,
    stop: Arc<AtomicBool>,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Watches a machine and passes each snapshot to `see`. Calls `is_cancelled` about twenty times per second.
pub fn watch(
    host: &Arc<dyn Host>,
    thing: &WatchSubject,
    pace: WatchPace,
    is_cancelled: &dyn Fn() -> bool,
    see: &mut dyn FnMut(MachineSnapshot),
) {
    let begin = Instant::now();
    let progress = SharedProgress::default();
    let mut worker = start_worker(host, thing, pace, begin, &progress);
    let mut missing = Vec::new();
    let mut last_look = Instant::now();
    let (mut looks, mut begun) = (0, 0);
    let mut last_read = Instant::now();
    let mut facts = Some(start_fact_collection(host));
    loop {
        match worker.looks.recv_timeout(Duration::from_millis(50)) {
            Ok(mut look) => {
                last_look = Instant::now();
                look.missing.append(&mut missing);
                look.set("self.cpu_total", own_cpu_seconds());
                if let Some(found) = facts.as_ref().and_then(|facts| facts.try_recv().ok()) {
                    look.texts.extend(found);
                    facts = None;
                }
                let is_last = u128::from(look.at_ms) >= pace.length.as_millis();
                see(look);
                looks += 1;
                if is_last && looks >= 2 {
                    return;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            // The thread has panicked.
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if is_cancelled() {
            return;
        }
        let reads = count_reads(&progress);
        if std::mem::replace(&mut begun, reads) != reads {
            last_read = Instant::now();
        }
        // A reader that gets no CPU is slow and yet goes on.
        let is_blocked = last_read.elapsed() > pace.deadline;
        if is_blocked && last_look.elapsed() > pace.interval + pace.deadline {
            last_look = Instant::now();
            if let Some(path) = MachineReader::give_up(&progress) {
                missing.push(format!(
                    "{}: no answer within {} s",
                    path.display(),
                    pace.deadline.as_secs_f64()
                ));
            }
            worker = start_worker(host, thing, pace, begin, &progress);
        }
        // What hangs in its last second is not waited for, unless nothing is known yet.
        let patience = if looks < 2 { STARVED } else { Duration::ZERO };
        if begin.elapsed() > pace.length + pace.interval + pace.deadline * 2 + patience {
            return;
        }
    }
}

/// Collects the facts that the pages use, as texts of the machine, in a separate thread, so that a hanging source does
/// not delay a snapshot. Facts that require running a program are left out, because they would cost more than all
/// snapshots of a minute.
fn start_fact_collection(host: &Arc<dyn Host>) -> Receiver<BTreeMap<String, String>> {
    let (sender, receiver) = channel();
    let host = Arc::clone(host);
    std::thread::spawn(move || {
        let facts = assay_facts::collect_from_files(&*host);
        let known = list_used_facts().into_iter().filter_map(|key| {
            let text = match facts.get(key)? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((format!("{FACT}{key}"), text))
        });
        // The watch may have ended.
        let _ = sender.send(known.collect());
    });
    receiver
}

/// Returns the number of reads begun so far.
fn count_reads(progress: &SharedProgress) -> u64 {
    let progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
    progress.begun
}

/// Returns the CPU time of this process in seconds.
fn own_cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn start_worker(
    host: &Arc<dyn Host>,
    thing: &WatchSubject,
    pace: WatchPace,
    begin: Instant,
    progress: &SharedProgress,
) -> Worker {
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, looks) = channel();
    let mut reader = MachineReader::new(Arc::clone(host), Arc::clone(progress), thing.clone());
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        // Looks come in time where programs take all CPUs. Only root may do so.
        let _ = rustix::process::setpriority_process(None, PRIORITY);
        let mut next = Instant::now();
        while !stopped.load(Ordering::Relaxed) {
            let at = begin.elapsed().as_millis();
            let look = reader.look(u64::try_from(at).unwrap_or(u64::MAX));
            if sender.send(look).is_err() {
                return;
            }
            let step = pace.interval / SAMPLES;
            let end = next + pace.interval;
            for number in 1..SAMPLES {
                // A long look leaves less time for samples.
                if number > 1 && Instant::now() + step > end {
                    break;
                }
                std::thread::sleep(step);
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                reader.sample_states();
            }
            next += pace.interval;
            let now = Instant::now();
            // After a late look, the later looks are moved: two looks at almost the same time show
            // no rates.
            next = next.max(now + Duration::from_millis(1));
            std::thread::sleep(next - now);
        }
    });
    Worker { looks, stop }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::LiveHost;
    use std::collections::BTreeSet;

    #[test]
    fn facts_that_pages_use_are_in_files() {
        // A virtual machine has no scaling of frequencies; its collector reads files too.
        let facts = assay_facts::collect_from_files(&LiveHost);
        let family = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
        let known: BTreeSet<String> = facts.map.keys().map(|key| family(key)).collect();
        let used = list_used_facts();
        assert!(!used.is_empty());
        for key in used {
            assert!(known.contains(&family(key)), "{key}");
        }
    }
}

//! Observes disks while another program causes load on them.

use crate::Cancel;
use crate::counters::{CounterSnapshot, Sources};
use assay_host::Host;
use assay_model::siblings::{Siblings, Watched};
use std::time::{Duration, Instant};

/// Reads the counters of all groups of disks at the end of each of `windows` windows, which have the length `window`.
/// Performs no I/O on the disks. When cancelled, returns the readings until then. Calls `looked` after each window.
pub fn watch(
    host: &dyn Host,
    groups: &[Siblings],
    window: Duration,
    windows: u32,
    cancel: &Cancel,
    looked: &mut dyn FnMut(),
) -> Vec<Watched> {
    /// Maximum time until a cancellation is noticed.
    const NAP: Duration = Duration::from_millis(100);
    let mut watched: Vec<Watched> = groups
        .iter()
        .map(|group| Watched {
            siblings: group.clone(),
            windows: Vec::new(),
        })
        .collect();
    let all: Vec<String> = groups
        .iter()
        .flat_map(|group| group.disks.clone())
        .collect();
    let sources = Sources::find(host, &all);
    let mut before = CounterSnapshot::take(host, &sources);
    for _ in 0..windows {
        let end = Instant::now() + window;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if cancel.is_cancelled() {
                return watched;
            }
            std::thread::sleep(left.min(NAP));
        }
        let now = CounterSnapshot::take(host, &sources);
        let counted = before.until(&now).devices;
        before = now;
        for group in &mut watched {
            let ours = counted
                .iter()
                .filter(|disk| group.siblings.disks.contains(&disk.name));
            group.windows.push(ours.cloned().collect());
        }
        looked();
    }
    watched
}

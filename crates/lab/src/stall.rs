//! Stalls disks repeatedly for a while, like a disk that collects garbage, retries a bad sector or has lost a path.

use crate::error::LabError;
use crate::guest::Guest;
use crate::plug::has;
use assay_loads::Cancel;
use serde_json::json;
use std::time::{Duration, Instant};

/// Name of the block device inside a virtio-blk-pci device (hw/virtio/virtio-blk-pci.c).
const VIRTIO_PART: &str = "virtio-backend";

/// When disks are stalled, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// Time from the start of one stall to the start of the next.
    pub every: Duration,
    /// How long each stall lasts.
    pub length: Duration,
}

/// Count and duration of the stalls that happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// Number of stalls so far.
    pub count: u64,
    /// Duration of the longest stall. On a busy machine a stall may end late.
    pub longest: Duration,
}

impl Guest {
    /// Stalls disks until `until` is cancelled. During a stall one request may pass; all other requests wait until the
    /// stall ends. After the function has returned, no disk is stalled.
    ///
    /// # Errors
    /// A disk does not exist, or the guest has ended.
    pub fn stall(
        &self,
        disks: &[String],
        stalls: Stalls,
        until: &Cancel,
    ) -> Result<Stalled, LabError> {
        for disk in disks {
            self.check_disk(disk)?;
        }
        // A killed process may have left a disk stalled.
        self.hold(disks, false)?;
        let mut seen = Stalled::default();
        let mut next = Instant::now();
        loop {
            next += stalls.every;
            if !sleep(next, until) {
                return Ok(seen);
            }
            let begun = Instant::now();
            let held = self.hold(disks, true);
            if held.is_ok() {
                sleep(begun + stalls.length, until);
            }
            self.hold(disks, false)?;
            held?;
            seen.count += 1;
            seen.longest = seen.longest.max(begun.elapsed());
        }
    }

    /// Limits the disks to one request per second, or removes the limit (`block_set_io_throttle`,
    /// qapi/block-core.json). Removing the limit restarts waiting requests (`blk_io_limits_disable`,
    /// block/block-backend.c, 7.2).
    fn hold(&self, disks: &[String], held: bool) -> Result<(), LabError> {
        let mut monitor = self.monitor()?;
        let mut ended = Ok(());
        for disk in disks {
            // For virtio-blk-pci, the disk is a part of the device.
            let whole = format!("/machine/peripheral/{disk}");
            let device = match has(&mut monitor, &whole, VIRTIO_PART)? {
                true => format!("{whole}/{VIRTIO_PART}"),
                false => whole,
            };
            let limits = json!({
                "id": device, "iops": u64::from(held), "iops_rd": 0, "iops_wr": 0,
                "bps": 0, "bps_rd": 0, "bps_wr": 0,
            });
            // A failure for one disk must not prevent the others.
            ended = ended.and(monitor.execute("block_set_io_throttle", limits).map(drop));
        }
        Ok(ended?)
    }
}

/// Sleeps until `then`. Returns false if cancelled earlier.
fn sleep(then: Instant, until: &Cancel) -> bool {
    /// Maximum time that a stall continues after it was cancelled.
    const SLICE: Duration = Duration::from_millis(50);
    while !until.is_cancelled() {
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(SLICE));
    }
    false
}

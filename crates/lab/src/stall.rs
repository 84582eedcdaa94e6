//! Disks that answer nothing for a while, again and again, as one does that collects garbage, retries
//! a bad sector or lost a path.

use crate::error::LabError;
use crate::guest::Guest;
use crate::plug::has;
use assay_loads::Cancel;
use serde_json::json;
use std::time::{Duration, Instant};

/// The device behind a virtio-blk-pci (hw/virtio/virtio-blk-pci.c).
const VIRTIO_PART: &str = "virtio-backend";

/// When disks stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// From the beginning of one to the beginning of the next.
    pub every: Duration,
    /// How long one is.
    pub length: Duration,
}

/// The stalls that there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalled {
    /// How many.
    pub count: u64,
    /// The longest: QEMU was told late that it may go on when the machine was busy.
    pub longest: Duration,
}

impl Guest {
    /// Lets disks stall until `until` is cancelled. In a stall one request may pass, all others wait,
    /// and all of them go on when it ends. No disk is held any more afterwards.
    ///
    /// # Errors
    /// There is no such disk, or the guest is gone.
    pub fn stall(
        &self,
        disks: &[String],
        stalls: Stalls,
        until: &Cancel,
    ) -> Result<Stalled, LabError> {
        for disk in disks {
            self.check_disk(disk)?;
        }
        // One that was killed may have left a disk held.
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

    /// One request a second, or as many as come (`block_set_io_throttle`, qapi/block-core.json). Lifting
    /// the limit restarts what waits (`blk_io_limits_disable`, block/block-backend.c, 7.2).
    fn hold(&self, disks: &[String], held: bool) -> Result<(), LabError> {
        let mut monitor = self.monitor()?;
        let mut ended = Ok(());
        for disk in disks {
            // Of virtio-blk-pci, the disk is a part.
            let whole = format!("/machine/peripheral/{disk}");
            let device = match has(&mut monitor, &whole, VIRTIO_PART)? {
                true => format!("{whole}/{VIRTIO_PART}"),
                false => whole,
            };
            let limits = json!({
                "id": device, "iops": u64::from(held), "iops_rd": 0, "iops_wr": 0,
                "bps": 0, "bps_rd": 0, "bps_wr": 0,
            });
            // One that cannot be let go does not keep the others.
            ended = ended.and(monitor.execute("block_set_io_throttle", limits).map(drop));
        }
        Ok(ended?)
    }
}

/// Sleeps until then; false when it is over before.
fn sleep(then: Instant, until: &Cancel) -> bool {
    /// How soon a cancelled stall ends.
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

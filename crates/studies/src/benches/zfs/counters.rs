//! Counters that are read before and after a job: of ZFS, of the block layer, and of QEMU for the disks of a guest.

use super::guest_or_dataset::Ground;
use crate::StudyError;
use assay_host::kstat;
use assay_lab::counters::{of_disk, parse_flushes};
use serde_json::{Value, json};

/// Values of the counters since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    /// Number of commits of the ZFS intent log (`zil_commit_count`).
    pub commits: u64,
    /// Number of completed flushes of the device below the file system.
    pub flushes: u64,
    /// Number of flushes that QEMU received from the guest for these disks; `None` without a guest.
    pub host_flushes: Option<u64>,
    /// Number of bytes that QEMU received from the guest for these disks; `None` without a guest.
    pub host_bytes: Option<u64>,
}

impl Counters {
    /// Reads the counters. `device` is the block device below the file system, `disks` the virtual disks below
    /// it.
    ///
    /// # Errors
    /// The guest or QEMU does not answer.
    pub fn read(
        ground: &Ground<'_>,
        device: Option<&str>,
        disks: &[String],
    ) -> Result<Self, StudyError> {
        // Data that ZFS still holds back belongs to earlier operations.
        let pool = ground.parent().split('/').next().unwrap_or_default();
        ground.command(&["zpool", "sync", pool])?;
        let name = device.and_then(|path| path.strip_prefix("/dev/"));
        let stat = name.map(|name| format!("/sys/class/block/{name}/stat"));
        let mut argv = vec!["cat", kstat::ZIL];
        argv.extend(stat.as_deref());
        let text = ground.command(&argv)?;
        let last = text.lines().last().filter(|_| name.is_some());
        let mut found = Self {
            commits: kstat::find_counter(&text, "zil_commit_count").unwrap_or(0),
            flushes: last.and_then(parse_flushes).unwrap_or(0),
            ..Self::default()
        };
        if let Some(guest) = ground.guest() {
            let stats = guest.qmp("query-blockstats", json!({}))?;
            let (flushes, bytes) = host_side(&stats, disks);
            (found.host_flushes, found.host_bytes) = (Some(flushes), Some(bytes));
        }
        Ok(found)
    }

    /// Returns the differences since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            commits: self.commits.saturating_sub(before.commits),
            flushes: self.flushes.saturating_sub(before.flushes),
            host_flushes: count_since(self.host_flushes, before.host_flushes),
            host_bytes: count_since(self.host_bytes, before.host_bytes),
        }
    }
}

fn count_since(now: Option<u64>, before: Option<u64>) -> Option<u64> {
    Some(now?.saturating_sub(before?))
}

/// Returns the number of flushes and of bytes written, summed over these disks, from `query-blockstats`.
fn host_side(stats: &Value, disks: &[String]) -> (u64, u64) {
    let ours = disks.iter().filter_map(|id| of_disk(stats, id));
    let count = |disk: &Value, name: &str| disk[name].as_u64().unwrap_or(0);
    ours.fold((0, 0), |(flushes, bytes), disk| {
        (
            flushes + count(disk, "flush_operations"),
            bytes + count(disk, "wr_bytes"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_and_flushes_are_read_from_what_the_guest_prints() {
        let stat = include_str!("../../../fixtures/linux-6.1-nbd-stat.txt");
        assert_eq!(parse_flushes(stat), Some(59));
    }

    #[test]
    fn the_hosts_side_is_that_of_the_disks_asked_for() {
        let text = include_str!("../../../fixtures/qemu-7.2.22-query-blockstats.json");
        let stats: Value = serde_json::from_str(text).unwrap();
        let both = ["pool1".to_owned(), "pool2".to_owned()];
        assert_eq!(host_side(&stats, &both), (1890, 286_878_720));
        assert_eq!(host_side(&stats, &both[..1]), (945, 143_439_360));
        assert_eq!(host_side(&stats, &["pool".to_owned()]), (0, 0));
    }
}

//! Parses counters of one disk, from QEMU and from the kernel.

use serde_json::Value;

/// Returns the counters of a guest's disk from QEMU's `query-blockstats`: `rd_operations`, `wr_bytes`,
/// `flush_operations` and others.
///
/// Returns `None` if QEMU has no such disk.
#[must_use]
pub fn of_disk<'a>(answer: &'a Value, id: &str) -> Option<&'a Value> {
    let mut devices = answer.as_array()?.iter();
    let ours = devices.find(|device| {
        let qdev = device["qdev"].as_str();
        qdev.is_some_and(|qdev| is_device(qdev, id))
    });
    Some(&ours?["stats"])
}

/// Returns whether `qdev` refers to the device `id`. `qdev` is the id itself or, for virtio-blk, a path in the object
/// tree, because there the counters belong to a part of the device.
fn is_device(qdev: &str, id: &str) -> bool {
    let path = qdev.strip_prefix("/machine/peripheral/");
    let owner = path.map_or(qdev, |path| path.split('/').next().unwrap_or_default());
    owner == id
}

/// Parses the number of completed flushes of a disk: field 16 of `/sys/block/DISK/stat` (Documentation/block/stat.rst).
///
/// Returns `None` before Linux 5.5, which lacks this field.
#[must_use]
pub fn parse_flushes(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(15)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paths in the object tree as QEMU 7.2 prints them.
    #[test]
    fn a_disk_is_not_taken_for_another_by_the_rest_of_a_path() {
        assert!(is_device(
            "/machine/peripheral/disk1/virtio-backend",
            "disk1"
        ));
        assert!(is_device("disk2", "disk2"));
        for id in ["machine", "peripheral", "virtio-backend"] {
            assert!(!is_device("/machine/peripheral/disk1/virtio-backend", id));
        }
    }

    /// Text constructed according to Documentation/block/stat.rst. Before Linux 5.5 there are fifteen fields.
    #[test]
    fn flushes_are_the_sixteenth_field() {
        let stat = "     105        0     4968       42       14        0      112        9        0       64       59        0        0        0        0        7        7\n";
        assert_eq!(parse_flushes(stat), Some(7));
        assert_eq!(parse_flushes("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"), None);
    }
}

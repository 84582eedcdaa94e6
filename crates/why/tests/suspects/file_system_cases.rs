//! Cases of file systems, arrays, pools and disks of guests.

use super::made_machine::{BUSY_DISK, Case, Part, Values, ZFS, waiter};
use assay_why::EntityKind::{Array, Disk, FileSystem, GuestDisk, Pool};

const FULL: Values = &[
    ("size", 1e9),
    ("available", 0.0),
    ("inodes", 1e6),
    ("inodes.available", 9e5),
];
const NO_INODES: Values = &[
    ("size", 1e9),
    ("available", 5e8),
    ("inodes", 1e6),
    ("inodes.available", 0.0),
];

pub(super) fn cases() -> Vec<Case> {
    let leak = |parts: Vec<Part>| -> &'static [Part] { Vec::leak(parts) };
    vec![
        (
            "network-share",
            &[],
            &[],
            leak(vec![waiter("network-share")]),
        ),
        (
            "file-system-errors",
            &[],
            &[],
            &[(
                FileSystem,
                "/srv",
                &[("turned_read_only", 1.0), ("size", 1e9), ("available", 5e8)],
                &[("type", "ext4")],
            )],
        ),
        ("file-scanner", &[], &[], leak(vec![waiter("file-scanner")])),
        ("supervisor", &[], &[], leak(vec![waiter("supervisor")])),
        ("page-server", &[], &[], leak(vec![waiter("page-server")])),
        (
            "mount-sync",
            &[("mounts.sync", 1.0)],
            &[],
            leak(vec![
                waiter("flush"),
                (Disk, "sda", BUSY_DISK, &[]),
                (
                    FileSystem,
                    "/srv",
                    &[("sync", 1.0), ("size", 1e9), ("available", 5e8)],
                    &[("type", "ext4")],
                ),
            ]),
        ),
        (
            "raid-degraded",
            &[],
            &[],
            &[(
                Array,
                "md0",
                &[("degraded", 1.0)],
                &[("level", "raid5"), ("action", "idle")],
            )],
        ),
        (
            "raid-resync",
            &[],
            &[],
            &[(
                Array,
                "md0",
                &[("degraded", 0.0), ("sync_speed", 1e8)],
                &[("level", "raid5"), ("action", "check")],
            )],
        ),
        (
            "zfs-pool-state",
            ZFS,
            &[],
            &[(Pool, "tank", &[], &[("state", "DEGRADED")])],
        ),
        (
            "zfs-txg-long",
            ZFS,
            &[],
            &[(
                Pool,
                "tank",
                &[("txg.sync_s", 9.0), ("txg.dirty", 3e9)],
                &[("state", "ONLINE")],
            )],
        ),
        ("zfs-dirty-throttle", ZFS, &[], leak(vec![waiter("zfs")])),
        ("zfs-cache-small", ZFS, &[], leak(vec![waiter("zfs")])),
        (
            "journal",
            &[],
            &[],
            leak(vec![waiter("journal"), (Disk, "sda", BUSY_DISK, &[])]),
        ),
        (
            "file-system-frozen",
            &[],
            &[],
            leak(vec![
                waiter("file-system-frozen"),
                (Disk, "sda", BUSY_DISK, &[]),
            ]),
        ),
        (
            "file-system-full",
            &[],
            &[],
            &[(FileSystem, "/srv", FULL, &[("type", "ext4")])],
        ),
        (
            "inodes-used-up",
            &[],
            &[],
            &[(FileSystem, "/srv", NO_INODES, &[("type", "ext4")])],
        ),
        (
            "guest-disk-limit",
            &[],
            &[],
            &[(
                GuestDisk,
                "virtio0",
                &[
                    ("read.ops_total", 39.0),
                    ("read.wait_total", 0.9),
                    ("limit.ops", 40.0),
                ],
                &[("guest", "db"), ("file", "/i/d.raw"), ("pid", "5")],
            )],
        ),
        (
            "guest-disk-slow",
            &[],
            &[],
            &[(
                GuestDisk,
                "virtio0",
                &[("read.ops_total", 39.0), ("read.wait_total", 0.9)],
                &[("guest", "db"), ("file", "/i/d.raw"), ("pid", "5")],
            )],
        ),
        (
            "guest-disk-flush",
            &[],
            &[],
            &[(
                GuestDisk,
                "virtio0",
                &[("flush.ops_total", 20.0), ("flush.wait_total", 0.8)],
                &[("guest", "db"), ("file", "/i/d.raw"), ("pid", "5")],
            )],
        ),
    ]
}

//! Cases of disks and those who load them.

use super::made_machine::{BUSY_DISK, Case, Part, READER, Values, waiter};
use assay_why::EntityKind::{Disk, Group, Process};

pub(super) fn cases() -> Vec<Case> {
    let leak = |parts: Vec<Part>| -> &'static [Part] { Vec::leak(parts) };
    let slow: Values = &[
        ("read.ops_total", 50.0),
        ("read.wait_total", 2.0),
        ("busy_total", 0.6),
        ("queue_total", 1.9),
        ("write.ops_total", 0.0),
        ("write.wait_total", 0.0),
        ("inflight", 2.0),
    ];
    let quick: Values = &[
        ("read.ops_total", 50.0),
        ("read.wait_total", 0.2),
        ("busy_total", 0.2),
        ("queue_total", 0.2),
        ("write.ops_total", 0.0),
        ("write.wait_total", 0.0),
        ("inflight", 0.0),
    ];
    let rotational: &[(&str, &str)] = &[("rotational", "1"), ("model", "X")];
    vec![
        (
            "disk-saturated",
            &[],
            &[],
            leak(vec![(Disk, "sda", BUSY_DISK, &[]), READER]),
        ),
        (
            "io-hog",
            &[],
            &[],
            leak(vec![(Disk, "sda", BUSY_DISK, &[]), READER]),
        ),
        (
            "disk-rate-limit",
            &[],
            &[],
            leak(vec![(Disk, "sda", BUSY_DISK, &[]), READER]),
        ),
        (
            "slow-sibling",
            &[],
            &[],
            leak(vec![
                (Disk, "sda", slow, rotational),
                (Disk, "sdb", quick, rotational),
                READER,
            ]),
        ),
        (
            "discard-storm",
            &[],
            &[],
            &[(
                Disk,
                "sda",
                &[
                    ("discard.ops_total", 300.0),
                    ("discard.wait_total", 2.0),
                    ("read.ops_total", 1.0),
                    ("discard.bytes_total", 1e8),
                ],
                &[],
            )],
        ),
        (
            "disk-dead",
            &[],
            &[],
            &[(
                Disk,
                "sda",
                &[
                    ("inflight", 3.0),
                    ("busy_total", 1.0),
                    ("read.ops_total", 0.0),
                    ("write.ops_total", 0.0),
                ],
                &[],
            )],
        ),
        (
            "slow-flush",
            &[],
            &[],
            leak(vec![
                (
                    Disk,
                    "sda",
                    &[
                        ("flush.ops_total", 20.0),
                        ("flush.wait_total", 0.8),
                        ("write.ops_total", 20.0),
                        ("write.wait_total", 0.1),
                    ],
                    &[],
                ),
                waiter("flush"),
            ]),
        ),
        (
            "fsync-storm",
            &[],
            &[],
            leak(vec![
                (
                    Disk,
                    "sda",
                    &[("flush.ops_total", 900.0), ("flush.wait_total", 0.5)],
                    &[],
                ),
                waiter("flush"),
            ]),
        ),
        (
            "syncs-of-many",
            &[],
            &[],
            &[
                (Process, "a", &[("wait.flush", 0.2)], &[("pid", "1")]),
                (Process, "b", &[("wait.flush", 0.2)], &[("pid", "2")]),
                (Process, "c", &[("wait.flush", 0.2)], &[("pid", "3")]),
                (Process, "d", &[("wait.flush", 0.2)], &[("pid", "4")]),
                (Process, "e", &[("wait.flush", 0.2)], &[("pid", "5")]),
                (Process, "f", &[("wait.flush", 0.2)], &[("pid", "6")]),
            ],
        ),
        (
            "io-limit",
            &[],
            &[],
            leak(vec![
                (
                    Group,
                    "/jobs/backup",
                    &[("io.read_limit", 4e6), ("io.read_total", 3.9e6)],
                    &[("io.max", "8:0 rbps=4000000")],
                ),
                READER,
            ]),
        ),
        (
            "dirty-limit",
            &[("mem.dirty", 1e9), ("mem.dirty_pages", 3.9e5)],
            &[],
            leak(vec![waiter("dirty-limit")]),
        ),
    ]
}

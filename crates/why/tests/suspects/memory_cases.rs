//! Cases of memory and its limits.

use super::made_machine::{Case, Part, waiter};
use assay_why::EntityKind::{Group, Process};

pub(super) fn cases() -> Vec<Case> {
    let leak = |parts: Vec<Part>| -> &'static [Part] { Vec::leak(parts) };
    vec![
        (
            "memory-limit",
            &[],
            &[],
            &[(
                Group,
                "/web",
                &[
                    ("mem.current", 1e8),
                    ("mem.max", 1e8),
                    ("mem.reached_max_total", 500.0),
                    ("mem.refault_file_total", 300.0),
                ],
                &[],
            )],
        ),
        (
            "memory-high",
            &[],
            &[],
            &[(
                Group,
                "/web",
                &[
                    ("mem.current", 1e8),
                    ("mem.high", 1e8),
                    ("mem.reached_high_total", 50.0),
                ],
                &[],
            )],
        ),
        (
            "memory-grows",
            &[],
            &[],
            &[
                (
                    Process,
                    "daemon",
                    &[("memory+", 2e7)],
                    &[("pid", "6"), ("groups", "/web")],
                ),
                (
                    Group,
                    "/web",
                    &[("mem.current", 2e8), ("mem.max", 6e8)],
                    &[],
                ),
            ],
        ),
        (
            "swap-eager",
            &[("swap.out_total", 80.0)],
            &[("fact.sysctl.vm.swappiness", "100")],
            &[],
        ),
        (
            "zone-reclaim",
            &[("mem.scan_direct_total", 5000.0)],
            &[("fact.sysctl.vm.zone_reclaim_mode", "1")],
            &[],
        ),
        ("out-of-memory", &[("mem.oom_kill_total", 0.1)], &[], &[]),
        (
            "swap-storm",
            &[("swap.in_total", 2000.0), ("swap.out_total", 2000.0)],
            &[],
            leak(vec![waiter("swap")]),
        ),
        (
            "memory-short",
            &[("mem.stalls_total", 50.0), ("mem.available", 2e8)],
            &[],
            &[],
        ),
        (
            "cache-thrash",
            &[("mem.refault_file_total", 5000.0), ("mem.available", 4e8)],
            &[],
            &[],
        ),
        ("compaction", &[("mem.compact_stall_total", 40.0)], &[], &[]),
    ]
}

//! Every suspect fires on a machine that shows it, and stays quiet on one that does not.

use assay_why::{
    Entity, EntityKind, MachineLook, WatchSubject, WatchWindow, judge_window, load_suspects,
};
use std::collections::BTreeSet;

/// Numbers of a healthy machine: rates of counters, and levels.
const HEALTHY: &[(&str, f64)] = &[
    ("cpu.count", 4.0),
    ("cpu.user_total", 0.3),
    ("cpu.nice_total", 0.0),
    ("cpu.system_total", 0.1),
    ("cpu.idle_total", 3.6),
    ("cpu.iowait_total", 0.0),
    ("cpu.irq_total", 0.0),
    ("cpu.softirq_total", 0.0),
    ("cpu.steal_total", 0.0),
    ("cpu.running", 1.0),
    ("cpu.forks_total", 3.0),
    ("uptime", 1000.0),
    ("percpu.0.soft_total", 0.0),
    ("percpu.1.soft_total", 0.0),
    ("percpu.0.interrupts_total", 200.0),
    ("percpu.1.interrupts_total", 200.0),
    ("cpu.thermal_total", 0.0),
    ("cpu.frequency", 1.0),
    ("cpu.frequency_limit", 1.0),
    ("mem.total", 8e9),
    ("mem.available", 6e9),
    ("mem.cached", 2e9),
    ("mem.dirty", 1e6),
    ("mem.dirty_pages", 100.0),
    ("mem.dirty_threshold", 4e5),
    ("mem.writeback", 0.0),
    ("mem.stalls_total", 0.0),
    ("mem.scan_direct_total", 0.0),
    ("mem.refault_file_total", 0.0),
    ("mem.compact_stall_total", 0.0),
    ("mem.thp_fallback_total", 0.0),
    ("mem.migrated_total", 0.0),
    ("mem.oom_kill_total", 0.0),
    ("swap.size", 2e9),
    ("swap.free", 2e9),
    ("swap.in_total", 0.0),
    ("swap.out_total", 0.0),
    ("files.open", 2000.0),
    ("files.max", 1e6),
    ("tcp.sent_total", 100.0),
    ("tcp.received_total", 100.0),
    ("tcp.retransmitted_total", 0.0),
    ("tcp.timeouts_total", 0.0),
    ("tcp.listen_overflows_total", 0.0),
    ("tcp.cookies_total", 0.0),
    ("tcp.memory_pressure_total", 0.0),
    ("tcp.pruned_total", 0.0),
    ("tcp.memory_pages", 10.0),
    ("tcp.accepted_total", 1.0),
    ("tcp.opened_total", 1.0),
    ("tcp.syn_retransmitted_total", 0.0),
    ("tcp.time_wait", 10.0),
    ("tcp.ports", 28232.0),
    ("tcp.connecting", 0.0),
    ("dns.open", 0.0),
    ("udp.full_total", 0.0),
    ("udp.received_total", 1.0),
    ("conntrack.count", 100.0),
    ("conntrack.max", 65536.0),
    ("conntrack.drop_total", 0.0),
    ("conntrack.early_drop_total", 0.0),
    ("softnet.dropped_total", 0.0),
    ("softnet.squeezed_total", 0.0),
    ("processes", 150.0),
];

type Values = &'static [(&'static str, f64)];

/// Something beside the machine: kind, name, numbers and texts.
type Part = (
    EntityKind,
    &'static str,
    Values,
    &'static [(&'static str, &'static str)],
);

/// Page, numbers of the machine that differ, texts of the machine, and parts.
type Case = (
    &'static str,
    Values,
    &'static [(&'static str, &'static str)],
    &'static [Part],
);

use EntityKind::{Array, Disk, Group, Interface, Listener, Pool, Process};

const ZFS: Values = &[
    ("zfs.arc", 1e9),
    ("zfs.arc_max", 4e9),
    ("zfs.hits_total", 100.0),
    ("zfs.misses_total", 500.0),
    ("zfs.memory_throttle_total", 1.0),
    ("zfs.dirty_delay_total", 50.0),
    ("zfs.dirty_throttle_total", 0.0),
    ("zfs.dirty_over_total", 0.0),
    ("zfs.dirty_max", 4e9),
    ("mem.available", 1e9),
];

const BUSY_DISK: Values = &[
    ("read.ops_total", 100.0),
    ("read.bytes_total", 4e5),
    ("read.wait_total", 4.0),
    ("write.ops_total", 0.0),
    ("write.bytes_total", 0.0),
    ("write.wait_total", 0.0),
    ("busy_total", 1.0),
    ("queue_total", 4.0),
    ("inflight", 4.0),
    ("flush.ops_total", 0.0),
    ("flush.wait_total", 0.0),
];

const READER: Part = (
    Process,
    "backup",
    &[
        ("io.read_total", 4e6),
        ("io.write_total", 0.0),
        ("wait.disk", 3.0),
        ("cpu_total", 0.1),
        ("queue_total", 0.0),
    ],
    &[("pid", "77"), ("groups", "/jobs/backup")],
);

fn waiter(class: &'static str) -> Part {
    let numbers: Values = match class {
        "flush" => &[("wait.flush", 0.9), ("cpu_total", 0.1)],
        "dirty-limit" => &[("wait.dirty-limit", 0.9), ("cpu_total", 0.1)],
        "swap" => &[("wait.swap", 0.9)],
        "lock" => &[("wait.lock", 2.0)],
        "network-share" => &[("wait.network-share", 2.0)],
        "zfs" => &[("wait.zfs", 2.0)],
        "journal" => &[("wait.journal", 2.0)],
        "file-system-frozen" => &[("wait.file-system-frozen", 2.0)],
        _ => &[("queue_total", 2.0), ("cpu_total", 0.2)],
    };
    (
        Process,
        "worker",
        numbers,
        &[("pid", "88"), ("groups", "/jobs/worker")],
    )
}

fn cases() -> Vec<Case> {
    let leak = |parts: Vec<Part>| -> &'static [Part] { Vec::leak(parts) };
    let busy: Values = &[
        ("cpu.user_total", 3.9),
        ("cpu.idle_total", 0.1),
        ("cpu.running", 9.0),
    ];
    let hog: Part = (
        Process,
        "miner",
        &[("cpu_total", 3.0), ("queue_total", 0.1)],
        &[("pid", "9")],
    );
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
        ("cpu-steal", &[("cpu.steal_total", 1.0)], &[], &[]),
        (
            "softirq-one-cpu",
            &[("percpu.1.soft_total", 0.9), ("cpu.softirq_total", 0.9)],
            &[],
            &[],
        ),
        (
            "interrupts-one-cpu",
            &[
                ("percpu.1.interrupts_total", 5e4),
                ("percpu.1.soft_total", 0.3),
            ],
            &[],
            &[],
        ),
        ("cpu-heat", &[("cpu.thermal_total", 0.3)], &[], &[]),
        (
            "cpu-frequency",
            &[("cpu.frequency_limit", 0.4), ("cpu.user_total", 3.0)],
            &[],
            &[],
        ),
        (
            "clocksource",
            &[("cpu.system_total", 1.0)],
            &[("clocksource", "hpet"), ("clocksources", "tsc hpet")],
            &[],
        ),
        (
            "fork-storm",
            &[("cpu.forks_total", 5000.0), ("cpu.system_total", 2.0)],
            &[],
            &[],
        ),
        ("cpu-saturated", busy, &[], leak(vec![waiter("queue")])),
        ("cpu-hog", busy, &[], leak(vec![waiter("queue"), hog])),
        (
            "guest-cpu",
            busy,
            &[],
            &[(
                Process,
                "qemu-system-x86",
                &[("cpu_total", 0.5), ("queue_total", 0.6)],
                &[("pid", "5"), ("guest", "db")],
            )],
        ),
        (
            "cpu-quota",
            &[],
            &[],
            &[(
                Group,
                "/web",
                &[
                    ("cpu.periods_total", 10.0),
                    ("cpu.throttled_total", 9.0),
                    ("cpu.throttled_s_total", 0.8),
                    ("cpu.usage_total", 0.2),
                    ("cpu.quota", 0.2),
                ],
                &[],
            )],
        ),
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
        (
            "listen-overflow",
            &[("tcp.listen_overflows_total", 4.0)],
            &[],
            &[],
        ),
        (
            "accept-queue",
            &[],
            &[],
            &[(Listener, "port 80", &[("queue", 9.0)], &[])],
        ),
        ("retransmits", &[("tcp.retransmitted_total", 6.0)], &[], &[]),
        (
            "conntrack-full",
            &[("conntrack.count", 65536.0), ("conntrack.drop_total", 30.0)],
            &[],
            &[],
        ),
        ("udp-full", &[("udp.full_total", 30.0)], &[], &[]),
        (
            "interface-errors",
            &[],
            &[],
            &[(
                Interface,
                "eth0",
                &[
                    ("rx.packets_total", 9.0),
                    ("tx.packets_total", 9.0),
                    ("rx.errors_total", 5.0),
                    ("tx.errors_total", 0.0),
                    ("rx.drops_total", 0.0),
                    ("tx.drops_total", 0.0),
                ],
                &[],
            )],
        ),
        (
            "link-full",
            &[],
            &[],
            &[(
                Interface,
                "eth0",
                &[
                    ("rx.bytes_total", 1.2e8),
                    ("tx.bytes_total", 1e5),
                    ("speed_mbit", 1000.0),
                ],
                &[("duplex", "full")],
            )],
        ),
        (
            "link-slow",
            &[],
            &[],
            &[(
                Interface,
                "eth0",
                &[
                    ("rx.bytes_total", 5e6),
                    ("tx.bytes_total", 1e5),
                    ("speed_mbit", 100.0),
                ],
                &[("duplex", "full")],
            )],
        ),
        ("name-server", &[("dns.open", 2.0)], &[], &[]),
        (
            "connection-timeouts",
            &[("tcp.connecting", 3.0)],
            &[("connecting_to", "192.0.2.9:5432")],
            &[],
        ),
        ("ports-used-up", &[("tcp.time_wait", 27000.0)], &[], &[]),
        ("tcp-memory", &[("tcp.pruned_total", 30.0)], &[], &[]),
        ("syn-flood", &[("tcp.cookies_total", 90.0)], &[], &[]),
        (
            "packet-backlog",
            &[("softnet.dropped_total", 90.0)],
            &[],
            &[],
        ),
        (
            "files-exhausted",
            &[],
            &[],
            &[(
                Process,
                "web",
                &[
                    ("files.open", 1024.0),
                    ("files.limit", 1024.0),
                    ("cpu_total", 0.1),
                ],
                &[("pid", "6")],
            )],
        ),
        ("files-of-all", &[("files.open", 1e6)], &[], &[]),
        (
            "tasks-limit",
            &[],
            &[],
            &[(
                Group,
                "/web",
                &[
                    ("pids.current", 100.0),
                    ("pids.max", 100.0),
                    ("pids.refused_total", 1.0),
                ],
                &[],
            )],
        ),
        (
            "frozen",
            &[],
            &[],
            &[(Group, "/web", &[("frozen", 1.0)], &[])],
        ),
        (
            "lock-contention",
            &[],
            &[],
            leak(vec![waiter("lock"), (Disk, "sda", BUSY_DISK, &[])]),
        ),
        (
            "network-share",
            &[],
            &[],
            leak(vec![waiter("network-share")]),
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
    ]
}

/// Looks of ten seconds at a machine that is healthy but for the case.
fn looks(machine: Values, texts: &[(&str, &str)], parts: &[Part]) -> Vec<MachineLook> {
    let value = |key: &str, rate: f64, at: f64| match key.ends_with("_total") {
        true => 1e6 + rate * at,
        false => rate,
    };
    let look = |second: u32| {
        let at = f64::from(second);
        let mut look = MachineLook {
            at_ms: u64::from(second) * 1000,
            ..MachineLook::default()
        };
        for (key, rate) in HEALTHY.iter().chain(machine) {
            look.set(*key, value(key, *rate, at));
        }
        let texts_of = |texts: &[(&str, &str)]| {
            texts
                .iter()
                .map(|(key, text)| (key.to_string(), text.to_string()))
                .collect()
        };
        look.texts = texts_of(texts);
        for (kind, name, numbers, texts) in parts {
            let mut entity = Entity::new(*kind, *name, *name);
            for (key, rate) in *numbers {
                entity.set(key, value(key, *rate, at));
            }
            entity.texts = texts_of(texts);
            look.entities.push(entity);
        }
        look
    };
    (0..=10).map(look).collect()
}

fn suspected(looks: &[MachineLook], thing: &WatchSubject) -> Vec<String> {
    let answer = judge_window(&WatchWindow::new(looks, thing), thing).unwrap();
    assert!((0.0..=1.0).contains(&answer.unexplained));
    let shares: f64 = answer.suspects.iter().filter_map(|one| one.share).sum();
    assert!(
        shares <= 1.0 + 1e-9,
        "more is explained than was waited: {shares}"
    );
    for suspect in &answer.suspects {
        assert!(
            !suspect.title.contains('{') && !suspect.evidence.is_empty(),
            "{suspect:?}"
        );
        assert_ne!(
            suspect.title, suspect.id,
            "a number of the title is missing"
        );
    }
    answer.suspects.into_iter().map(|one| one.id).collect()
}

#[test]
fn a_healthy_machine_has_no_suspect() {
    assert_eq!(
        suspected(
            &looks(&[], &[("clocksource", "tsc")], &[]),
            &WatchSubject::Machine
        ),
        [""; 0]
    );
}

#[test]
fn each_suspect_fires_where_it_is_to_blame() {
    for (page, machine, texts, parts) in cases() {
        let found = suspected(&looks(machine, texts, parts), &WatchSubject::Machine);
        assert!(found.iter().any(|one| one == page), "{page}: {found:?}");
    }
}

#[test]
fn each_suspect_stays_quiet_on_most_other_faults() {
    let all = cases();
    let found: Vec<Vec<String>> = all
        .iter()
        .map(|(_, machine, texts, parts)| {
            suspected(&looks(machine, texts, parts), &WatchSubject::Machine)
        })
        .collect();
    for (page, ..) in &all {
        let fires = found
            .iter()
            .filter(|found| found.iter().any(|one| one == page))
            .count();
        assert!(fires <= 6, "{page} fires on {fires} of {}", all.len());
    }
}

#[test]
fn each_page_has_a_case() {
    // Those about a part of a machine are in the next test.
    let tested: BTreeSet<&str> = cases()
        .iter()
        .map(|(page, ..)| *page)
        .chain(["computes", "stopped"])
        .collect();
    let pages: Vec<String> = load_suspects()
        .unwrap()
        .iter()
        .map(|page| page.id.clone())
        .collect();
    let missing: Vec<&String> = pages
        .iter()
        .filter(|page| !tested.contains(page.as_str()))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_part_that_computes_or_is_stopped_is_told_and_others_are_not_to_blame() {
    let part = |name, numbers| -> Part {
        (
            Process,
            name,
            numbers,
            &[("pid", "7"), ("ancestors", "7 1")],
        )
    };
    let thing = WatchSubject::Process(7);
    let hog: Values = &[
        ("cpu_total", 1.0),
        ("queue_total", 0.0),
        ("threads", 1.0),
        ("stopped", 0.0),
    ];
    assert_eq!(
        suspected(&looks(&[], &[], &[part("calc", hog)]), &thing),
        ["computes"]
    );
    let still: Values = &[("cpu_total", 0.0), ("queue_total", 0.0), ("stopped", 1.0)];
    assert_eq!(
        suspected(&looks(&[], &[], &[part("job", still)]), &thing),
        ["stopped"]
    );
    // The disk is full, and this process does not wait for it.
    let idle: Values = &[("cpu_total", 0.1), ("queue_total", 0.0)];
    let parts = [
        part("idle", idle),
        (Disk, "sda", BUSY_DISK, &[] as &[(&str, &str)]),
        READER,
    ];
    assert_eq!(suspected(&looks(&[], &[], &parts), &thing), [""; 0]);
}

#[test]
fn several_causes_are_all_named() {
    let group: Part = (
        Group,
        "/web",
        &[
            ("cpu.periods_total", 10.0),
            ("cpu.throttled_total", 9.0),
            ("cpu.throttled_s_total", 0.8),
            ("cpu.usage_total", 0.2),
            ("cpu.quota", 0.2),
        ],
        &[],
    );
    let machine: Values = &[("dns.open", 1.0), ("tcp.retransmitted_total", 9.0)];
    let found = suspected(&looks(machine, &[], &[group]), &WatchSubject::Machine);
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(
        found,
        BTreeSet::from(["cpu-quota", "name-server", "retransmits"])
    );
}

#[test]
fn a_reused_process_number_is_another_process_and_a_counter_that_falls_counts_nothing() {
    let mut seen = looks(&[], &[], &[]);
    for (number, look) in seen.iter_mut().enumerate() {
        let (id, cpu) = if number < 5 {
            ("7@100", 5000.0)
        } else {
            ("7@900", 3.0)
        };
        let mut entity = Entity::new(Process, id, "x");
        entity.set("cpu_total", cpu);
        look.entities.push(entity);
        look.set("swap.in_total", if number < 5 { 9e9 } else { 1.0 });
    }
    assert_eq!(suspected(&seen, &WatchSubject::Machine), [""; 0]);
}

#[test]
fn hostile_names_are_escaped_and_never_stand_in_a_command() {
    let name = "x\u{1b}[2J\n$(reboot)\u{202e}";
    let mut seen = looks(&[("mem.available", 4e9)], &[], &[]);
    for look in &mut seen {
        let at = look.at_ms as f64 / 1000.0;
        let mut group = Entity::new(Group, format!("/{name}"), name);
        for (key, rate) in [
            ("cpu.periods_total", 10.0),
            ("cpu.throttled_total", 9.0),
            ("cpu.throttled_s_total", 0.8),
        ] {
            group.set(key, rate * at);
        }
        group.set("cpu.quota", 0.2);
        look.entities.push(group);
    }
    let answer = judge_window(
        &WatchWindow::new(&seen, &WatchSubject::Machine),
        &WatchSubject::Machine,
    )
    .unwrap();
    let suspect = answer.suspects.first().expect("a suspect");
    let all = format!(
        "{}{}{}",
        suspect.title,
        suspect.evidence.join(""),
        suspect.next.join("")
    );
    assert!(!all.contains(['\u{1b}', '\n', '\u{202e}']), "{all:?}");
    assert!(suspect.next.is_empty(), "{:?}", suspect.next);
}

//! Machines made of numbers: a healthy one, and what a case changes of it.

use assay_why::EntityKind::Process;
use assay_why::{Entity, EntityKind, MachineSnapshot, WatchSubject, WatchWindow, judge_window};

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
    ("tcp.to_one", 20.0),
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

pub(super) type Values = &'static [(&'static str, f64)];

/// Something beside the machine: kind, name, numbers and texts.
pub(super) type Part = (
    EntityKind,
    &'static str,
    Values,
    &'static [(&'static str, &'static str)],
);

/// Page, numbers of the machine that differ, texts of the machine, and parts.
pub(super) type Case = (
    &'static str,
    Values,
    &'static [(&'static str, &'static str)],
    &'static [Part],
);

pub(super) const ZFS: Values = &[
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

pub(super) const BUSY_DISK: Values = &[
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

pub(super) const READER: Part = (
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

pub(super) fn waiter(class: &'static str) -> Part {
    let numbers: Values = match class {
        "flush" => &[("wait.flush", 0.9), ("cpu_total", 0.1)],
        "dirty-limit" => &[("wait.dirty-limit", 0.9), ("cpu_total", 0.1)],
        "swap" => &[("wait.swap", 0.9)],
        "lock" => &[("wait.lock", 2.0)],
        "network-share" => &[("wait.network-share", 2.0)],
        "file-scanner" => &[("wait.file-scanner", 2.0)],
        "supervisor" => &[("wait.supervisor", 2.0)],
        "page-server" => &[("wait.page-server", 2.0)],
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

/// Looks of ten seconds at a machine that is healthy but for the case. A level whose name ends in `+` grows by its
/// number each second.
pub(super) fn looks(
    machine: Values,
    texts: &[(&str, &str)],
    parts: &[Part],
) -> Vec<MachineSnapshot> {
    let value = |key: &str, rate: f64, at: f64| match key.ends_with("_total") {
        true => 1e6 + rate * at,
        false => rate,
    };
    let look = |second: u32| {
        let at = f64::from(second);
        let mut look = MachineSnapshot {
            at_ms: u64::from(second) * 1000,
            ..MachineSnapshot::default()
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
                match key.strip_suffix('+') {
                    Some(level) => entity.set(level, 1.0 + rate * at),
                    None => entity.set(key, value(key, *rate, at)),
                }
            }
            entity.texts = texts_of(texts);
            look.entities.push(entity);
        }
        look
    };
    (0..=10).map(look).collect()
}

pub(super) fn suspected(looks: &[MachineSnapshot], thing: &WatchSubject) -> Vec<String> {
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

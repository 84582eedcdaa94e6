//! Numbers derived from rates and levels: fractions of the machine, of groups and of processes.

use super::asked_part::mark_asked;
use super::counted_syncs::add_counted_syncs;
use super::disk_numbers::{add_steadiness, complete_disks};
use super::guest_disks::complete_guest_disks;
use super::memory_growth::add_memory_left;
use super::stuck::add_owners;
use super::waiting::{add_consumers, add_waiting};
use super::{WatchWindow, WatchedEntity};
use crate::WatchSubject;
use crate::machine_snapshot::{EntityKind, Numbers};
use crate::watch_subject::is_below;
use assay_render::text::escape_line;

/// Adds all derived numbers to a window.
pub(super) fn complete(window: &mut WatchWindow, thing: &WatchSubject) {
    mark_asked(window, thing);
    complete_machine(window);
    complete_disks(window);
    complete_groups(window);
    complete_file_systems(window);
    complete_guest_disks(window, thing);
    add_counted_syncs(window);
    complete_processes(window);
    mark_groups_at_limit(window);
    complete_group_waits(window);
    add_memory_left(window);
    add_owners(window);
    add_waiting(window, thing);
    add_steadiness(window);
    let is_part = f64::from(u8::from(*thing != WatchSubject::Machine));
    set(&mut window.machine, "part", is_part);
    let seconds = window.seconds;
    set(&mut window.machine, "seconds", seconds);
    if let WatchSubject::Path {
        path,
        layers,
        hangs,
        ..
    } = thing
    {
        set(
            &mut window.machine,
            "path.hangs",
            f64::from(u8::from(*hangs)),
        );
        let texts = &mut window.machine.texts;
        texts.insert("path".to_owned(), path.clone());
        texts.insert("path.layers".to_owned(), layers.join(" on "));
    }
    add_consumers(window);
}

pub(super) fn set(entity: &mut WatchedEntity, key: &str, value: f64) {
    if value.is_finite() {
        entity.numbers.insert(key.to_owned(), value);
    }
}

fn complete_machine(window: &mut WatchWindow) {
    let machine = &mut window.machine;
    let cpus = machine.number("cpu.count").max(1.0);
    let all = |kinds: &[&str]| -> f64 {
        kinds
            .iter()
            .map(|kind| machine.number(&format!("cpu.{kind}")))
            .sum()
    };
    let used = all(&["user", "nice", "system", "irq", "softirq"]);
    let shares = [
        ("cpu.busy", used / cpus),
        ("cpu.nice_share", all(&["nice"]) / cpus),
        ("cpu.user_share", all(&["user", "nice"]) / cpus),
        ("cpu.system_share", all(&["system"]) / cpus),
        ("cpu.soft_share", all(&["irq", "softirq"]) / cpus),
        ("cpu.steal_share", all(&["steal"]) / cpus),
        ("cpu.iowait_share", all(&["iowait"]) / cpus),
        // assay itself runs while it looks.
        (
            "cpu.queue",
            (machine.number("cpu.running") - 1.0 - cpus).max(0.0),
        ),
    ];
    let percpu = |end: &str| -> Vec<f64> {
        let mine = machine.numbers.iter();
        let mine = mine.filter(|(key, _)| key.starts_with("percpu.") && key.ends_with(end));
        mine.map(|(_, value)| *value).collect()
    };
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let idle = percpu(".idle");
    let soft = percpu(".soft");
    let softest = soft.iter().position(|value| *value >= most(&soft));
    let softest_idle = softest.and_then(|cpu| idle.get(cpu)).copied();
    let interrupts = percpu(".interrupts");
    let sum: f64 = interrupts.iter().sum();
    let extra = [
        ("cpu.least_busy", 1.0 - most(&idle).min(1.0)),
        ("cpu.soft_most", most(&soft)),
        (
            "cpu.soft_most_busy",
            1.0 - softest_idle.unwrap_or(0.0).min(1.0),
        ),
        ("cpu.interrupts", sum),
        (
            "cpu.interrupts_most",
            if sum > 0.0 {
                most(&interrupts) / sum
            } else {
                0.0
            },
        ),
    ];
    for (key, value) in shares.into_iter().chain(extra) {
        set(machine, key, value);
    }
    machine
        .numbers
        .entry("mounts.sync".to_owned())
        .or_insert(0.0);
    // What the hypervisor takes cannot be used here either.
    let full = machine.number("cpu.busy") + machine.number("cpu.steal_share");
    set(machine, "cpu.full", full.min(1.0));
    machine.numbers.retain(|key, _| !key.starts_with("percpu."));
    let ratio = |part: &str, whole: &str| {
        let whole = machine
            .numbers
            .get(whole)
            .copied()
            .filter(|whole| *whole > 0.0)?;
        Some(machine.numbers.get(part)? / whole)
    };
    let ratios = [
        ("mem.available_share", ratio("mem.available", "mem.total")),
        ("files.share", ratio("files.open.max", "files.max")),
        (
            "conntrack.share",
            ratio("conntrack.count.max", "conntrack.max.last"),
        ),
        (
            "tcp.retransmitted_share",
            ratio("tcp.retransmitted", "tcp.sent"),
        ),
        (
            "tcp.ports_used",
            [
                ratio("tcp.time_wait", "tcp.ports"),
                ratio("tcp.to_one", "tcp.ports"),
            ]
            .into_iter()
            .flatten()
            .reduce(f64::max),
        ),
        ("zfs.arc_share", ratio("zfs.arc", "zfs.arc_max")),
        (
            "mem.dirty_share",
            ratio("mem.dirty_pages", "mem.dirty_threshold"),
        ),
    ];
    for (key, value) in ratios {
        if let Some(value) = value {
            set(machine, key, value);
        }
    }
}

fn complete_groups(window: &mut WatchWindow) {
    for group in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Group)
    {
        let periods = group.number("cpu.periods");
        if periods > 0.0 {
            set(
                group,
                "cpu.throttled_share",
                group.number("cpu.throttled") / periods,
            );
        }
        for (limit, used, key) in [
            ("mem.max.last", "mem.current.max", "mem.share"),
            ("pids.max.last", "pids.current.max", "pids.share"),
            ("cpu.quota", "cpu.usage", "cpu.quota_used"),
        ] {
            let most = group.numbers.get(limit).copied().filter(|most| *most > 0.0);
            if let (Some(most), Some(used)) = (most, group.numbers.get(used).copied()) {
                set(group, key, used / most);
            }
        }
        let limited = ["read", "write", "read_ops", "write_ops"].map(|kind| {
            let limit = group.number(&format!("io.{kind}_limit"));
            if limit > 0.0 {
                group.number(&format!("io.{kind}")) / limit
            } else {
                0.0
            }
        });
        if group.texts.contains_key("io.max") {
            set(
                group,
                "io.limit_used",
                limited.into_iter().fold(0.0, f64::max),
            );
        }
        if let (Some(high), Some(used)) = (
            group.numbers.get("mem.high"),
            group.numbers.get("mem.current.max"),
        ) {
            set(group, "mem.high_share", used / high.max(1.0));
        }
    }
}

fn complete_file_systems(window: &mut WatchWindow) {
    let all = window.entities.iter_mut();
    for entity in all.filter(|entity| entity.kind == EntityKind::FileSystem) {
        let size = entity.number("size").max(1.0);
        set(
            entity,
            "available_share",
            entity.number("available.min") / size,
        );
        if entity.numbers.contains_key("inodes.last") {
            let share =
                entity.number("inodes.available.min") / entity.number("inodes.last").max(1.0);
            set(entity, "inodes_share", share);
        }
    }
}

fn complete_processes(window: &mut WatchWindow) {
    let cpus = window.machine.number("cpu.count").max(1.0);
    let used = (window.machine.number("cpu.busy") * cpus).max(0.01);
    let disk_bytes: f64 = window
        .of_kind(EntityKind::Process)
        .map(|process| process.number("io.read") + process.number("io.write"))
        .sum();
    let mut hogs = 0.0;
    for process in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Process)
    {
        let cpu = process.number("cpu");
        // The kernel adds time in the run queue only when a task runs at last: one that never does is seen there.
        let seen = process.number("ready") - cpu;
        if seen >= 0.3 && seen > process.number("queue") {
            set(process, "queue", seen);
        }
        let system = process.number("system");
        let system_part = if cpu > 0.0 {
            (system / cpu).min(1.0)
        } else {
            0.0
        };
        set(process, "system_part", system_part);
        set(process, "cpu_share", (cpu / used).min(1.0));
        set(process, "cpu_of_all", cpu / cpus);
        if cpu / cpus >= 0.25 {
            hogs += (cpu / used).min(1.0);
        }
        let allowed = process.numbers.get("cpus_allowed").copied();
        if allowed.is_some_and(|allowed| allowed < cpus) {
            set(process, "pinned_queue", process.number("queue"));
        }
        let io = process.number("io.read") + process.number("io.write");
        set(process, "io", io);
        set(
            process,
            "io_share",
            if disk_bytes > 0.0 {
                io / disk_bytes
            } else {
                0.0
            },
        );
        let limit = process.numbers.get("files.limit.last").copied();
        if let (Some(limit), Some(open)) = (limit, process.numbers.get("files.open.max").copied()) {
            set(process, "files.share", open / limit.max(1.0));
        }
        let writes = process.number("io.writes").max(1.0);
        set(
            process,
            "io.write_size",
            process.number("io.write") / writes,
        );
        let waits: f64 = process
            .numbers
            .iter()
            .filter(|(key, _)| is_wait(key))
            .map(|(_, value)| *value)
            .sum();
        set(process, "waits", waits);
        for key in ["low_priority", "asleep.futex", "children_cpu"] {
            process.numbers.entry(key.to_owned()).or_insert(0.0);
        }
        let threads = process.number("asleep.futex").max(1.0);
        set(
            process,
            "switches_each",
            process.number("switches") / threads,
        );
        let is_asked = process.is_asked && process.number("storage_only") == 0.0;
        set(process, "asked", f64::from(u8::from(is_asked)));
        for class in [
            "disk",
            "flush",
            "swap",
            "network-share",
            "file-scanner",
            "supervisor",
            "page-server",
            "lock",
            "frozen",
            "slow-reader",
            "local-socket",
            "file-lock",
            "user-lock",
            "semaphore",
            "fifo-reader",
            "database-lock",
        ] {
            process
                .numbers
                .entry(format!("wait.{class}"))
                .or_insert(0.0);
        }
        let label = label_process(process);
        process.texts.insert("label".to_owned(), label);
        let kind = if process.texts.contains_key("guest") {
            "guest"
        } else {
            "process"
        };
        process.texts.insert("what".to_owned(), kind.to_owned());
    }
    set(&mut window.machine, "cpu.hogs_share", hogs.min(1.0));
}

/// Marks the processes of a group that is at its memory limit: they read again what the group had to drop.
fn mark_groups_at_limit(window: &mut WatchWindow) {
    let is_at_limit = |group: &&WatchedEntity| {
        group.number("mem.reached_max") >= 1.0 && group.number("mem.share") >= 0.9
    };
    let groups = window.of_kind(EntityKind::Group).filter(is_at_limit);
    let groups: Vec<String> = groups.map(|group| group.id.clone()).collect();
    let all = window.entities.iter_mut();
    for process in all.filter(|entity| entity.kind == EntityKind::Process) {
        let own = process.texts.get("groups").map_or("", String::as_str);
        let is_marked = groups
            .iter()
            .any(|group| own.lines().any(|path| is_below(path, group)));
        set(process, "group_at_limit", f64::from(u8::from(is_marked)));
    }
}

/// Adds to each group the waiting of the processes in it and in its subgroups.
fn complete_group_waits(window: &mut WatchWindow) {
    let processes: Vec<(String, Numbers)> = window
        .of_kind(EntityKind::Process)
        .filter_map(|process| {
            Some((
                process.texts.get("groups")?.clone(),
                process.numbers.clone(),
            ))
        })
        .collect();
    for group in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Group)
    {
        let id = group.id.clone();
        for (_, numbers) in processes
            .iter()
            .filter(|(path, _)| path.lines().any(|path| is_below(path, &id)))
        {
            for (key, value) in numbers.iter().filter(|(key, _)| is_wait(key)) {
                *group
                    .numbers
                    .entry(key.replace("wait.", "waits."))
                    .or_default() += value;
            }
        }
        for class in [
            "disk",
            "flush",
            "io-limit",
            "reclaim",
            "memory-limit",
            "swap",
        ] {
            group.numbers.entry(format!("waits.{class}")).or_insert(0.0);
        }
    }
}

/// Returns whether a key is a mean waiting such as `wait.disk`, not one of its extremes (`wait.disk.max`).
pub(super) fn is_wait(key: &str) -> bool {
    key.strip_prefix("wait.")
        .is_some_and(|class| !class.contains('.'))
}

/// Formats a process: "guest db (qemu-system-x86, process 12)" or "mysqld (process 12)"; escaped.
fn label_process(process: &WatchedEntity) -> String {
    let pid = process.texts.get("pid").map_or("?", String::as_str);
    match process.texts.get("guest") {
        Some(guest) => format!(
            "guest {} ({}, process {pid})",
            escape_line(guest),
            escape_line(&process.name)
        ),
        None => format!("{} (process {pid})", escape_line(&process.name)),
    }
}

//! Numbers that follow from rates and levels: shares, mean waits of disks, siblings, waiting by class, curves.

use super::{Curve, WatchWindow, WatchedEntity};
use crate::Thing;
use crate::look::{EntityKind, Look, Numbers};
use crate::thing::is_below;
use assay_render::text::escape_line;
use std::collections::BTreeMap;

/// Adds what follows from the numbers of a window.
pub(super) fn complete(window: &mut WatchWindow, thing: &Thing) {
    mark_asked(window, thing);
    complete_machine(window);
    complete_disks(window);
    complete_groups(window);
    complete_processes(window);
    complete_group_waits(window);
    add_waiting(window, thing);
    add_steadiness(window);
    let is_part = f64::from(u8::from(*thing != Thing::Machine));
    set(&mut window.machine, "part", is_part);
    add_consumers(window);
}

fn mark_asked(window: &mut WatchWindow, thing: &Thing) {
    let mut groups = Vec::new();
    for entity in &mut window.entities {
        if entity.kind != EntityKind::Process {
            continue;
        }
        let text = |key: &str| entity.texts.get(key).map_or("", String::as_str);
        let ancestors: Vec<u32> = text("ancestors")
            .split(' ')
            .filter_map(|word| word.parse().ok())
            .collect();
        entity.is_asked = match thing {
            Thing::Machine | Thing::Path { .. } => true,
            Thing::Process(pid) => ancestors.contains(pid),
            Thing::Group(path) => text("groups").lines().any(|group| is_below(group, path)),
            Thing::Named(name) => entity.name == *name || text("guest") == name,
        };
        if entity.is_asked {
            groups.extend(text("groups").lines().map(str::to_owned));
        }
    }
    if let Thing::Group(path) = thing {
        groups.push(path.clone());
    }
    groups.sort();
    groups.dedup();
    for entity in &mut window.entities {
        if entity.kind == EntityKind::Group {
            entity.is_asked =
                *thing == Thing::Machine || groups.iter().any(|group| is_below(group, &entity.id));
        }
    }
    window.groups = groups;
}

fn set(entity: &mut WatchedEntity, key: &str, value: f64) {
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
    let soft = percpu(".soft");
    let interrupts = percpu(".interrupts");
    let sum: f64 = interrupts.iter().sum();
    let extra = [
        ("cpu.soft_most", most(&soft)),
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
        ("tcp.ports_used", ratio("tcp.time_wait", "tcp.ports")),
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

fn complete_disks(window: &mut WatchWindow) {
    let mut waits: BTreeMap<String, f64> = BTreeMap::new();
    for disk in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let mut wait_all = 0.0;
        for kind in ["read", "write", "discard", "flush"] {
            let (ops, wait) = (
                disk.number(&format!("{kind}.ops")),
                disk.number(&format!("{kind}.wait")),
            );
            wait_all += wait;
            disk.numbers.entry(format!("{kind}.ops")).or_insert(0.0);
            set(
                disk,
                &format!("{kind}.await"),
                if ops > 0.0 { wait / ops } else { 0.0 },
            );
        }
        let ops = disk.number("read.ops") + disk.number("write.ops");
        let data_wait = disk.number("read.wait") + disk.number("write.wait");
        set(disk, "ops", ops);
        set(disk, "await", if ops > 0.0 { data_wait / ops } else { 0.0 });
        set(
            disk,
            "bytes",
            disk.number("read.bytes") + disk.number("write.bytes"),
        );
        set(disk, "busy", disk.number("busy").min(1.0));
        set(disk, "wait_all", wait_all);
        waits.insert(disk.name.clone(), wait_all);
    }
    let total: f64 = window
        .of_kind(EntityKind::Disk)
        .map(|disk| own_wait(disk, &waits))
        .sum();
    let disks: Vec<WatchedEntity> = window.of_kind(EntityKind::Disk).cloned().collect();
    for disk in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let own = own_wait(disk, &waits);
        set(disk, "own_wait", own);
        set(
            disk,
            "wait_share",
            if total > 0.0 { own / total } else { 0.0 },
        );
        let is_sibling = |other: &&WatchedEntity| {
            let same = |key: &str| other.texts.get(key) == disk.texts.get(key);
            other.name != disk.name
                && same("rotational")
                && same("model")
                && other.number("ops") >= 1.0
                && !other.texts.contains_key("lower")
                && has_device_like(&other.name, &disk.name)
        };
        let mut siblings: Vec<f64> = disks
            .iter()
            .filter(is_sibling)
            .map(|other| other.number("await"))
            .collect();
        siblings.sort_by(f64::total_cmp);
        set(disk, "siblings", siblings.len() as f64);
        if let Some(median) = siblings.get(siblings.len() / 2) {
            set(disk, "siblings.await", *median);
        }
    }
    set(&mut window.machine, "disk.wait", total);
    let busiest = disks
        .iter()
        .max_by(|a, b| a.number("own_wait").total_cmp(&b.number("own_wait")));
    if let Some(disk) = busiest.filter(|disk| disk.number("ops") + disk.number("flush.ops") > 0.0) {
        let worst = disks
            .iter()
            .map(|disk| disk.number("flush.await"))
            .fold(0.0, f64::max);
        set(&mut window.machine, "disk.flush_await", worst);
        let busy = disks
            .iter()
            .map(|disk| disk.number("busy"))
            .fold(0.0, f64::max);
        set(&mut window.machine, "disk.busy", busy);
        let name = describe_disk(disk);
        window.machine.texts.insert("busiest_disk".to_owned(), name);
    }
}

/// Disks whose kernel names differ in the last letters or digits only: `sda` and `sdb`, `loop0` and `loop3`.
fn has_device_like(a: &str, b: &str) -> bool {
    let stem = |name: &str| -> String {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
        match name.starts_with("sd") || name.starts_with("vd") || name.starts_with("xvd") {
            true => name.chars().take(2).collect(),
            false => name.to_owned(),
        }
    };
    stem(a) == stem(b)
}

/// Time that requests spent in this layer and not in those below.
fn own_wait(disk: &WatchedEntity, waits: &BTreeMap<String, f64>) -> f64 {
    let lower = disk
        .texts
        .get("lower")
        .map_or("", String::as_str)
        .split(',');
    let below: f64 = lower.filter_map(|name| waits.get(name)).sum();
    (disk.number("wait_all") - below).max(0.0)
}

fn describe_disk(disk: &WatchedEntity) -> String {
    match disk.texts.get("dm") {
        Some(name) => format!("{} ({})", escape_line(&disk.name), escape_line(name)),
        None => escape_line(&disk.name),
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
        set(process, "cpu_share", (cpu / used).min(1.0));
        set(process, "cpu_of_all", cpu / cpus);
        if cpu / cpus >= 0.25 {
            hogs += (cpu / used).min(1.0);
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
        let waits: f64 = process
            .numbers
            .iter()
            .filter(|(key, _)| is_wait(key))
            .map(|(_, value)| *value)
            .sum();
        set(process, "waits", waits);
        set(process, "asked", f64::from(u8::from(process.is_asked)));
        for class in ["disk", "flush", "swap", "network-share", "lock", "frozen"] {
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

/// Adds to each group what the processes in it and below it wait for.
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

/// Adds how steady the requests of each disk are: the spread of the rates of all intervals over their mean.
fn add_steadiness(window: &mut WatchWindow) {
    for disk in window
        .entities
        .iter_mut()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let Some(curve) = window.curves.remove(&format!("requests: {}", disk.name)) else {
            continue;
        };
        let count = curve.len() as f64;
        let mean = curve.iter().map(|(_, value)| *value).sum::<f64>() / count.max(1.0);
        if count >= 5.0 && mean > 0.0 {
            let squares: f64 = curve.iter().map(|(_, value)| (value - mean).powi(2)).sum();
            set(disk, "steadiness", (squares / count).sqrt() / mean);
        }
    }
}

/// A key such as `wait.disk`, without the extremes of it.
fn is_wait(key: &str) -> bool {
    key.strip_prefix("wait.")
        .is_some_and(|class| !class.contains('.'))
}

/// "guest db (qemu-system-x86, process 12)" or "mysqld (process 12)"; escaped.
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

fn add_waiting(window: &mut WatchWindow, thing: &Thing) {
    let mut waiting: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |class: &str, amount: f64| {
        if amount > 0.0 {
            *waiting.entry(class.to_owned()).or_default() += amount;
        }
    };
    let is_waiting = |process: &&WatchedEntity| {
        // Threads of the kernel wait for others; nobody waits for a stopped task.
        process.is_asked && (*thing != Thing::Machine || !process.numbers.contains_key("kernel"))
    };
    for process in window.of_kind(EntityKind::Process).filter(is_waiting) {
        for (key, value) in process.numbers.iter().filter(|(key, _)| is_wait(key)) {
            add(&key["wait.".len()..], *value);
        }
        add("cpu-queue", process.number("queue"));
    }
    for group in window
        .of_kind(EntityKind::Group)
        .filter(|group| group.is_asked)
    {
        add("cpu-limit", group.number("cpu.throttled_s"));
    }
    let machine = &window.machine;
    if *thing == Thing::Machine {
        add("name-server", machine.number("dns.open"));
        add("connection", machine.number("tcp.connecting"));
        let queues: f64 = window
            .of_kind(EntityKind::Listener)
            .map(|listener| listener.number("queue"))
            .sum();
        add("accept-queue", queues);
    }
    // Time in the run queue holds the time in which a quota kept the task there.
    let limited = waiting.get("cpu-limit").copied().unwrap_or(0.0);
    if let Some(queue) = waiting.get_mut("cpu-queue") {
        *queue = (*queue - limited).max(0.0);
    }
    if *thing == Thing::Machine {
        // Tasks that lived shorter than the time between two looks are seen in the run queue only.
        let level = machine.number("cpu.queue");
        let queue = waiting.entry("cpu-queue".to_owned()).or_default();
        *queue = queue.max(level);
    }
    waiting.retain(|_, amount| *amount >= 0.001);
    for (class, amount) in &waiting {
        window
            .machine
            .numbers
            .insert(format!("waiting.{class}"), *amount);
    }
    let total: f64 = waiting.values().sum();
    set(&mut window.machine, "waiting", total);
    for class in [
        "disk",
        "flush",
        "swap",
        "reclaim",
        "memory-limit",
        "io-limit",
        "dirty-limit",
        "network-share",
        "zfs",
        "raid",
        "journal",
        "lock",
        "frozen",
        "file-system-frozen",
        "other",
        "cpu-queue",
        "cpu-limit",
        "name-server",
        "connection",
        "accept-queue",
    ] {
        window
            .machine
            .numbers
            .entry(format!("waiting.{class}"))
            .or_insert(0.0);
    }
    window.waiting = waiting;
}

/// Names those that use most of each resource, in texts of the machine.
fn add_consumers(window: &mut WatchWindow) {
    let percent = |value: f64| format!("{:.0} % of a CPU", value * 100.0);
    let bytes = |value: f64| format!("{:.1} MB/s", value / 1e6);
    let tasks = |value: f64| format!("{:.0} % of the time", value * 100.0);
    let lists: [(&str, &str, f64, &dyn Fn(f64) -> String); 8] = [
        ("top.cpu", "cpu", 0.05, &percent),
        ("top.io", "io", 1e4, &bytes),
        ("top.read", "io.read", 1e4, &bytes),
        ("top.write", "io.write", 1e4, &bytes),
        ("top.flush", "wait.flush", 0.01, &tasks),
        ("top.disk", "wait.disk", 0.01, &tasks),
        ("top.queue", "queue", 0.02, &tasks),
        ("top.memory", "memory", 64e6, &|value| {
            format!("{:.0} MB", value / 1e6)
        }),
    ];
    for (name, key, least, format) in lists {
        let mut all: Vec<(&WatchedEntity, f64)> = window
            .of_kind(EntityKind::Process)
            .map(|process| (process, process.number(key)))
            .filter(|(_, value)| *value >= least)
            .collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        let parts: Vec<String> = all
            .iter()
            .take(3)
            .map(|(process, value)| {
                let label = process.texts.get("label").map_or("?", String::as_str);
                format!("{label} {}", format(*value))
            })
            .collect();
        let text = if parts.is_empty() {
            "no single process".to_owned()
        } else {
            parts.join(", ")
        };
        window.machine.texts.insert(name.to_owned(), text);
    }
}

/// Adds the interval between two looks to the curves.
pub(super) fn add_points(
    curves: &mut BTreeMap<String, Curve>,
    before: &Look,
    look: &Look,
    first: u64,
) {
    let seconds = look.at_ms.saturating_sub(before.at_ms) as f64 / 1000.0;
    if seconds <= 0.0 {
        return;
    }
    let at = look.at_ms.saturating_sub(first) as f64 / 1000.0;
    let rate = |now: &Numbers, then: &Numbers, key: &str| -> Option<f64> {
        Some(((now.get(key)? - then.get(key)?) / seconds).max(0.0))
    };
    let machine = |key: &str| rate(&look.machine, &before.machine, key);
    let cpus = look
        .machine
        .get("cpu.count")
        .copied()
        .unwrap_or(1.0)
        .max(1.0);
    let mut add = |name: &str, value: Option<f64>| {
        if let Some(value) = value {
            curves.entry(name.to_owned()).or_default().push((at, value));
        }
    };
    let busy = ["user", "nice", "system", "irq", "softirq"]
        .map(|kind| machine(&format!("cpu.{kind}_total")).unwrap_or(0.0));
    add("cpu: busy", Some(busy.iter().sum::<f64>() / cpus));
    add(
        "cpu: steal",
        machine("cpu.steal_total").map(|steal| steal / cpus),
    );
    for name in ["cpu", "io", "memory"] {
        add(
            &format!("pressure: {name}"),
            machine(&format!("psi.{name}.some_total")),
        );
    }
    for disk in look
        .entities
        .iter()
        .filter(|entity| entity.kind == EntityKind::Disk)
    {
        let earlier = before
            .entities
            .iter()
            .find(|entity| entity.kind == disk.kind && entity.id == disk.id);
        if let Some(earlier) = earlier {
            add(
                &format!("disk: {}", disk.name),
                rate(&disk.numbers, &earlier.numbers, "busy_total"),
            );
            let requests = ["read", "write"].map(|kind| {
                rate(
                    &disk.numbers,
                    &earlier.numbers,
                    &format!("{kind}.ops_total"),
                )
                .unwrap_or(0.0)
            });
            add(
                &format!("requests: {}", disk.name),
                Some(requests.iter().sum()),
            );
        }
    }
    let mut classes: BTreeMap<&str, f64> = BTreeMap::new();
    for entity in &look.entities {
        for (key, value) in entity
            .numbers
            .iter()
            .filter(|(key, _)| key.starts_with("wait."))
        {
            *classes.entry(&key["wait.".len()..]).or_default() += value;
        }
    }
    for (class, value) in classes {
        add(&format!("waiting: {class}"), Some(value));
    }
}

//! Waiting by class, and the largest consumers of each resource.

use super::derived::{is_wait, set};
use super::{WatchWindow, WatchedEntity};
use crate::WatchSubject;
use crate::machine_snapshot::EntityKind;
use assay_render::text::escape_line;
use std::collections::BTreeMap;

/// Classes of waiting that concern storage.
const STORAGE: [&str; 10] = [
    "disk",
    "flush",
    "journal",
    "dirty-limit",
    "io-limit",
    "zfs",
    "raid",
    "network-share",
    "file-system-frozen",
    "file-lock",
];

pub(super) fn add_waiting(window: &mut WatchWindow, thing: &WatchSubject) {
    let mut waiting: BTreeMap<String, f64> = BTreeMap::new();
    let mut add = |class: &str, amount: f64| {
        if amount > 0.0 {
            *waiting.entry(class.to_owned()).or_default() += amount;
        }
    };
    let is_waiting = |process: &&WatchedEntity| {
        // Threads of the kernel wait for others; a task of low priority has asked to wait.
        let is = |key: &str| process.number(key) >= 0.5;
        let is_broad = matches!(thing, WatchSubject::Machine | WatchSubject::Path { .. });
        process.is_asked && !(is_broad && (is("kernel") || is("low_priority")))
    };
    let is_path = matches!(thing, WatchSubject::Path { .. });
    for process in window.of_kind(EntityKind::Process).filter(is_waiting) {
        // Those that do not use the path may wait for its disks all the same.
        let is_whole = !is_path || process.number("uses_path") > 0.0;
        for (key, value) in process.numbers.iter().filter(|(key, _)| is_wait(key)) {
            let class = &key["wait.".len()..];
            // Idle workers wait for a semaphore as well.
            if class == "semaphore" && *thing == WatchSubject::Machine {
                continue;
            }
            if is_whole || STORAGE.contains(&class) {
                add(class, *value);
            }
        }
        if is_whole {
            add("cpu-queue", process.number("queue"));
        }
    }
    for group in window
        .of_kind(EntityKind::Group)
        .filter(|group| group.is_asked)
    {
        add("cpu-limit", group.number("cpu.throttled_s"));
    }
    let machine = &window.machine;
    if *thing == WatchSubject::Machine {
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
    if *thing == WatchSubject::Machine {
        // Tasks that lived shorter than the time between two looks are seen in the run queue only.
        let low: f64 = window
            .of_kind(EntityKind::Process)
            .filter(|process| process.number("low_priority") >= 0.5)
            .map(|process| process.number("ready").max(process.number("cpu")))
            .sum();
        let level =
            (machine.number("cpu.running") - low - 1.0 - machine.number("cpu.count")).max(0.0);
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
        "file-scanner",
        "supervisor",
        "page-server",
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
        "slow-reader",
        "local-socket",
        "file-lock",
        "user-lock",
        "database-lock",
        "fifo-reader",
        "semaphore",
    ] {
        window
            .machine
            .numbers
            .entry(format!("waiting.{class}"))
            .or_insert(0.0);
    }
    window.waiting = waiting;
    let pinned: f64 = window
        .of_kind(EntityKind::Process)
        .filter(is_waiting)
        .filter(|process| {
            let allowed = process.numbers.get("cpus_allowed").copied();
            allowed.is_some_and(|allowed| allowed < window.machine.number("cpu.count"))
        })
        .map(|process| process.number("queue"))
        .sum();
    set(&mut window.machine, "cpu.pinned_queue", pinned);
    let most_flush = window
        .of_kind(EntityKind::Process)
        .filter(is_waiting)
        .map(|process| process.number("wait.flush"))
        .fold(0.0, f64::max);
    let flush = window.machine.number("waiting.flush").max(0.001);
    set(&mut window.machine, "flush.most_share", most_flush / flush);
    let used = window.machine.number("cpu.busy") * window.machine.number("cpu.count");
    let queue = window.machine.number("waiting.cpu-queue");
    set(
        &mut window.machine,
        "cpu.queue_ratio",
        queue / used.max(0.1),
    );
    let part_cpu: f64 = window
        .of_kind(EntityKind::Process)
        .filter(|process| process.number("asked") >= 1.0)
        .map(|process| process.number("cpu"))
        .sum();
    // Of a small part, a wait counts that is small on the machine as a whole and long beside its own work.
    let counts = match thing {
        WatchSubject::Machine => queue >= 0.3 && queue >= 0.2 * used,
        _ => queue >= 0.03 && queue >= 0.3 * part_cpu,
    };
    set(
        &mut window.machine,
        "cpu.queue_counts",
        f64::from(u8::from(counts)),
    );
    // Of a part that competes for the CPUs, syncs count beside what it does when it gets one.
    let own = part_cpu + window.machine.number("waiting") - queue;
    let syncs = window.machine.number("waiting.flush");
    let flush_counts = syncs >= 0.3
        || (*thing != WatchSubject::Machine
            && syncs >= 0.02
            && syncs >= 0.25 * own
            && own + queue >= 0.6);
    set(
        &mut window.machine,
        "flush.counts",
        f64::from(u8::from(flush_counts)),
    );
    let least = match thing {
        WatchSubject::Machine => 0.1,
        _ => 0.02,
    };
    set(&mut window.machine, "storage_least", least);
}

/// Names the database sessions that are idle in a transaction because their client sends nothing.
fn name_idle_transactions(window: &WatchWindow) -> String {
    let titles: Vec<String> = window
        .of_kind(EntityKind::Process)
        .filter(|process| process.number("idle_in_transaction") > 0.0)
        .filter_map(|process| {
            let title = escape_line(process.texts.get("title")?);
            Some(format!("{title} (process {})", process.texts.get("pid")?))
        })
        .take(3)
        .collect();
    match titles.is_empty() {
        true => "none was seen".to_owned(),
        false => titles.join(", "),
    }
}

/// Names what the lock of the kernel protects for which most tasks wait.
fn name_most_awaited_lock(window: &WatchWindow) -> String {
    let known = window
        .of_kind(EntityKind::Process)
        .filter_map(|process| Some((process.number("wait.lock"), process.texts.get("lock_of")?)));
    let most = known.max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or_else(|| "something unknown".to_owned(), |(_, text)| text.clone())
}

/// Parameters of a text about the largest consumers: name of the text, number by which processes are ranked, minimum of
/// the number, and its format.
type ConsumerList<'a> = (&'a str, &'a str, f64, &'a dyn Fn(f64) -> String);

/// Names the largest consumers of each resource, in texts of the machine.
pub(super) fn add_consumers(window: &mut WatchWindow) {
    let idle = name_idle_transactions(window);
    let lock = name_most_awaited_lock(window);
    let texts = &mut window.machine.texts;
    texts.insert("idle_transactions".to_owned(), idle);
    texts.insert("lock_of".to_owned(), lock);
    let percent = |value: f64| format!("{:.0} % of a CPU", value * 100.0);
    let bytes = |value: f64| format!("{:.1} MB/s", value / 1e6);
    let tasks = |value: f64| format!("{:.0} % of the time", value * 100.0);
    let lists: [ConsumerList<'_>; 16] = [
        ("top.cpu", "cpu", 0.05, &percent),
        ("top.io", "io", 1e4, &bytes),
        ("top.read", "io.read", 1e4, &bytes),
        ("top.write", "io.write", 1e4, &bytes),
        ("top.flush", "wait.flush", 0.01, &tasks),
        ("top.disk", "wait.disk", 0.01, &tasks),
        ("top.queue", "queue", 0.02, &tasks),
        ("top.forks", "children_cpu", 0.05, &percent),
        ("top.pinned", "pinned_queue", 0.05, &tasks),
        ("top.network-share", "wait.network-share", 0.01, &tasks),
        ("top.file-scanner", "wait.file-scanner", 0.01, &tasks),
        ("top.supervisor", "wait.supervisor", 0.01, &tasks),
        ("top.page-server", "wait.page-server", 0.01, &tasks),
        ("top.lock", "wait.lock", 0.01, &tasks),
        ("top.journal", "wait.journal", 0.01, &tasks),
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

//! Which of several suspects comes first, and which stays quiet beside another.

use super::made_machine::{BUSY_DISK, Part, READER, Values, looks, suspected};
use assay_why::EntityKind::{Connection, Disk, Listener, Process};
use assay_why::WatchSubject;

const HANGING: Part = (
    Listener,
    "port 80",
    &[("queue", 1.0)],
    &[("owner_pid", "5")],
);
const UNREAD: Part = (
    Connection,
    "10.0.0.1:22 to 10.0.0.2:9",
    &[("wait.peer-closed", 1.0), ("unsent", 9e4)],
    &[("owner_pid", "5"), ("remote", "10.0.0.2:9")],
);

fn found_on_machine(machine: Values, parts: &[Part]) -> Vec<String> {
    suspected(&looks(machine, &[], parts), &WatchSubject::Machine)
}

#[test]
fn a_single_connection_that_no_server_accepts_names_its_port() {
    let still: Values = &[("tcp.accepted_total", 0.0)];
    assert_eq!(found_on_machine(still, &[HANGING]), ["accept-queue"]);
    let busy: Values = &[("tcp.accepted_total", 500.0)];
    assert_eq!(found_on_machine(busy, &[HANGING]), [""; 0]);
}

#[test]
fn a_server_that_accepts_nothing_is_named_beside_one_that_accepts_much() {
    let busy: Values = &[("tcp.accepted_total", 500.0)];
    let owner = |numbers| -> Part { (Process, "server", numbers, &[("pid", "5")]) };
    let idle = owner(&[("cpu_total", 0.0), ("queue_total", 0.0)]);
    assert_eq!(found_on_machine(busy, &[HANGING, idle]), ["accept-queue"]);
    let working = owner(&[("cpu_total", 0.4), ("queue_total", 0.0)]);
    assert_eq!(found_on_machine(busy, &[HANGING, working]), [""; 0]);
}

#[test]
fn a_program_that_reads_again_what_its_group_dropped_is_not_to_blame() {
    let limit: Values = &[
        ("mem.reached_max_total", 200.0),
        ("mem.max", 5e7),
        ("mem.current", 4.9e7),
    ];
    let disk: Part = (Disk, "sda", BUSY_DISK, &[]);
    let place = |found: &[String], page: &str| found.iter().position(|id| id == page);
    let group: Part = (assay_why::EntityKind::Group, "/jobs/backup", limit, &[]);
    let found = found_on_machine(&[], &[READER, disk, group]);
    let hog = place(&found, "io-hog");
    assert!(
        place(&found, "memory-limit") < hog || hog.is_none(),
        "{found:?}"
    );
    let other: Part = (assay_why::EntityKind::Group, "/jobs/other", limit, &[]);
    let found = found_on_machine(&[], &[READER, disk, other]);
    assert!(
        place(&found, "io-hog") < place(&found, "memory-limit"),
        "{found:?}"
    );
}

#[test]
fn locks_whose_holders_wait_for_a_cpu_are_no_cause() {
    let waiter: Part = (
        Process,
        "worker",
        &[("wait.lock", 0.8), ("cpu_total", 0.1), ("queue_total", 0.1)],
        &[("pid", "5")],
    );
    let queue = |running: f64| {
        let machine: Vec<(&'static str, f64)> = vec![("cpu.running", running)];
        let found = suspected(
            &looks(Vec::leak(machine), &[], &[waiter]),
            &WatchSubject::Machine,
        );
        found.iter().any(|id| id == "lock-contention")
    };
    assert!(queue(2.0) && !queue(30.0));
}

#[test]
fn those_who_wait_for_one_holder_are_one_suspect() {
    let waiter = |name, pid: &'static [(&str, &str)]| -> Part {
        (Process, name, &[("wait.file-lock", 1.0)], pid)
    };
    let parts = [
        waiter("a", &[("pid", "1"), ("peer_pid", "9"), ("peer", "x")]),
        waiter("b", &[("pid", "2"), ("peer_pid", "9"), ("peer", "x")]),
        waiter("c", &[("pid", "3"), ("peer_pid", "8"), ("peer", "y")]),
    ];
    assert_eq!(found_on_machine(&[], &parts), ["file-lock", "file-lock"]);
}

#[test]
fn what_fills_once_or_rises_and_falls_is_no_leak() {
    let seen = |memory: &dyn Fn(usize) -> f64| {
        let group: Part = (
            assay_why::EntityKind::Group,
            "/web",
            &[("mem.current", 2e8), ("mem.max", 6e8)],
            &[],
        );
        let process: Part = (Process, "x", &[], &[("pid", "6"), ("groups", "/web")]);
        let mut looks = looks(&[], &[], &[group, process]);
        for (number, look) in looks.iter_mut().enumerate() {
            look.entities[1].set("memory", memory(number));
        }
        suspected(&looks, &WatchSubject::Machine)
    };
    assert_eq!(seen(&|number| number as f64 * 2e7), ["memory-grows"]);
    assert_eq!(seen(&|number| (number % 4) as f64 * 5e7), [""; 0]);
    assert_eq!(seen(&|number| number.min(2) as f64 * 1e8), [""; 0]);
}

#[test]
fn a_mount_that_syncs_comes_before_the_program_that_writes_to_it() {
    let storage: Part = (
        assay_why::EntityKind::FileSystem,
        "/srv",
        &[("sync", 1.0), ("size", 1e9), ("available", 5e8)],
        &[("type", "ext4")],
    );
    let writer: Part = (Process, "cp", &[("wait.flush", 0.9)], &[("pid", "9")]);
    let found = found_on_machine(&[("mounts.sync", 1.0)], &[storage, writer]);
    assert_eq!(found, ["mount-sync", "fsync-storm"]);
    assert_eq!(found_on_machine(&[], &[writer]), ["fsync-storm"]);
}

#[test]
fn sockets_of_others_accuse_nobody_who_waits_for_no_data() {
    let part = |numbers, texts| -> Part { (Process, "job", numbers, texts) };
    let numbers: Values = &[("cpu_total", 0.1), ("queue_total", 0.0)];
    let still: Values = &[("tcp.accepted_total", 0.0)];
    let ask = |job: Part, pid| {
        let seen = looks(still, &[], &[HANGING, UNREAD, job]);
        suspected(&seen, &WatchSubject::Process(pid))
    };
    let other = part(numbers, &[("pid", "7"), ("ancestors", "7 1")]);
    assert_eq!(ask(other, 7), [""; 0]);
    let owner = part(numbers, &[("pid", "5"), ("ancestors", "5 1")]);
    assert_eq!(ask(owner, 5), ["zero-window", "accept-queue"]);
    let client: Values = &[("cpu_total", 0.1), ("asleep_in.data of a connection", 1.0)];
    let client = part(client, &[("pid", "7"), ("ancestors", "7 1")]);
    assert_eq!(ask(client, 7), ["zero-window", "accept-queue"]);
}

#[test]
fn interrupts_on_a_cpu_with_time_to_spare_are_no_suspect() {
    let rates: Values = &[
        ("percpu.0.idle_total", 0.9),
        ("percpu.1.idle_total", 0.5),
        ("percpu.1.interrupts_total", 5e4),
        ("percpu.1.soft_total", 0.3),
    ];
    assert_eq!(found_on_machine(rates, &[]), [""; 0]);
}

#[test]
fn a_script_whose_children_wait_for_syncs_is_not_accused_of_starting_them() {
    let numbers: Values = &[
        ("children_cpu_total", 0.3),
        ("children.turnover", 1.0),
        ("wait.flush", 0.4),
        ("cpu_total", 0.1),
    ];
    let script: Part = (Process, "sh", numbers, &[("pid", "9")]);
    let forks: Values = &[("cpu.forks_total", 300.0)];
    assert_eq!(found_on_machine(forks, &[script]), ["fsync-storm"]);
}

#[test]
fn a_disk_that_reads_large_blocks_is_saturated_before_it_is_limited() {
    let bytes: Values = &[("read.bytes_total", 1e8)];
    let numbers: Vec<(&str, f64)> = BUSY_DISK.iter().chain(bytes).copied().collect();
    let disk: Part = (Disk, "sda", numbers.leak(), &[]);
    let reader: Part = (Process, "fio", &[("wait.disk", 3.0)], &[("pid", "9")]);
    let found = found_on_machine(&[], &[disk, reader]);
    assert_eq!(found, ["disk-saturated", "disk-rate-limit"]);
}

/// A disk that is flushed often and answers in a tenth of a millisecond.
const QUICK_FLUSHES: Values = &[
    ("write.ops_total", 5000.0),
    ("write.bytes_total", 4e7),
    ("write.wait_total", 0.5),
    ("flush.ops_total", 4000.0),
    ("flush.wait_total", 0.3),
    ("busy_total", 0.5),
];

/// A process that commits, of which samples of states saw no sync.
const COMMITS: Values = &[
    ("io.write_total", 3.2e7),
    ("io.writes_total", 4000.0),
    ("switches_total", 9000.0),
    ("threads", 1.0),
    ("cpu_total", 0.1),
];

#[test]
fn syncs_too_short_for_samples_are_counted_by_the_disk() {
    let disk: Part = (Disk, "vda", QUICK_FLUSHES, &[]);
    let database: Part = (Process, "postgres", COMMITS, &[("pid", "9")]);
    // A copy writes more bytes in few large writes, and a server writes to sockets.
    let copy: Values = &[
        ("io.write_total", 2e8),
        ("io.writes_total", 200.0),
        ("switches_total", 300.0),
        ("threads", 1.0),
    ];
    let server: Values = &[
        ("io.write_total", 0.0),
        ("io.writes_total", 9e4),
        ("switches_total", 9e4),
        ("threads", 1.0),
    ];
    let copy: Part = (Process, "cp", copy, &[("pid", "10")]);
    let server: Part = (Process, "nginx", server, &[("pid", "11")]);
    let parts = [disk, database, copy, server];
    let seen = looks(&[], &[], &parts);
    let window = assay_why::WatchWindow::new(&seen, &WatchSubject::Machine);
    let waits = |name: &str| {
        let mut processes = window.of_kind(Process);
        let process = processes.find(|one| one.name == name).unwrap();
        process.number("wait.flush")
    };
    assert!(waits("postgres") > 0.5, "{}", waits("postgres"));
    assert!(waits("cp") < 0.05 && waits("nginx") == 0.0);
    assert_eq!(found_on_machine(&[], &parts), ["fsync-storm"]);
}

#[test]
fn flushes_of_a_journal_and_of_a_quiet_log_accuse_nobody() {
    let flushes = |rate: f64| -> Part {
        let numbers = [
            ("write.ops_total", 2.0 * rate),
            ("write.wait_total", 2e-4 * rate),
            ("flush.ops_total", rate),
            ("flush.wait_total", 1e-4 * rate),
            ("busy_total", 0.1),
        ];
        (Disk, "vda", numbers.to_vec().leak(), &[])
    };
    let log: Part = (Process, "rsyslogd", COMMITS, &[("pid", "9")]);
    for rate in [1.0, 15.0, 100.0] {
        assert_eq!(found_on_machine(&[], &[flushes(rate), log]), [""; 0]);
    }
}

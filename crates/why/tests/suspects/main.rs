//! Every suspect fires on a machine that shows it, and stays quiet on one that does not.

mod cpu_cases;
mod disk_cases;
mod file_system_cases;
mod made_machine;
mod memory_cases;
mod network_cases;
mod program_cases;
mod ranking;

use assay_why::EntityKind::{Disk, Group, Process};
use assay_why::{Entity, WatchSubject, WatchWindow, judge_window, load_suspects};
use made_machine::{BUSY_DISK, Case, Part, READER, Values, looks, suspected};
use std::collections::BTreeSet;

fn cases() -> Vec<Case> {
    [
        cpu_cases::cases(),
        disk_cases::cases(),
        memory_cases::cases(),
        network_cases::cases(),
        program_cases::cases(),
        file_system_cases::cases(),
    ]
    .concat()
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
        .chain([
            "computes",
            "stopped",
            "semaphore",
            "low-priority",
            "path-hangs",
            "threads-take-turns",
        ])
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
    let holder: Values = &[("wait.semaphore", 1.0), ("cpu_total", 0.0)];
    let parts = [part("worker", holder)];
    assert_eq!(suspected(&looks(&[], &[], &parts), &thing), ["semaphore"]);
    // A worker without work waits in the same way.
    let machine = WatchSubject::Machine;
    assert_eq!(suspected(&looks(&[], &[], &parts), &machine), [""; 0]);
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

#[test]
fn a_job_of_low_priority_is_told_so_and_accuses_nobody_on_the_whole_machine() {
    let backup: Part = (
        Process,
        "backup",
        &[
            ("cpu_total", 0.1),
            ("queue_total", 0.8),
            ("low_priority", 1.0),
            ("nice", 19.0),
        ],
        &[("pid", "7"), ("ancestors", "7 1")],
    );
    let busy: Values = &[("cpu.user_total", 3.9), ("cpu.idle_total", 0.1)];
    let seen = looks(busy, &[], &[backup]);
    let found = suspected(&seen, &WatchSubject::Process(7));
    assert_eq!(found.first().map(String::as_str), Some("low-priority"));
    assert_eq!(suspected(&seen, &WatchSubject::Machine), [""; 0]);
}

#[test]
fn threads_that_take_turns_are_named_only_to_those_who_ask_about_them() {
    let numbers: Values = &[
        ("asleep.futex", 3.0),
        ("cpu_total", 0.6),
        ("queue_total", 0.2),
        ("threads", 4.0),
        ("switches_total", 900.0),
    ];
    let texts: &[(&str, &str)] = &[("pid", "7"), ("ancestors", "7 1")];
    let seen = looks(&[], &[], &[(Process, "python3", numbers, texts)]);
    assert_eq!(
        suspected(&seen, &WatchSubject::Process(7)),
        ["threads-take-turns"]
    );
    assert_eq!(suspected(&seen, &WatchSubject::Machine), [""; 0]);
}

#[test]
fn a_path_that_hangs_is_the_first_suspect() {
    let thing = WatchSubject::Path {
        path: "/mnt/far".to_owned(),
        disks: Vec::new(),
        layers: vec!["nfs4 server:/x at /mnt/far".to_owned()],
        hangs: true,
    };
    let found = suspected(&looks(&[], &[], &[]), &thing);
    assert_eq!(found, ["path-hangs"]);
}

/// A number that nothing sets makes a condition false for ever, and nobody notices.
#[test]
#[allow(clippy::disallowed_methods, reason = "the test reads the pages")]
fn every_number_of_the_machine_that_a_page_uses_is_set_somewhere() {
    let mut known: BTreeSet<String> = BTreeSet::new();
    for (_, machine, texts, parts) in cases() {
        let looks = looks(machine, texts, parts);
        let window = WatchWindow::new(&looks, &WatchSubject::Machine);
        known.extend(window.machine.numbers.into_keys());
    }
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("suspects");
    for page in std::fs::read_dir(folder).unwrap() {
        let path = page.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for part in text.split("m['").skip(1) {
            let key = part.split("']").next().unwrap();
            let is_set = known.contains(key) || key == "path.hangs";
            assert!(is_set, "{}: {key}", path.display());
        }
    }
}

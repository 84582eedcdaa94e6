//! Tests `assay changed`: figures over time, from measured and from synthetic runs.
#![allow(
    clippy::disallowed_methods,
    reason = "tests write and read the files they name"
)]

mod common;

use assay_model::plan::Plan;
use assay_model::run::{Origin, Run, RunState};
use assay_model::sample::{Operation, Operations, Outcome, Sample, Worker};
use assay_model::target::{TargetInfo, TargetKind};
use assay_model::{Bytes, FactKind, Facts, Machine, Nanos, RunId};
use assay_store::Store;
use common::Home;
use common::schemas::{holds, json};
use jiff::{SignedDuration, Timestamp};
use std::os::unix::fs::PermissionsExt as _;

/// A command that takes 10 ms, and from some run on 200 ms.
#[test]
fn a_command_that_became_slow() {
    let home = Home::new();
    let target = home.target();
    let dir = home.dir.path();
    let (step, long) = (dir.join("step"), dir.join("long"));
    let script = format!("#!/bin/sh\nexec sleep \"$(cat {})\"\n", long.display());
    std::fs::write(&step, script).unwrap();
    std::fs::set_permissions(&step, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plan = dir.join("steps.toml");
    let text = format!(
        "name = \"steps\"\nrounds = 1\n[[workload]]\nname = \"step\"\nruntime = \"300ms\"\nramp = \"0s\"\n\
         load = {{ kind = \"command\", argv = [{step:?}, \"{{path}}\"] }}\n"
    );
    std::fs::write(&plan, text).unwrap();
    for run in 0..22 {
        std::fs::write(&long, if run < 12 { "0.01" } else { "0.2" }).unwrap();
        let words = ["run", "--quiet", "--plan-file"].map(AsRef::as_ref);
        let words = [&words[..], &[plan.as_os_str(), target.path().as_os_str()]].concat();
        let ran = home.assay(&words);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let ran = home.assay(&["changed", "--since", "1h", "--json"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    holds("changed", &ran.stdout, &[]);
    let told = json(&ran.stdout);
    // Other activity of the test machine may be reported too.
    let slower = told["figures"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["metric"] == "iops" && one["ratio"].as_f64().unwrap() < 0.7);
    let slower = slower.unwrap_or_else(|| panic!("{told:#}"));
    assert_eq!(slower["verdict"], "worse");
    assert_eq!(slower["workload"], "step");
    assert!(
        slower["interval"]["high"].as_f64().unwrap() < 0.9,
        "{slower:#}"
    );
}

/// Creates a synthetic run with a figure.
fn run(number: u32, name: &str, per_s: f64, kernel: &str, started: Timestamp) -> (Run, Sample) {
    let mut facts = Facts::default();
    facts.known(
        "kernel.release",
        kernel,
        FactKind::Runtime,
        "/proc/sys/kernel/osrelease",
    );
    facts.known(
        "memory.available",
        number,
        FactKind::Runtime,
        "/proc/meminfo",
    );
    let run = Run {
        id: RunId(0),
        uid: format!("{name:0>16}{number:016x}"),
        assay_version: "1".to_owned(),
        started,
        ended: Some(started),
        state: RunState::Complete,
        origin: Origin::Measured,
        plan: Plan {
            name: "quick".to_owned(),
            ..Plan::default()
        },
        targets: vec![TargetInfo {
            name: "/srv".to_owned(),
            kind: TargetKind::Directory,
            fs_type: None,
            mount_point: None,
            mount_options: None,
            mount_source: None,
            devices: vec![],
            disks: vec![],
            size: Bytes(1),
            free: None,
        }],
        facts,
        remarks: vec![],
        ladder: None,
    };
    let operations = Operations {
        bytes: Bytes(409_600),
        count: 100,
        runtime: Nanos(1_000_000_000),
        per_s,
        ..Operations::default()
    };
    let sample = Sample {
        workload: "read".to_owned(),
        target: "/srv".to_owned(),
        round: 1,
        slot: 0,
        started,
        wall: Nanos(1_000_000_000),
        outcome: Outcome::Completed,
        tool: "made".to_owned(),
        workers: vec![Worker {
            name: "read".to_owned(),
            operations: [(Operation::Read, operations)].into(),
            ..Worker::default()
        }],
        counters: Default::default(),
        file: None,
        series: vec![],
    };
    (run, sample)
}

#[test]
fn what_changed_with_a_figure_is_named_and_other_machines_are_not() {
    let home = Home::new();
    let mut store = Store::open(&home.dir.path().join("store.db")).unwrap();
    let begin: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let day = |number: u32| begin + SignedDuration::from_hours(24 * i64::from(number));
    let machines = ["web1", "web2"].map(|name| Machine {
        id: format!("{name:0>32}"),
        name: Some(name.to_owned()),
    });
    let add = |store: &mut Store, number: u32| {
        for machine in &machines {
            let name = machine.name.as_deref().unwrap();
            // Reproducible noise: a golden-ratio rotation.
            let noise = 1.0 + 0.02 * (f64::from(number) * 0.618_034).fract();
            let new = name == "web1" && number >= 20;
            let (per_s, kernel) = if new {
                (70.0, "6.1.0-18")
            } else {
                (100.0, "6.1.0-17")
            };
            let (run, sample) = run(number, name, per_s * noise, kernel, day(number));
            store.import_run(&run, &[sample], Some(machine)).unwrap();
        }
    };
    for number in 0..22 {
        add(&mut store, number);
    }
    let ran = home.assay(&["changed"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    // The shift is detected with the run that suffices, and only with this one.
    let mut told = Vec::new();
    for number in 22..34 {
        add(&mut store, number);
        let ran = home.assay(&["changed"]);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
        if ran.code == Some(1) {
            told.push(ran.stdout);
        }
    }
    let [once] = told.as_slice() else {
        panic!("{told:?}")
    };
    insta::assert_snapshot!(once, @r"
    web1  figures of quick
      ! read on /srv: iops -29.9 % (-30.4 to -29.4 %) since run 41 of 2026-01-21
        00:00 UTC
          20 runs before, 6 since; noticed with that of 2026-01-26 00:00 UTC
          ~ kernel.release: 6.1.0-17 → 6.1.0-18 (another kernel runs)
    ");
    let ran = home.assay(&["changed", "--since", "2026-01-20", "--json"]);
    holds("changed", &ran.stdout, &[]);
    let told = json(&ran.stdout);
    assert_eq!(told["figures"][0]["since"], "2026-01-21T00:00:00Z");
    assert_eq!(told["figures"][0]["machine"]["name"], "web1");
    assert_eq!(told["figures"].as_array().unwrap().len(), 1);
    let page = home.dir.path().join("changed.html");
    let ran = home.assay(&[
        "changed",
        "--since",
        "2026-01-20",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let page = std::fs::read_to_string(page).unwrap();
    // A dot for each run of the machine with the shift, and the period of the shift.
    assert_eq!(page.matches("<circle").count(), 34, "{page}");
    assert_eq!(page.matches("class=\"band\"").count(), 1);
    assert_eq!(page.matches("class=\"ref\"").count(), 2);
    // Machines have their names in the store or the fleet.
    let ran = home.assay(&["changed", "web2", "--since", "2026-01-20"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), ""),
        "{}",
        ran.stderr
    );
    let ran = home.assay(&["changed", "root@web1", "--since", "2026-01-20"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let ran = home.assay(&["changed", "web9"]);
    assert_eq!(ran.code, Some(2));
}

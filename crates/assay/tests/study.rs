//! Tests `assay study` with a user's study: real commands, and real guests if there is an image.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Ran, entries, fio, root};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Counts the output of commands; `TIME` is replaced by the duration of one.
const MINE: &str = r#"name = "mine"
title = "Which prints more"
question = "Does one print more than the other?"
bench = "commands"

[source]
title = "A page that does not exist"
year = 2020
machine = "none"

[forms.quick]
rounds = 3
time = "10ms"

[forms.full]
rounds = 4
time = "10ms"

[[configuration]]
name = "three"
run = ["echo", "3"]

[[configuration]]
name = "one"
run = ["echo", "1"]

[[figure]]
name = "printed"
better = "neither"
exact = true
of = "printed"

[[figure]]
name = "time"
unit = "ns"
better = "lower"
of = "time"

[[published]]
configuration = "three"
figure = "printed"
value = 4

[[published]]
configuration = "one"
figure = "printed"
value = 1

[[conclusion]]
says = "It prints three times as much."
claim = [{ kind = "ratio", figure = "printed", of = "three", to = "one", at_least = 3, at_most = 3 }]

[[conclusion]]
says = "It prints four."
claim = [{ kind = "value", figure = "printed", of = "three", at_least = 4 }]
"#;

fn write(home: &Home, text: &str) -> PathBuf {
    let path = home.dir.path().join("mine.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn json(ran: &Ran) -> serde_json::Value {
    let text = &ran.stdout;
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}{}", ran.stderr))
}

fn args<'a>(study: &'a Path, dir: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["study", study.to_str().unwrap(), dir.to_str().unwrap()];
    all.extend(more);
    all
}

#[test]
fn the_studies_there_are_have_a_plan_each() {
    let home = Home::new();
    let ran = home.assay(&["study", "--json"]);
    let studies = json(&ran)["studies"].as_array().unwrap().clone();
    assert!(studies.len() >= 2);
    let listed = home.assay(&["study"]);
    let target = home.target();
    for study in studies {
        let name = study["name"].as_str().unwrap();
        assert!(listed.stdout.contains(name), "{}", listed.stdout);
        let dir = target.path().to_str().unwrap();
        for form in [&["--dry-run"][..], &["--dry-run", "--full"]] {
            let ran = home.assay(&[&["study", name, dir][..], form].concat());
            assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
            for word in ["Makes", "Where", "Time"] {
                assert!(ran.stdout.contains(word), "{name}: {}", ran.stdout);
            }
        }
    }
    assert_eq!(entries(target.path()), Vec::<String>::new());
    assert!(!home.dir.path().join("store.db").exists());
}

#[test]
fn a_study_of_ones_own_is_carried_out_kept_and_shown() {
    let (home, target) = (Home::new(), tempfile::tempdir().unwrap());
    let study = write(&home, MINE);
    let page = home.dir.path().join("mine.html");
    let ran = home.assay(&args(
        &study,
        target.path(),
        &["--json", "--seed", "5", "--html", page.to_str().unwrap()],
    ));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = json(&ran);
    let findings: Vec<_> = told["result"]["conclusions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["finding"].as_str().unwrap(),
                one["published_finding"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        findings,
        [("supported", "contradicted"), ("contradicted", "supported")]
    );
    assert_eq!(
        told["run"]["observations"].as_array().unwrap().len(),
        // An exact figure is measured once.
        2 + 3 * 2
    );
    assert_eq!(told["run"]["complete"], true);
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("It prints four.")
    );
    assert_eq!(entries(target.path()), Vec::<String>::new());

    let again = home.assay(&["study", "show", "mine", "--json"]);
    assert_eq!(json(&again), told);
    let listed = home.assay(&["study", "--list"]);
    let mut cells = listed
        .stdout
        .split("  ")
        .flat_map(str::lines)
        .map(str::trim);
    let found = cells.find(|cell| cell.contains("supported"));
    insta::assert_snapshot!(found.unwrap(), @"1 supported, 1 contradicted (8 figures)");
    let text = home.assay(&["study", "show"]).stdout;
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    assert!(
        home.assay(&["study", "show", "last", "--markdown"])
            .stdout
            .contains("## Conclusions")
    );
    let ran = home.assay(&["study", "show", "other"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--list"), "{}", ran.stderr);
}

#[test]
fn a_broken_study_is_told_with_file_line_and_way_out() {
    let (home, target) = (Home::new(), tempfile::tempdir().unwrap());
    let mut said = String::new();
    for (from, to) in [
        ("rounds = 3", "rounds = x"),
        (
            "figure = \"printed\", of = \"three\", to",
            "figure = \"p\", of = \"three\", to",
        ),
        ("run = [\"echo\", \"3\"]", "rum = [\"echo\", \"3\"]"),
        ("time = \"10ms\"", "tme = \"10ms\""),
        ("bench = \"commands\"", "bench = \"command\""),
    ] {
        let text = MINE.replacen(from, to, 1);
        assert_ne!(text, MINE);
        let study = write(&home, &text);
        let ran = home.assay(&args(&study, target.path(), &[]));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{from}");
        said += &home.told(&format!("{to}: {}", ran.stderr));
    }
    insta::assert_snapshot!(said, @r#"
    rounds = x: assay: HOME/mine.toml:12: string values must be quoted, expected literal string
    figure = "p", of = "three", to: assay: HOME/mine.toml:49: there is no figure `p`
    rum = ["echo", "3"]: assay: configuration `three`: unknown field `rum`, expected `run` or `load`
    tme = "10ms": assay: the form: unknown field `tme`, expected `time`
    bench = "command": assay: HOME/mine.toml:1: bench: there is no bench `command`; there are commands, distribution, clones, unequal, guest-disks, points, web-servers, zfs
    "#);
    let mut said = String::new();
    for name in ["no-such-study", "kvm-cache-mode", "missing.toml"] {
        let ran = home.assay(&["study", name]);
        assert_eq!(ran.code, Some(2));
        said +=
            &assay_testing::normalize_output(ran.stderr, &[(env!("CARGO_MANIFEST_DIR"), "HERE")]);
    }
    insta::assert_snapshot!(said, @r"
    assay: there is no study `no-such-study`; `assay study` lists them; a file of your own ends with .toml
    assay: there is no study `kvm-cache-mode`; did you mean `kvm-cache-modes`?
    assay: HERE/missing.toml: no such file or directory
    ");
    let study = write(&home, MINE);
    let ran = home.assay(&args(&study, &study, &[]));
    insta::assert_snapshot!(home.told(&ran.stderr), @"assay: HOME/mine.toml is not a directory: name a directory on the storage to measure");
    assert!(!home.dir.path().join("store.db").exists());
}

#[test]
fn what_was_measured_before_a_failure_or_an_interruption_is_kept_and_gone_on_with() {
    let (home, target) = (Home::new(), tempfile::tempdir().unwrap());
    let flag = home.dir.path().join("flag");
    // The second command succeeds once the flag exists.
    let text = MINE.replace(
        "[\"echo\", \"1\"]",
        &format!("[\"cat\", {:?}]", flag.to_str().unwrap()),
    );
    let study = write(&home, &text);
    let ran = home.assay(&args(&study, target.path(), &["--seed", "1"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("No such file"), "{}", ran.stderr);
    std::fs::write(&flag, "1\n").unwrap();
    let dir = target.path().to_str().unwrap();
    let ran = home.assay(&["study", "--resume", "last", dir, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["run"]["complete"], true);
    let ran = home.assay(&["study", "--resume=last"]);
    insta::assert_snapshot!(home.told(&ran.stderr), @"assay: nothing to resume: study 1 is complete; `assay study show 1` shows it");

    // Ctrl-C during a command of five seconds.
    let begun = home.dir.path().join("begun");
    let slow = format!("[\"sh\", \"-c\", \"touch {}; sleep 5\"]", begun.display());
    let study = write(&home, &MINE.replace("[\"echo\", \"1\"]", &slow));
    let mut command = home.command(&args(
        &study,
        target.path(),
        &["--seed", "1", "--keep-going"],
    ));
    let child = command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..600 {
        if begun.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(begun.exists());
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ran = common::ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("--resume"), "{}", ran.stderr);
    let shown = json(&home.assay(&["study", "show", "--json"]));
    assert_eq!(shown["run"]["complete"], false);
    assert_eq!(entries(target.path()), Vec::<String>::new());
}

/// One boot: a raw and a qcow2 disk on two temporary file systems, and a file of the host.
const DISKS: &str = r#"name = "disks"
title = "Disks"
question = "Do they work?"
bench = "guest-disks"
source = { title = "none", machine = "none" }
forms.quick = { rounds = 1, runtime = "500ms", size = "16M" }
forms.full = { rounds = 1, runtime = "500ms", size = "16M" }
configuration = [
  { name = "bare", on = "ext4", bare = true },
  { name = "raw", on = "ext4", disk = "cache=none" },
  { name = "qcow2", on = "xfs", disk = "format=qcow2,cache=writeback,bus=ide" },
  { name = "zfs", on = "zfs" },
]
figure = [
  { name = "read", unit = "B/s", better = "higher", together = "all", pattern = "read", block_size = "1M", of = "rate" },
  { name = "write", unit = "IOPS", better = "higher", together = "all", pattern = "randwrite", block_size = "4k", of = "iops" },
  { name = "weighted", better = "higher", derived = { kind = "weighted", a = "read", b = "write", baseline = "bare" } },
]
published = []
conclusion = [{ says = "x", claim = [{ kind = "ratio", figure = "read", of = "zfs", to = "raw", at_least = 1 }] }]
"#;

#[test]
fn disks_of_a_real_guest_are_measured_and_gone_afterwards() {
    let cache = assay_lab::Cache::of_user().ok();
    let image = cache.and_then(|cache| cache.find());
    if image.is_none() || !root() || !fio() {
        assay_testing::skipped(
            "guest-image",
            "needs root, fio, and the guest image of `assay lab build`",
        );
        return;
    }
    let home = Home::new();
    let target = home.target();
    let study = write(&home, DISKS);
    let ran = home.assay(&args(&study, target.path(), &["--json", "--seed", "1"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = json(&ran);
    let cells = told["result"]["cells"].as_array().unwrap();
    for name in ["bare", "raw", "qcow2"] {
        for figure in ["read", "write", "weighted"] {
            let mut cells = cells.iter();
            let cell = cells.find(|cell| cell["configuration"] == name && cell["figure"] == figure);
            let value = cell.and_then(|cell| cell["estimate"]["value"].as_f64());
            assert!(
                value.is_some_and(|value| value > 0.0),
                "{figure} of {name}: {told}"
            );
        }
    }
    assert_eq!(told["result"]["conclusions"][0]["finding"], "not-tried");
    assert_eq!(entries(target.path()), Vec::<String>::new());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(
        !mounts.contains(target.path().to_str().unwrap()),
        "{mounts}"
    );
}

//! Tests `assay plan`: invalid questions, standard input, pages, help.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod btrfs;
mod history;
mod layout;

use serde_json::Value;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn assay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("plan")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(args: &[&str]) -> String {
    let output = assay(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(args: &[&str]) -> Value {
    let mut args = args.to_vec();
    args.push("--json");
    serde_json::from_str(&text(&args)).unwrap()
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../planner/fixtures")
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

fn with_input(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_assay"))
        .arg("plan")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn bad_questions_are_named() {
    let mut said = String::new();
    for args in [
        vec!["layout"],
        vec!["layout", "0", "1T"],
        vec!["layout", "--", "-4T"],
        vec!["layout", "4X"],
        vec!["layout", "4T@NaN"],
        vec!["layout", "4T@-3"],
        vec!["layout", "99E"],
        vec!["layout", "10x1E"],
        vec!["layout", "2000x4T"],
        vec!["layout", "--only", "raidz2", "4T"],
        vec!["layout", "--only", "raidz9", "4T"],
        vec!["layout", "--only", "btrfs-raid7", "4T"],
        vec!["layout", "--only", "raidz1", "--ashift", "20", "3x4T"],
        vec!["layout", "--only", "raidz1", "3x1M"],
        vec!["layout", "4T", "--want", "speed>=3"],
        vec!["layout", "4T", "--zfs", "9.9"],
        vec!["layout", "--only", "single", "--whole-disk=520", "4T"],
        vec!["capacity"],
        vec!["capacity", "1TiB", "--factor", "growth=NaN"],
        vec!["capacity", "1TiB", "--factor", "growth"],
        vec!["distribute", "1T@200%"],
        vec!["distribute", "1G", "--write", "2G"],
        vec!["durability", "--disks", "2", "--survives", "2"],
        vec!["cache"],
        vec!["cache", "--memory", "1GiB", "--block", "1"],
        vec!["clones"],
    ] {
        let output = assay(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        said += &format!("{args:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}");
    }
    insta::assert_snapshot!(said, @r#"
    ["layout"]: assay: no disks: name their sizes, such as 4T 2T 2T, or ask for this machine's with --here
    ["layout", "0", "1T"]: assay: disk size `0`: is zero; leave the disk out
    ["layout", "--", "-4T"]: assay: disk size `-4T` is negative; give a size such as 4T, 1.92TB or 20GiB (T and TB are 10^12, TiB is 2^40) or a number of bytes
    ["layout", "4X"]: assay: disk size `4X` is not a size; give a size such as 4T, 1.92TB or 20GiB (T and TB are 10^12, TiB is 2^40) or a number of bytes
    ["layout", "4T@NaN"]: assay: disk size `4T@NaN`: the price behind @ must be a number from 0 up
    ["layout", "4T@-3"]: assay: disk size `4T@-3`: the price behind @ must be a number from 0 up
    ["layout", "99E"]: assay: disk size `99E`: is above 1 EiB, the largest disk that can be planned
    ["layout", "10x1E"]: assay: the sum of the disks overflows: more than 8 EiB
    ["layout", "2000x4T"]: assay: disk size `2000x4T`: the count before x or * must be 1 to 1024, as in 6x4T or 6*4T
    ["layout", "--only", "raidz2", "4T"]: assay: layout `raidz2:1`: raidz2 needs at least 3 disks
    ["layout", "--only", "raidz9", "4T"]: assay: layout `raidz9`: `raidz9` is not single, mirror:N, raidz1:N, raidz2:N, raidz3:N or draidP:Dd:Cc:Ss
    ["layout", "--only", "btrfs-raid7", "4T"]: assay: btrfs profile `raid7`: give one of single, dup, raid0, raid1, raid1c3, raid1c4, raid10, raid5, raid6
    ["layout", "--only", "raidz1", "--ashift", "20", "3x4T"]: error: invalid value '20' for '--ashift <N>': 20 is not in 9..=16

    For more information, try '--help'.
    ["layout", "--only", "raidz1", "3x1M"]: assay: disk size `1000000`: ZFS refuses devices below 64 MiB (SPA_MINDEVSIZE)
    ["layout", "4T", "--want", "speed>=3"]: error: invalid value 'speed>=3' for '--want <DEMAND>': want `speed>=3`: fields are usable, efficiency, cost, rebuild, loss, survive

    For more information, try '--help'.
    ["layout", "4T", "--zfs", "9.9"]: error: invalid value '9.9' for '--zfs <VERSION>': OpenZFS version `9.9`: give one of 0.7, 0.8, 2.0, 2.1, 2.2, 2.3, 2.4 with or without a patch number, such as 2.1.11

    For more information, try '--help'.
    ["layout", "--only", "single", "--whole-disk=520", "4T"]: assay: logical sector size 520: disks have sectors of 512 or 4096 bytes
    ["capacity"]: assay: no data: say how much there is (1TiB), or how it grew with --history, --snapshots or --pool
    ["capacity", "1TiB", "--factor", "growth=NaN"]: assay: factor growth = NaN: must be a number from 0.001 to 1000
    ["capacity", "1TiB", "--factor", "growth"]: assay: factor `growth`: write NAME=VALUE, such as growth=1.5
    ["distribute", "1T@200%"]: assay: `200%`: give a share such as 80% or 0.8
    ["distribute", "1G", "--write", "2G"]: assay: a write of 2000000000 bytes: does not fit 1000000000 free bytes
    ["durability", "--disks", "2", "--survives", "2"]: assay: 2 disks that survive 2 failures: needs 1 to 10000 disks and fewer failures than disks
    ["cache"]: assay: nothing to size: give --memory, --working-set, --l2arc, --sync-writes or --arcstats
    ["cache", "--memory", "1GiB", "--block", "1"]: assay: block size 1: must be 512 bytes to 16 MiB
    ["clones"]: assay: no dataset: name one of this machine, or recorded output with --from FILE
    "#);
    let missing = assay(&["clones", "--from", "/nonexistent/file"]);
    assert_eq!(missing.status.code(), Some(3));
}

#[test]
fn the_simulation_repeats() {
    let args = [
        "durability",
        "--disks",
        "4",
        "--survives",
        "1",
        "--afr",
        "30%",
        "--simulate",
        "20000",
    ];
    assert_eq!(text(&args), text(&args));
}

#[test]
fn the_page_stands_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("plan.html");
    text(&["layout", "3x4T", "--html", path.to_str().unwrap()]);
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg"));
    for outside in ["http:", "https:", "<script", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn every_answer_has_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let history: String = (1..=12)
        .map(|month| format!("2025-{month:02}-01 {}GiB\n", 1000 + 20 * month))
        .collect();
    let get = "p/<b>\tused\t10GiB\np/<b>\treferenced\t10GiB\np/<b>\twritten\t0\n\
               p/<b>@1\tused\t0\np/<b>@1\treferenced\t10GiB\np/<b>@1\twritten\t10GiB\n\
               p/vm\tused\t3GiB\np/vm\treferenced\t11GiB\np/vm\twritten\t3GiB\n\
               p/vm\torigin\tp/<b>@1\n";
    let questions = [
        ("capacity --history - --size 2TiB", &*history, "90 % full"),
        ("distribute 2T@80% 2T,12MB/s --write 50G", "", "OpenZFS 2.4"),
        ("clones --from -", get, "p/&lt;b&gt;@1"),
        (
            "cache --memory 64GiB --l2arc 480G --working-set 200GiB",
            "",
            "headers of the L2ARC",
        ),
        (
            "durability --disks 4 --survives 1 --afr 30% --simulate 20000",
            "",
            "simulated, one group",
        ),
    ];
    for (question, input, shows) in questions {
        let path = dir.path().join("page.html");
        let mut args: Vec<&str> = question.split(' ').collect();
        args.extend(["--html", path.to_str().unwrap()]);
        let output = with_input(&args, input);
        let out = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{question}: {stderr}");
        for line in out.lines() {
            let free = question.starts_with("clones");
            assert!(free || line.chars().count() <= 80, "{question}: {line}");
        }
        assert!(out.contains('█') || question.starts_with("clones"), "{out}");
        let page = std::fs::read_to_string(&path).unwrap();
        assert!(page.contains(shows), "{question}");
        assert!(page.contains("<svg") && page.contains("<desc") && page.contains("<table"));
        for outside in ["http:", "https:", "<script", "@import", "url(", "<b>"] {
            assert!(!page.contains(outside), "{question}: {outside}");
        }
        std::fs::remove_file(&path).unwrap();
        args.pop();
        args.push("/nonexistent/page.html");
        let refused = with_input(&args, input);
        assert_eq!(refused.status.code(), Some(2), "{question}");
    }
}

#[test]
fn every_question_has_help_with_examples() {
    for question in [
        "layout",
        "capacity",
        "distribute",
        "clones",
        "cache",
        "durability",
    ] {
        let out = text(&[question, "--help"]);
        assert!(
            out.contains("Examples:") && out.contains("--json"),
            "{question}"
        );
    }
}

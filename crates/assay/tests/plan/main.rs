//! `assay plan` as a user runs it: bad questions, input on standard input, pages, help.
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
    for (args, why) in [
        (vec!["layout"], "no disks"),
        (vec!["layout", "0", "1T"], "is zero"),
        (vec!["layout", "--", "-4T"], "is negative"),
        (vec!["layout", "4X"], "not a size"),
        (vec!["layout", "4T@NaN"], "price"),
        (vec!["layout", "4T@-3"], "price"),
        (vec!["layout", "99E"], "1 EiB"),
        (vec!["layout", "10x1E"], "8 EiB"),
        (vec!["layout", "2000x4T"], "1 to 1024"),
        (vec!["layout", "--only", "raidz2", "4T"], "at least 3 disks"),
        (vec!["layout", "--only", "raidz9", "4T"], "is not single"),
        (vec!["layout", "--only", "btrfs-raid7", "4T"], "give one of"),
        (
            vec!["layout", "--only", "raidz1", "--ashift", "20", "3x4T"],
            "ashift",
        ),
        (vec!["layout", "--only", "raidz1", "3x1M"], "64 MiB"),
        (vec!["layout", "4T", "--want", "speed>=3"], "fields are"),
        (vec!["layout", "4T", "--zfs", "9.9"], "0.7"),
        (
            vec!["layout", "--only", "single", "--whole-disk=520", "4T"],
            "512 or 4096",
        ),
        (vec!["capacity"], "no data"),
        (vec!["capacity", "1TiB", "--factor", "growth=NaN"], "growth"),
        (vec!["capacity", "1TiB", "--factor", "growth"], "NAME=VALUE"),
        (vec!["distribute", "1T@200%"], "share"),
        (vec!["distribute", "1G", "--write", "2G"], "does not fit"),
        (
            vec!["durability", "--disks", "2", "--survives", "2"],
            "fewer failures",
        ),
        (vec!["cache"], "nothing to size"),
        (
            vec!["cache", "--memory", "1GiB", "--block", "1"],
            "512 bytes",
        ),
        (vec!["clones"], "no dataset"),
    ] {
        let output = assay(&args);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.contains(why), "{args:?}: {stderr}");
        assert!(!stderr.contains("panicked"), "{args:?}");
    }
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

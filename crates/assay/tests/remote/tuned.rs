//! Sessions of tuning on another machine, and what one kept on others.

use super::{Machine, json};
use crate::common;
use serde_json::Value;

fn kept(document: &Value) -> usize {
    document["kept"].as_array().unwrap().len()
}

#[test]
fn a_session_over_ssh_is_kept_there_undone_from_here_and_applied_elsewhere() {
    let Some(machine) = Machine::new() else {
        return;
    };
    // The setting makes the load three times as fast.
    let setting = machine.setting().display().to_string();
    common::script(
        machine.servers.dir.path(),
        "work",
        "case $(cat \"$1\") in b) exec sleep 0.03 ;; *) exec sleep 0.09 ;; esac",
    );
    let work = machine.servers.path("work").display().to_string();
    let load = format!("{work} {setting}");
    let page = machine.page().display().to_string();
    let tune = [
        "tune",
        "--load",
        &load,
        "--want",
        "less p50",
        "--only",
        &page,
        "--slot",
        "200ms",
        "--budget",
        "90s",
        "--no-tail-guard",
        "--no-boot-undo",
        "--seed",
        "3",
        "--json",
    ];
    let refused = machine.run(&tune, 61);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    let planned: Vec<&str> = tune.iter().copied().chain(["--dry-run"]).collect();
    let planned = machine.run(&planned, 61);
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    assert_eq!(machine.reads(), "a");
    let all: Vec<&str> = tune.iter().copied().chain(["--yes"]).collect();
    let ran = machine.run(&all, 61);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(kept(&json(&ran.stdout)), 1, "{}", ran.stdout);
    assert_eq!(machine.reads(), "b");
    // It is in the store here, as one of that machine.
    let shown = machine.home.assay(&["tune", "--show", "1", "--json"]);
    assert_eq!(kept(&json(&shown.stdout)), 1, "{}", shown.stderr);
    let undone = machine.run(&["tune", "--undo", "1"], 61);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(machine.reads(), "a");
    let apply = [
        "tune",
        "--apply",
        "1",
        "--only",
        &page,
        "--budget",
        "90s",
        "--no-boot-undo",
        "--yes",
        "--json",
    ];
    // A ring that does not confirm ends it.
    let unreachable: Vec<&str> = apply
        .iter()
        .copied()
        .chain(["--host", "nosuch.invalid"])
        .collect();
    let stopped = machine.run(&unreachable, 61);
    assert_eq!(stopped.code, Some(1), "{}", stopped.stderr);
    let document = json(&stopped.stdout);
    assert_eq!(document["rings_left"], 1, "{document:#}");
    assert_eq!(machine.reads(), "a");
    let applied = machine.run(&apply, 61);
    assert_eq!(
        applied.code,
        Some(0),
        "{} {}",
        applied.stdout,
        applied.stderr
    );
    let document = json(&applied.stdout);
    let host = &document["rings"][0]["hosts"][0];
    assert!(host["gain"].as_f64().unwrap() > 0.5, "{document:#}");
    assert_eq!(machine.reads(), "b");
    let session = host["session"].to_string();
    let undone = machine.run(&["tune", "--undo", &session], 61);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert_eq!(machine.reads(), "a");
    assert!(machine.left().is_empty(), "{:?}", machine.left());
}

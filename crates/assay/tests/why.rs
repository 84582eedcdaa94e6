//! Tests `assay why`: a recording gives the same judgement again, and damaged or unknown parts are reported.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::Home;
use std::fs;
use std::process::{Command, Stdio};

#[test]
fn a_recording_is_judged_as_the_machine_was() {
    let home = Home::new();
    let file = home.dir.path().join("slow.jsonl");
    let file = file.to_str().unwrap();
    let mut sleeper = Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = sleeper.id().to_string();
    let live = home.assay(&["why", &pid, "--for", "1s", "--record", file, "--json"]);
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    assert!(matches!(live.code, Some(0 | 1)), "{}", live.stderr);
    let again = home.assay(&["why", "--replay", file, "--json"]);
    assert_eq!(again.code, live.code, "{}", again.stderr);
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    assert_eq!(read(&again.stdout), read(&live.stdout));
    let page = home.dir.path().join("slow.html");
    let shown = home.assay(&["why", "--replay", file, "--html", page.to_str().unwrap()]);
    assert_eq!(shown.code, live.code, "{}", shown.stderr);
    assert!(fs::read_to_string(&page).unwrap().contains("</html>"));

    let text = fs::read_to_string(file).unwrap();
    let damaged = text.replacen("\"at_ms\"", "\"at_ns\"", 1);
    fs::write(file, damaged).unwrap();
    let refused = home.assay(&["why", "--replay", file]);
    assert_eq!(refused.code, Some(3), "{}", refused.stdout);
    assert!(refused.stderr.contains("line 2"), "{}", refused.stderr);
}

#[test]
fn a_name_that_nothing_has_is_an_error_with_a_way_out() {
    let ran = Home::new().assay(&["why", "no-such-thing-here", "--for", "1s"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("no-such-thing-here"), "{}", ran.stderr);
    let ran = Home::new().assay(&["why", "--for", "0s"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn a_service_is_refused_with_the_command_that_measures_it() {
    let home = Home::new();
    for (service, command) in [
        ("ssh://me@box", "assay login ssh me@box"),
        ("https://intra/x", "assay web https://intra/x"),
        ("nfs://nas/srv", "assay run nfs://nas/srv"),
        ("smb://nas/data", "assay run smb://nas/data"),
    ] {
        let ran = home.assay(&["why", service, "--for", "1s"]);
        assert_eq!(ran.code, Some(2), "{}", ran.stdout);
        assert!(ran.stderr.contains(command), "{}", ran.stderr);
    }
}

#[test]
fn a_recording_goes_to_standard_output_without_a_report() {
    let home = Home::new();
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let ran = home.assay(&["why", &pid, "--for", "1s", "--record", "-"]);
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<serde_json::Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(lines.len() >= 3 && lines[0]["assay-why"] == 1);
}

#[test]
fn a_path_is_named_with_its_layers() {
    let home = Home::new();
    let dir = home.dir.path().to_str().unwrap();
    let ran = home.assay(&["why", dir, "--for", "1s", "--json"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(answer["subject"]["path"]["path"], dir);
    let figures = answer["figures"].as_array().unwrap();
    assert!(figures.iter().any(|figure| figure[0] == "Users"));
}

#[test]
fn an_answer_is_stored_and_shown_again() {
    let home = Home::new();
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let list = home.assay(&["why", "--list", "--json"]);
    assert_eq!(read(&list.stdout)["observations"], serde_json::json!([]));
    let live = home.assay(&["why", "--for", "1s", "--json"]);
    assert!(matches!(live.code, Some(0 | 1)), "{}", live.stderr);
    let scan = "../wifi/fixtures/iw-scan.txt";
    let other = home.assay(&["check", "wifi", scan]);
    assert!(matches!(other.code, Some(0 | 1 | 3)), "{}", other.stderr);
    let shown = home.assay(&["why", "--show", "last", "--json"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert_eq!(read(&shown.stdout), read(&live.stdout));
    // The check of Wi-Fi is no answer of `why`.
    let before = home.assay(&["why", "--show", "last~1"]);
    assert_eq!(before.code, Some(2), "{}", before.stdout);
    let list = home.assay(&["why", "--list", "--json"]);
    common::schemas::holds("why-list", &list.stdout, &["/observations/0"]);
    assert_eq!(home.assay(&["why", "--show", "7"]).code, Some(2));
}

#[test]
fn a_store_that_cannot_be_written_does_not_spoil_an_answer() {
    let home = Home::new();
    let ran = home.assay(&["why", "--for", "1s", "--store", "/proc/none/assay.db"]);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    assert!(!ran.stdout.is_empty() && ran.stderr.contains("/proc/none"));
}

#[test]
fn old_answers_are_pruned_when_asked() {
    let home = Home::new();
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let count = || {
        let list = home.assay(&["why", "--list", "--json"]);
        read(&list.stdout)["observations"].as_array().unwrap().len()
    };
    let prune =
        |options: &[&str]| home.assay(&[&["store", "prune", "observations"], options].concat());
    assert_eq!(
        prune(&["--keep", "1", "--yes"]).code,
        Some(2),
        "there is no store"
    );
    for _ in 0..3 {
        home.assay(&["why", "--for", "1s", "--json"]);
    }
    assert_eq!(prune(&[]).code, Some(2), "a rule is needed");
    let none = prune(&["--older-than", "1h", "--yes", "--json"]);
    assert_eq!(none.code, Some(0), "{}", none.stderr);
    assert_eq!(read(&none.stdout)["removed"], false);
    let listed = prune(&["--keep", "1", "--dry-run", "--json"]);
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let document = read(&listed.stdout);
    assert_eq!(document["records"].as_array().unwrap().len(), 2);
    assert!(document["bytes"].as_u64().unwrap() > 100);
    assert_eq!(prune(&["--keep", "1"]).code, Some(2), "without --yes");
    assert_eq!(count(), 3);
    let done = prune(&["--keep", "1", "--yes"]);
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(count(), 1);
    assert_eq!(home.assay(&["why", "--show", "last"]).code, Some(0));
}

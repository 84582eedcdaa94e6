//! Tests `assay facts` as a user runs it.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::Home;
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_fact_has_its_source() {
    let ran = Home::new().assay(&["facts", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran.stdout);
    assert_eq!(document["schema"], assay_model::SCHEMA_VERSION);
    let facts = document["facts"].as_object().unwrap();
    for (key, fact) in facts {
        assert!(
            fact["source"]
                .as_str()
                .is_some_and(|source| !source.is_empty()),
            "{key}: {fact}"
        );
        assert!(
            fact.get("known").is_some() != fact.get("unknown").is_some(),
            "{key}: {fact}"
        );
        assert!(
            ["default", "configured", "runtime"].contains(&fact["kind"].as_str().unwrap()),
            "{key}"
        );
        assert!(!key.ends_with(".serial") && key != "host.name", "{key}");
    }
    assert!(facts["memory.total"]["known"].as_u64().is_some());
}

#[test]
fn the_listing_fits_80_columns() {
    let ran = Home::new().assay(&["facts", "kernel", "memory"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("kernel\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("/proc/meminfo"));
    assert!(!ran.stdout.contains("cpu\n"));
    assert!(
        ran.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_is_not_there_is_told_by_the_exit_status() {
    for json in [&[][..], &["--json"]] {
        let ran = Home::new().assay(&[&["facts", "nosuch"], json].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(!ran.stdout.is_empty());
    }
}

#[test]
fn a_captured_machine_is_read_elsewhere() {
    let home = Home::new();
    let dir = home.dir.path().join("captured");
    let dir = dir.to_str().unwrap();
    let live = home.assay(&["facts", "cpu", "sysctl", "--json", "--capture", dir]);
    assert_eq!(live.code, Some(0), "{}", live.stderr);
    let captured = home.assay(&["facts", "cpu", "sysctl", "--json", "--root", dir]);
    assert_eq!(captured.code, Some(0), "{}", captured.stderr);
    assert_eq!(json(&live.stdout), json(&captured.stdout));
    let again = home.assay(&["facts", "--capture", dir]);
    assert_eq!(again.code, Some(2));
    insta::assert_snapshot!(home.told(&again.stderr), @"assay: HOME/captured: the directory is not empty; name a new one");
}

#[test]
fn a_directory_that_cannot_be_read_is_status_3() {
    let home = Home::new();
    let missing = home.assay(&["facts", "--root", "/nonexistent/captured"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(3), ""));
    assert!(
        missing.stderr.contains("/nonexistent/captured"),
        "{}",
        missing.stderr
    );
    let index = home.dir.path().join("assay-capture.json");
    std::fs::write(index, "{").unwrap();
    let broken = home.assay(&["facts", "--root", home.dir.path().to_str().unwrap()]);
    assert_eq!(broken.code, Some(3));
    assert!(
        broken.stderr.contains("assay-capture.json"),
        "{}",
        broken.stderr
    );
}

/// A directory packed by hand: only files, one of them hostile.
#[test]
fn a_directory_of_plain_files_is_a_capture() {
    let home = Home::new();
    let put = |path: &str, text: &[u8]| {
        let path = home.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("proc/sys/kernel/osrelease", b"5.10.0\x1b[31m\xff\n");
    put("proc/sys/vm/dirty_ratio", b"20\n");
    put(
        "etc/sysctl.d/50-storage.conf",
        b"# ours\nvm.dirty_ratio = 5\n",
    );
    let ran = home.assay(&["facts", "--root", home.dir.path().to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("5.10.0\\u{1b}[31m"), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("/etc/sysctl.d/50-storage.conf:2 (configured)"),
        "{}",
        ran.stdout
    );
    // No tool was captured: there is no version, and no invented device.
    assert!(!ran.stdout.contains("disk."), "{}", ran.stdout);
}

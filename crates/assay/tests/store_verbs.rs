//! Tests `runs`, `show`, `compare` and `export` on imported results of fio, so that no load is needed.
#![allow(
    clippy::disallowed_methods,
    reason = "tests write and read the files they name"
)]

mod common;

use common::Home;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../judge/fixtures/fio-3.33")
        .join(name)
}

/// Creates a store with two runs: 1 reads, 2 writes with fdatasync.
fn home() -> Home {
    let home = Home::new();
    for name in ["clean-read.json", "fdatasync.json"] {
        let ran = home.assay(&["import", fixture(name).to_str().unwrap()]);
        assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    }
    home
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn without_a_store_nothing_is_made() {
    let home = Home::new();
    let ran = home.assay(&["runs"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    insta::assert_snapshot!(home.told(&ran.stderr), @"nothing has been measured yet (HOME/store.db holds no runs): `assay run quick .` does");
    assert_eq!(
        json(&home.assay(&["runs", "--json"]).stdout)["runs"],
        serde_json::json!([])
    );
    let mut said = String::new();
    for verb in [
        &["show"][..],
        &["compare", "1", "2"],
        &["export", "last"],
        &["runs", "delete", "1", "--yes"],
    ] {
        let ran = home.assay(verb);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{verb:?}");
        said += &home.refusal(&ran);
    }
    insta::assert_snapshot!(said, @r"
    assay: nothing has been measured yet (HOME/store.db holds no runs): `assay run quick .` does
    assay: nothing has been measured yet (HOME/store.db holds no runs): `assay run quick .` does
    assay: nothing has been measured yet (HOME/store.db holds no runs): `assay run quick .` does
    assay: nothing has been measured yet (HOME/store.db holds no runs): `assay run quick .` does
    ");
    assert!(!home.dir.path().join("store.db").exists());
}

#[test]
fn runs_are_listed_newest_first_and_within_80_columns() {
    let home = home();
    let ran = home.assay(&["runs"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(
        lines[1].trim_start().starts_with("2 ") && lines[2].trim_start().starts_with("1 "),
        "{}",
        ran.stdout
    );
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{}",
        ran.stdout
    );
    let runs = json(&home.assay(&["runs", "--json", "-n", "1"]).stdout);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    assert_eq!(runs["runs"][0]["id"], 2);
    let none = home.assay(&["runs", "--plan", "matrix"]);
    assert_eq!(none.stdout, "");
    insta::assert_snapshot!(none.stderr, @"no run fits; `assay report runs` lists all");
}

#[test]
fn a_run_is_shown_in_every_form() {
    let home = home();
    let text = home.assay(&["show", "last"]);
    assert_eq!(text.code, Some(0), "{}", text.stderr);
    let heads = text
        .stdout
        .lines()
        .filter(|line| line.starts_with(char::is_uppercase) && line.split(' ').count() < 4);
    insta::assert_snapshot!(heads.collect::<Vec<_>>().join("\n"), @r"
    Why not more?
    Steady or burst?
    Doubts
    Next
    ");
    let samples = home.assay(&["show", "1", "--samples"]).stdout;
    assert!(
        samples.contains("round") && samples.contains("p99.9"),
        "{samples}"
    );
    let document = json(&home.assay(&["show", "2", "--json"]).stdout);
    assert_eq!(document["run"]["id"], 2);
    assert_eq!(document["results"][0]["limit"]["what"], "flush");
}

#[test]
fn runs_that_do_not_exist_are_named_with_those_that_do() {
    let home = home();
    let mut said = String::new();
    for name in ["99", "last~5", "quick", ""] {
        let ran = home.assay(&["show", name]);
        assert_eq!(ran.code, Some(2));
        said += &ran.stderr;
    }
    insta::assert_snapshot!(said, @r"
    assay: there is no run `99`; there are 2, 1 (`assay report runs` lists them)
    assay: there is no run `last~5`; there are 2, 1 (`assay report runs` lists them)
    assay: `quick` does not name one: use its number, `last`, `last~1` for the one before, or at least four characters of its uid
    assay: `` does not name one: use its number, `last`, `last~1` for the one before, or at least four characters of its uid
    ");
}

#[test]
fn two_runs_are_compared() {
    let home = home();
    let other = home.assay(&["compare", "1", "2"]);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    insta::assert_snapshot!(other.stdout, @r"
    run 2 (B) against run 1 (A)

    Environment
      no difference in the facts of the two runs

    Beware
      - the two runs were made at different times: whatever changed on the machine
        in between is part of the difference
      - the machine and environment of the first run are unknown
      - the machine and environment of the second run are unknown

    Figures
      no workload in common, by name or by pattern, block size and depth
      - only in A: clean-read on /srv/t/f
      - only in B: fdatasync on /srv/t/f
    ");
    let same = json(&home.assay(&["compare", "1", "1", "--json"]).stdout);
    let rows = same["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    assert!(
        rows.iter()
            .all(|row| row["ratio"] == 1.0 && row["verdict"] == "unclear")
    );
    let one = json(
        &home
            .assay(&["compare", "1", "1", "--json", "--metric", "p99"])
            .stdout,
    );
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);
    let read = home.assay(&["compare", "1", "1", "--metric", "read.p90"]);
    assert!(read.stdout.contains("read p90"), "{}", read.stdout);
    let bad = home.assay(&["compare", "1", "2", "--metric", "speed"]);
    assert_eq!(bad.code, Some(2));
    assert!(bad.stderr.contains("p99.9"), "{}", bad.stderr);
}

#[test]
fn an_export_goes_into_another_store_and_comes_out_the_same() {
    let (home, other) = (home(), Home::new());
    let file = home.dir.path().join("run.json");
    let path = file.to_str().unwrap();
    assert_eq!(home.assay(&["export", "1", "-o", path]).code, Some(0));
    let imported = other.assay(&["import", path]);
    assert!(matches!(imported.code, Some(0 | 1)), "{}", imported.stderr);
    let back = other.assay(&["export", "last"]);
    assert_eq!(back.stdout, std::fs::read_to_string(&file).unwrap());
    other.assay(&["import", path]);
    assert_eq!(
        json(&other.assay(&["runs", "--json"]).stdout)["runs"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn csv_has_one_line_for_each_sample_and_units_in_the_header() {
    let home = home();
    let text = home.assay(&["export", "2", "--format", "csv"]).stdout;
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!((lines.len(), lines[2]), (3, ""));
    assert!(lines[0].contains("p99_ns") && lines[0].contains("throughput_bytes_per_s"));
    assert_eq!(lines[0].matches(',').count(), lines[1].matches(',').count());
}

#[test]
fn nothing_is_deleted_without_a_yes() {
    let home = home();
    let ran = home.assay(&["runs", "delete", "last", "1"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("--yes"), "{}", ran.stderr);
    let count = || {
        json(&home.assay(&["runs", "--json"]).stdout)["runs"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(count(), 2);
    assert_eq!(
        home.assay(&["runs", "delete", "last", "77", "--yes"]).code,
        Some(2)
    );
    assert_eq!(count(), 2, "a wrong name among right ones removes nothing");
    assert_eq!(
        home.assay(&["runs", "delete", "last", "2", "--yes"]).code,
        Some(0)
    );
    assert_eq!(count(), 1, "`last` and `2` are the same run");
}

#[test]
fn files_that_are_no_store_are_refused_with_status_3() {
    let home = Home::new();
    let notes = home.dir.path().join("notes.txt");
    std::fs::write(&notes, "not a database").unwrap();
    for path in [
        notes.to_str().unwrap(),
        home.dir.path().to_str().unwrap(),
        "/dev/null",
    ] {
        let ran = home.assay(&["runs", "--store", path]);
        assert_eq!(ran.code, Some(3), "{path}: {}", ran.stderr);
        assert!(ran.stderr.contains("--store"), "{}", ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "not a database");
}

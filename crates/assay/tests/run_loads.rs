//! Tests `assay run` with loads other than fio: no test file, and the same store, comparison and reports.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, entries};
use serde_json::Value;
use std::path::PathBuf;

/// Writes a plan with a command and a null load, and returns its path.
fn plan(home: &Home, argv: &str) -> PathBuf {
    let path = home.dir.path().join("loads.toml");
    let text = format!(
        r#"
name = "loads"
rounds = 3
runtime = "150ms"
ramp = "20ms"
want = ["list.p50 < 30s"]

[[workload]]
name = "list"
load = {{ kind = "command", argv = {argv} }}

[[workload]]
load = {{ kind = "null" }}
"#
    );
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_command_is_measured_stored_compared_and_reported() {
    let home = Home::new();
    let target = home.target();
    std::fs::write(target.path().join("of the user"), "").unwrap();
    let file = plan(&home, r#"["ls", "{path}"]"#);
    let (file, dir) = (file.to_str().unwrap(), target.path().to_str().unwrap());
    for _ in 0..2 {
        let out = home.assay(&["run", "--plan-file", file, dir, "--json"]);
        assert_eq!(out.code, Some(0), "{}", out.stderr);
        let document: Value = serde_json::from_str(&out.stdout).unwrap();
        let samples = document["samples"].as_array().unwrap();
        assert_eq!(samples.len(), 6);
        for sample in samples {
            assert_eq!(sample["outcome"]["state"], "completed", "{sample}");
        }
        let results = document["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        for result in results {
            assert!(
                result["metrics"]["iops"]["value"].as_f64().unwrap() > 1.0,
                "{result}"
            );
            assert_ne!(result["validity"], "void", "{result}");
        }
    }
    // Nothing was created beside the user's files.
    assert_eq!(entries(target.path()), ["of the user"]);
    for args in [
        &["compare", "1", "2"][..],
        &["show", "1"],
        &["export", "1", "--format", "csv"],
        &["report", "1", "--format", "md"],
    ] {
        let out = home.assay(args);
        assert_eq!(out.code, Some(0), "{args:?}: {}", out.stderr);
        assert!(out.stdout.contains("list"), "{args:?}: {}", out.stdout);
    }
    let exported = home.assay(&["export", "1", "--format", "json"]);
    let export = home.dir.path().join("run.json");
    std::fs::write(&export, &exported.stdout).unwrap();
    let document: Value = serde_json::from_str(&exported.stdout).unwrap();
    let worker = &document["samples"][0]["workers"][0];
    let kinds = worker["operations"].as_object().unwrap().keys();
    assert!(
        kinds
            .into_iter()
            .all(|kind| kind == "run" || kind == "nothing"),
        "{worker}"
    );
    let other = Home::new();
    // On a busy machine its samples have doubts, which are findings.
    let out = other.assay(&["import", export.to_str().unwrap()]);
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let shown = other.assay(&["show", "1"]);
    assert!(shown.stdout.contains("list"), "{}", shown.stdout);
}

#[test]
fn a_command_that_fails_ends_the_run_with_its_own_words() {
    let home = Home::new();
    let target = home.target();
    let file = plan(&home, r#"["ls", "/no/such/directory"]"#);
    let out = home.assay(&[
        "run",
        "--plan-file",
        file.to_str().unwrap(),
        target.path().to_str().unwrap(),
    ]);
    assert_eq!(out.code, Some(1));
    let shown = home.assay(&["export", "1"]).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    // The random order determines the first sample.
    let samples = shown["samples"].as_array().unwrap();
    let mut outcomes = samples.iter().map(|sample| &sample["outcome"]);
    let outcome = outcomes.find(|outcome| outcome["state"] == "failed");
    let outcome = outcome.unwrap_or_else(|| panic!("{shown}"));
    // The text after it is the error of ls.
    let error = outcome["error"].as_str().unwrap().split(": ").take(2);
    insta::assert_snapshot!(error.collect::<Vec<_>>().join(": "), @"ls: ended with exit status 2");
}

#[test]
fn a_study_names_any_load_that_needs_no_file() {
    const STUDY: &str = r#"name = "any"
title = "Which is faster"
question = "Is nothing faster than a command?"
bench = "commands"
source = { title = "none", machine = "none" }
forms.quick = { rounds = 2, time = "50ms" }
forms.full = { rounds = 2, time = "50ms" }

[[configuration]]
name = "command"
run = ["true"]

[[configuration]]
name = "nothing"
load = { kind = "null" }

[[figure]]
name = "rate"
better = "higher"
of = "rate"

[[conclusion]]
says = "Nothing is faster."
claim = [{ kind = "ratio", figure = "rate", of = "nothing", to = "command", at_least = 2 }]
"#;
    let home = Home::new();
    let target = home.target();
    let study = home.dir.path().join("any.toml");
    let carried = |text: String| {
        std::fs::write(&study, text).unwrap();
        let dir = target.path().to_str().unwrap();
        home.assay(&["study", study.to_str().unwrap(), dir, "--json"])
    };
    let out = carried(STUDY.to_owned());
    assert_eq!(out.code, Some(0), "{}{}", out.stdout, out.stderr);
    let document: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(document["schema"], 1);
    // A load on files is not possible in this bench.
    let fio = r#"{ kind = "fio", workload = { name = "w", pattern = "read", block_size = "4k" } }"#;
    let out = carried(STUDY.replace(r#"{ kind = "null" }"#, fio));
    assert_eq!(out.code, Some(2), "{}{}", out.stdout, out.stderr);
}

#[test]
fn a_web_server_is_a_target_as_any_other() {
    use assay_testing::servers::nginx::Nginx;
    let Some(nginx) = Nginx::with_files("") else {
        return;
    };
    let home = Home::new();
    let url = nginx.url("/small");
    let args = [
        "run",
        &url,
        "--rounds",
        "2",
        "--runtime",
        "200ms",
        "--ramp",
        "50ms",
        "-q",
        "--json",
    ];
    let out = home.assay(&args);
    // A busy machine may void samples; the criterion of another test would be missed.
    assert!(matches!(out.code, Some(0 | 1)), "{}", out.stderr);
    let document: Value = serde_json::from_str(&out.stdout).unwrap();
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 4);
    let exported = home.assay(&["export", "1", "--format", "json"]);
    let document: Value = serde_json::from_str(&exported.stdout).unwrap();
    let samples = document["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 8);
    for sample in samples {
        assert_eq!(sample["outcome"]["state"], "completed", "{sample}");
        assert_eq!(sample["target"], url);
        let seen = &sample["workers"][0]["http"];
        assert!(
            seen["measured"]["answers"].as_u64().unwrap() > 0,
            "{sample}"
        );
        assert!(
            seen["server"]["Ok"]["cpu"].as_u64().unwrap() > 0,
            "{sample}"
        );
    }
    let refuse = |args: &[&str], said: &str| {
        let out = home.assay(args);
        assert_eq!(out.code, Some(2), "{args:?}: {}", out.stdout);
        assert!(out.stderr.contains(said), "{args:?}: {}", out.stderr);
    };
    let dir = home.target();
    refuse(&["run", "quick", &url], "web server");
    refuse(
        &["run", "http", dir.path().to_str().unwrap()],
        "no web server",
    );
    // Loading this machine needs no consent, but every other machine must give it.
    refuse(&["run", "http://192.0.2.1/"], "192.0.2.1");
    refuse(&["run", "http://127.0.0.1:1/"], "no connection");
    let plan = home.dir.path().join("http.toml");
    let text =
        |load: &str| format!("name = \"p\"\n[[workload]]\nload = {{ kind = \"http\", {load} }}\n");
    for (load, said) in [
        ("conections = 1", "conections"),
        ("share = 0.5", "share"),
        ("rate = -1", "rate"),
        ("log = \"/no/such\"", "/no/such"),
    ] {
        std::fs::write(&plan, text(load)).unwrap();
        refuse(&["run", "--plan-file", plan.to_str().unwrap(), &url], said);
    }
}

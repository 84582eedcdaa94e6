//! What a user tries who does not believe it: goals that cannot be reached, files that are wrong, passwords, two
//! sessions at once, a load that goes away.

use super::LESS;
use super::planted::{Planted, json, names, until};
use crate::common;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;

#[test]
fn a_goal_below_the_lowest_layer_is_beyond_reach_and_nothing_is_touched() {
    let planted = Planted::new();
    let before = fs::metadata(planted.conf()).unwrap().modified().unwrap();
    // Starting a process takes longer.
    let ran = planted.tune("p50 <= 1us", &["fast"], &["--budget", "120s"]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    assert!(
        document["bottom"]["range"][0].as_f64().unwrap() > 1e-6,
        "{document:#}"
    );
    assert!(document["limit"]["code"].is_string(), "{document:#}");
    assert!(names(&document, "kept").is_empty() && names(&document, "tried").is_empty());
    let after = fs::metadata(planted.conf()).unwrap().modified().unwrap();
    assert!(planted.is_as_before() && before == after);
}

#[test]
fn a_goal_file_says_what_is_wanted_and_what_is_never_touched() {
    let planted = Planted::new();
    let file = planted.conf().with_file_name("goal.toml");
    let touched = format!("{}: mode", planted.conf().display());
    let text = format!(
        "[goal]\nload = \"{}\"\nwant = [\"less p50\"]\nonly = [\"fast.md\", \"idle.md\"]\n\
         [budget]\ntime = \"2m\"\n[never]\nsettings = [\"{touched}\"]\nbecause = \"agreed\"\n",
        planted.load("")
    );
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let ran = planted.home.assay(&[
        "tune",
        "--goal",
        path,
        "--dry-run",
        "--json",
        "--slot",
        "250ms",
    ]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(names(&document, "planned"), ["idle"], "{document:#}");
    assert_eq!(names(&document, "left_out"), ["fast"]);
    assert!(
        document["left_out"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("agreed")
    );
    assert_eq!(document["budget_seconds"], 120.0);
    for wrong in ["[goal]\nwants = []\n", "not toml", ""] {
        fs::write(&file, wrong).unwrap();
        let ran = planted.home.assay(&["tune", "--goal", path]);
        assert_eq!(ran.code, Some(2), "{wrong}");
        assert!(ran.stderr.contains("goal.toml"), "{}", ran.stderr);
    }
    assert!(planted.is_as_before());
}

#[test]
fn passwords_of_commands_are_nowhere() {
    let planted = Planted::new();
    let secret = "Canary7";
    let load = planted.load(&format!(" --password {secret}"));
    let guard = format!("sh -c 'exit 0 # PGPASSWORD={secret}'");
    let words = [
        "tune",
        "--load",
        &load,
        "--while-ok",
        &guard,
        "--want",
        "p50 <= 1us",
        "--yes",
    ];
    let page = planted.page("fast");
    let more = [
        "--only",
        page.to_str().unwrap(),
        "--slot",
        "250ms",
        "--budget",
        "2m",
        "--no-boot-undo",
    ];
    let all: Vec<&str> = words.iter().chain(&more).copied().collect();
    let ran = planted.home.assay(&all);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let shown = planted.home.assay(&["tune", "--show", "--markdown"]);
    let document = planted.home.assay(&["tune", "--show", "--json"]);
    for text in [&ran.stdout, &ran.stderr, &shown.stdout, &document.stdout] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(shown.stdout.contains("withheld"), "{}", shown.stdout);
    let stored = fs::read(planted.home.dir.path().join("store.db")).unwrap();
    let found = stored
        .windows(secret.len())
        .any(|part| part == secret.as_bytes());
    assert!(!found, "the store holds the password");
}

#[test]
fn a_session_beside_another_one_is_refused() {
    let planted = Planted::new();
    let mut command = planted.home.command(&planted.words(LESS, &["fast"], &[]));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    until("the change", || planted.text().contains("mode = fast"));
    let second = planted.tune(LESS, &["idle"], &[]);
    assert_eq!(second.code, Some(2), "{}", second.stdout);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let first = common::ran(child.wait_with_output().unwrap());
    assert_eq!(first.code, Some(130), "{}", first.stderr);
    assert!(planted.is_as_before(), "{}", planted.text());
}

#[test]
fn a_load_that_goes_away_ends_the_session_and_everything_is_reverted() {
    let planted = Planted::new();
    let mut command = planted.home.command(&planted.words(LESS, &["fast"], &[]));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    until("the change", || planted.text().contains("mode = fast"));
    planted.remove_load();
    let ran = common::ran(child.wait_with_output().unwrap());
    assert!(
        matches!(ran.code, Some(1 | 2)),
        "{:?} {}",
        ran.code,
        ran.stderr
    );
    assert!(planted.is_as_before(), "{}", planted.text());
    assert!(planted.has_no_open_session());
}

#[test]
fn what_does_not_fit_the_load_is_refused() {
    let planted = Planted::new();
    for (words, hint) in [
        (
            &[
                "http://127.0.0.1:9/",
                "--want",
                "randread-4k-qd1.p99 <= 1ms",
            ][..],
            "http",
        ),
        (
            &["http://192.0.2.1/", "--want", "less http.p50"],
            "another machine",
        ),
        (
            &[
                "http://127.0.0.1:9/",
                "--load",
                "true",
                "--want",
                "less p50",
            ],
            "--load",
        ),
        (
            &["--load", "true", "--want", "less p50", "--while-ok", ""],
            "empty",
        ),
        (&["--load", "true", "--want", "p50 <= 1"], "duration"),
    ] {
        let words: Vec<&str> = ["tune"].iter().chain(words).copied().collect();
        let ran = planted.home.assay(&words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(hint), "{words:?}: {}", ran.stderr);
    }
}

/// Begins a session, and calls `disturb` after the change was in effect twice. Returns how the session ended.
fn disturbed(planted: &Planted, disturb: impl FnOnce()) -> common::Ran {
    let mut command = planted.home.command(&planted.words(LESS, &["fast"], &[]));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    for _ in 0..2 {
        until("a change", || planted.text().contains("mode = fast"));
        until("its end", || !planted.text().contains("mode = fast"));
    }
    disturb();
    common::ran(child.wait_with_output().unwrap())
}

#[test]
fn records_that_disappear_end_the_session_and_nothing_stays_changed() {
    for removes_journal in [true, false] {
        let planted = Planted::new();
        let state = planted.home.state();
        let ran = disturbed(&planted, || {
            if removes_journal {
                // The session may write at this moment.
                while fs::remove_dir_all(&state).is_err() && state.exists() {}
            } else {
                for end in ["", "-wal", "-shm"] {
                    let _ = fs::remove_file(planted.home.dir.path().join(format!("store.db{end}")));
                }
            }
        });
        assert_eq!(ran.code, Some(2), "{}\n{}", ran.stderr, ran.stdout);
        assert!(planted.is_as_before(), "{}", planted.text());
    }
}

#[test]
fn a_file_that_somebody_removes_is_not_created_again_and_can_be_forgotten() {
    let planted = Planted::new();
    let ran = disturbed(&planted, || fs::remove_file(planted.conf()).unwrap());
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    assert_eq!(document["state"], "stopped");
    assert!(!planted.conf().exists());
    planted.home.assay(&["trial", "--recover", "--accept"]);
    assert!(planted.has_no_open_session());
}

#[test]
fn a_change_with_which_the_load_prints_an_error_is_left_out_although_the_load_succeeds() {
    let planted = Planted::new();
    let script = "#!/bin/sh\ngrep -q 'mode = fast' \"$1\" || exec sleep 0.1\necho 'no data' >&2\n";
    let load = planted.script("complains", script);
    let mut words = planted.words(LESS, &["fast"], &[]);
    words[2] = format!("{} {}", load.display(), planted.conf().display());
    let ran = planted.home.assay(&words);
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "left_out"), ["fast"], "{document:#}");
    let reason = document["left_out"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("no data"), "{reason}");
    assert!(planted.is_as_before());
}

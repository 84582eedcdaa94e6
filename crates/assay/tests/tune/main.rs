//! Tests `assay tune` on planted programs with known effects.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

#[path = "../common/mod.rs"]
mod common;
mod killed;
mod objects;
mod pieces;
mod planted;
mod printed;
mod sceptic;
mod wears_off;
mod web_server;

use planted::{Planted, json, names, until};
use std::fs;
use std::process::Stdio;

const LESS: &str = "less p50";

#[test]
fn a_gain_is_kept_harm_is_not_and_undo_restores_every_byte() {
    let planted = Planted::new();
    let before = fs::metadata(planted.conf()).unwrap().modified().unwrap();
    let ran = planted.tune(LESS, &["harm", "breaker", "fast", "idle"], &[]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "kept"), ["fast"]);
    assert_eq!(names(&document, "left_out"), ["breaker"]);
    assert!(document["gain"].as_f64().unwrap() > 0.05, "{document:#}");
    assert!(planted.text().contains("mode = fast") && planted.text().contains("bad = no"));
    // The notebook in its other formats.
    let page = planted.home.dir.path().join("notebook.html");
    let shown = planted.home.assay(&[
        "tune",
        "--show",
        "--markdown",
        "--html",
        page.to_str().unwrap(),
    ]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("assay tune --undo 1"),
        "{}",
        shown.stdout
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.len() < 400_000 && page.contains("breaker") && !page.contains("<script"));
    let listed = planted.home.assay(&["tune", "--list"]);
    assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.stdout);
    // Another program changes another line: that change stays.
    let undone = planted.home.assay(&["tune", "--undo"]);
    assert_eq!(undone.code, Some(0), "{}", undone.stderr);
    assert!(planted.is_as_before(), "{}", planted.text());
    let after = fs::metadata(planted.conf()).unwrap().modified().unwrap();
    assert_eq!(before, after);
    let again = planted.home.assay(&["tune", "--undo", "1"]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
}

#[test]
fn of_twins_one_is_kept_and_a_later_change_is_not_overwritten() {
    let planted = Planted::new();
    let ran = planted.tune(LESS, &["twin-one", "twin-two"], &[]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert_eq!(names(&document, "kept").len(), 1, "{document:#}");
    // The administrator changes the kept key: undo reports it and leaves it unchanged.
    let key = match planted.text().contains("twin-a = 1") {
        true => "twin-a",
        false => "twin-b",
    };
    let text = planted
        .text()
        .replace(&format!("{key} = 1"), &format!("{key} = 7"));
    fs::write(planted.conf(), text).unwrap();
    let undone = planted.home.assay(&["tune", "--undo"]);
    assert_eq!(undone.code, Some(1), "{}", undone.stderr);
    assert!(undone.stdout.contains(key), "{}", undone.stdout);
    assert!(planted.text().contains(&format!("{key} = 7")));
    planted.forget_open_changes();
}

#[test]
fn a_goal_that_is_met_touches_nothing() {
    let planted = Planted::new();
    let before = fs::metadata(planted.conf()).unwrap().modified().unwrap();
    let ran = planted.tune("load.p50 <= 20s", &["fast"], &[]);
    let document = json(&ran);
    assert_eq!(ran.code, Some(0), "{}\n{document:#}", ran.stderr);
    assert!(names(&document, "kept").is_empty() && names(&document, "tried").is_empty());
    let after = fs::metadata(planted.conf()).unwrap().modified().unwrap();
    assert!(planted.is_as_before() && before == after);
}

#[test]
fn a_setting_that_somebody_else_changes_ends_the_session_and_is_left_alone() {
    let planted = Planted::new();
    let mut command = planted.home.command(&planted.words(LESS, &["fast"], &[]));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    // In effect, and no longer only a test write.
    until("the change", || {
        let is_made = || planted.text().contains("mode = fast");
        is_made() && {
            std::thread::sleep(std::time::Duration::from_millis(50));
            is_made()
        }
    });
    let text = planted.text().replace("mode = fast", "mode = mine");
    let aside = planted.conf().with_extension("aside");
    fs::write(&aside, text).unwrap();
    fs::rename(aside, planted.conf()).unwrap();
    let ran = common::ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(planted.text().contains("mode = mine"), "{}", planted.text());
    assert!(ran.stderr.contains("app.conf"), "{}", ran.stderr);
    assert_eq!(json(&ran)["state"], "stopped");
    planted.forget_open_changes();
}

#[test]
fn a_guard_command_takes_a_candidate_out_or_ends_the_session() {
    let planted = Planted::new();
    let guard = planted.script(
        "guard",
        "#!/bin/sh\ntest ! -e \"$2\" || exit 1\n! grep -q 'mode = fast' \"$1\"\n",
    );
    let flag = planted.conf().with_file_name("down");
    let guard = format!(
        "{} {} {}",
        guard.display(),
        planted.conf().display(),
        flag.display()
    );
    let words = ["--while-ok", &guard];
    // It fails with the effective candidate, which is left out.
    let ran = planted.tune(LESS, &["fast", "idle"], &words);
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    assert!(names(&document, "left_out").contains(&"fast".to_owned()));
    assert!(names(&document, "kept").is_empty() && planted.is_as_before());
    // It begins to fail in the middle: everything is reverted.
    let mut command = planted
        .home
        .command(&planted.words(LESS, &["harm", "idle"], &words));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    let mut seen = 0;
    until("some changes", || {
        until("a change", || planted.text().contains("bad = yes"));
        until("its end", || !planted.text().contains("bad = yes"));
        seen += 1;
        seen == 3
    });
    fs::write(&flag, "").unwrap();
    let ran = common::ran(child.wait_with_output().unwrap());
    let document = json(&ran);
    assert_eq!(ran.code, Some(1), "{}\n{document:#}", ran.stderr);
    assert_eq!(document["state"], "stopped");
    assert!(planted.is_as_before(), "{}", planted.text());
}

#[test]
fn what_cannot_begin_says_why_and_touches_nothing() {
    let planted = Planted::new();
    let refused = |want: &str, pages: &[&str], more: &[&str]| {
        let ran = planted.tune(want, pages, more);
        assert_eq!(ran.code, Some(2), "{want}: {}", ran.stdout);
        assert!(planted.is_as_before());
        ran.stderr
    };
    let goal = refused("faster", &["fast"], &[]);
    assert!(
        goal.contains("randwrite-16k-qd1-fsync.p99 <= 30ms"),
        "{goal}"
    );
    let short = refused(LESS, &["fast"], &["--budget", "5s"]);
    assert!(short.contains("takes about"), "{short}");
    refused("other.p50 <= 1s", &["fast"], &[]);
    refused(LESS, &["fast"], &["--want", "more p50"]);
    let figure = refused("less flush.p50", &["fast"], &[]);
    assert!(figure.contains("p99"), "{figure}");
    let planned = planted.tune(LESS, &["fast", "already"], &["--dry-run"]);
    assert_eq!(planned.code, Some(0), "{}", planned.stderr);
    let planned = json(&planned);
    assert_eq!(names(&planned, "planned"), ["fast"]);
    assert_eq!(names(&planned, "left_out"), ["already"]);
    let none = planted.tune(LESS, &["already"], &[]);
    assert_eq!(none.code, Some(1), "{}", none.stderr);
    assert!(planted.is_as_before());
}

//! Tests `assay trial` with real images, devices and services.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

mod apache;
#[path = "../common/mod.rs"]
mod common;
mod databases;
mod kernel;
mod mail;
mod nginx;
mod refused;
mod services;
mod slots;
mod stopped;

use assay_testing::servers::skip;
use common::{Home, Ran, entries, ran};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// The shortest trial.
const SHORT: [&str; 6] = ["--slot", "200ms", "--washout", "50ms", "--size", "16MiB"];

fn args(words: &[&str], more: &[&str]) -> Vec<OsString> {
    words.iter().chain(more).map(OsString::from).collect()
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| {
        panic!("{error}: {} {}", ran.stdout, ran.stderr);
    })
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Seconds of sleep, so long that a busy machine does not hide the difference.
const SLOW: &str = "0.3";

/// A user page: a file contains the duration of the load.
struct Own {
    dir: tempfile::TempDir,
}

impl Own {
    fn new(now: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let own = Self { dir };
        fs::write(own.setting(), now).unwrap();
        fs::write(own.load(), "#!/bin/sh\nsleep \"$(cat \"$1\")\"\n").unwrap();
        fs::write(own.apply(), "#!/bin/sh\nprintf %s \"$1\" > \"$2\"\n").unwrap();
        for script in [own.load(), own.apply()] {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
        }
        fs::write(own.page(), own.text()).unwrap();
        own
    }
    fn setting(&self) -> PathBuf {
        self.dir.path().join("set ting; $(x)")
    }
    fn load(&self) -> PathBuf {
        self.dir.path().join("load")
    }
    fn apply(&self) -> PathBuf {
        self.dir.path().join("apply")
    }
    fn page(&self) -> PathBuf {
        self.dir.path().join("sleep-less.md")
    }
    fn value(&self) -> String {
        fs::read_to_string(self.setting()).unwrap()
    }
    fn text(&self) -> String {
        let (file, load, apply) = (self.setting(), self.load(), self.apply());
        let (file, load, apply) = (text(&file), text(&load), text(&apply));
        format!(
            r#"+++
title = "Sleep less"
statement = "Sleep less."
predicts = "Faster."
[source]
who = "A colleague"
claimed = "It is faster."
[literature]
standing = "confirmed"
text = "sleep(1)"
references = ["sleep(1)"]
[risk]
level = "low"
text = "None."
[parameters.to]
about = "Seconds"
default = "0.01"
[trial]
target = "address"
default_target = "here"
metric = "p50"
slot_seconds = 0.1
washout_seconds = 0.0
[trial.change]
kind = "set"
value = "{{to}}"
setting = {{ kind = "command", read = ["cat", "{file}"], apply = ["{apply}", "{{value}}", "{file}"], undo = ["{apply}", "{{value}}", "{file}"] }}
[trial.load]
kind = "command"
argv = ["{load}", "{file}"]
+++
## Claim
Faster.
## Why it may help
Less sleep.
## When it does not apply
Never.
## How we test
The load.
## Undo
The old value.
## Sources
sleep(1)
"#
        )
    }
}

#[test]
fn what_is_better_is_kept_only_when_asked() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let seen = home.assay(&args(&["trial", text(&page), "--yes", "--json"], &[]));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(json(&seen)["verdict"], "better", "{}", seen.stdout);
    assert_eq!(own.value(), SLOW, "set back");

    let kept = home.assay(&args(&["trial", text(&page), "--yes", "--keep"], &[]));
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert!(kept.stdout.starts_with("BETTER"), "{}", kept.stdout);
    assert_eq!(own.value(), "0.01", "kept");

    let worse = args(
        &["trial", text(&page), "--yes", "--keep", "--set", "to=0.35"],
        &[],
    );
    let worse = home.assay(&worse);
    assert_eq!(worse.code, Some(1), "{}", worse.stderr);
    assert!(worse.stdout.starts_with("WORSE"), "{}", worse.stdout);
    insta::assert_snapshot!(home.told(worse.stderr.lines().last().unwrap()), @r#"sleep-less was not kept: the verdict is not "better""#);
    assert_eq!(own.value(), "0.01", "set back");

    let list = home.assay(&["trial", "--list"]);
    assert_eq!(
        list.stdout.matches("sleep-less").count(),
        3,
        "{}",
        list.stdout
    );
    let page = home.dir.path().join("t.html");
    let show = home.assay(&["trial", "--show", "1", "--html", text(&page)]);
    assert!(show.stdout.starts_with("BETTER"), "{}", show.stdout);
    assert!(fs::read_to_string(page).unwrap().contains("<svg"));
}

/// A finding about speed is untested until a trial on this machine has a verdict, which is then
/// shown.
#[test]
fn a_check_shows_the_verdict_of_a_trial() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let dir = own.dir.path().join("advice/own");
    fs::create_dir_all(&dir).unwrap();
    let check = "[check]\nviolated = '\"kernel.release\" in facts'\nseverity = \"low\"\n[check.say]\n\
                 title = \"It sleeps\"\ntext = \"It sleeps for long.\"\n[check.remedy]\nsteps = [\"Sleep less.\"]\nundo = [\"Sleep more.\"]\n+++\n## Claim";
    let page = own.text().replacen("+++\n## Claim", check, 1);
    fs::write(dir.join("sleep-less.md"), page).unwrap();
    let advice = dir.parent().unwrap();
    let checked = |more: &[&str]| {
        let base = [
            "check",
            "--only",
            "sleep-less",
            "--advice-dir",
            text(advice),
        ];
        home.assay(&args(&base, more))
    };
    let before = checked(&[]);
    assert_eq!(before.code, Some(1), "{}", before.stderr);
    assert!(before.stdout.contains("untested here"), "{}", before.stdout);
    assert!(json(&checked(&["--json"]))["findings"][0]["verdict"].is_null());

    // An A/A trial has no verdict on the advice.
    let trial = ["trial", "sleep-less", "--advice-dir", text(advice), "--yes"];
    let aa = home.assay(&args(&trial, &["--aa"]));
    assert_eq!(aa.code, Some(0), "{}", aa.stderr);
    assert!(checked(&[]).stdout.contains("untested here"));

    let tried = home.assay(&args(&trial, &["--json"]));
    assert_eq!(tried.code, Some(0), "{}", tried.stderr);
    let after = json(&checked(&["--json"]));
    let verdict = &after["findings"][0]["verdict"];
    assert_eq!(verdict["verdict"], json(&tried)["verdict"]);
    assert_eq!(verdict["trial"], 2, "{verdict}");
    assert_eq!(verdict["day"].as_str().unwrap().len(), 10);
    let told = checked(&[]).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("assay trial --show 2"), "{told}");
    assert!(!told.contains("untested here"), "{told}");
}

/// The page permits a much worse p99; the median gets better. Keeping it requires another option.
#[test]
fn a_figure_that_got_clearly_worse_is_not_kept_without_a_second_word() {
    let (home, own) = (Home::new(), Own::new("0.3"));
    // One run in four is slow with the change; the total is faster, also on a busy machine.
    let load = "#!/bin/sh\nv=$(cat \"$1\")\nc=\"$1.count\"\nn=$(cat \"$c\" 2>/dev/null || echo 0)\n\
                echo $((n + 1)) > \"$c\"\n\
                [ \"$v\" = 0.01 ] && [ $((n % 4)) -eq 0 ] && sleep 0.6\nsleep \"$v\"\n";
    fs::write(own.load(), load).unwrap();
    let page = fs::read_to_string(own.page()).unwrap();
    let page = page.replace(
        "slot_seconds = 0.1",
        "slot_seconds = 1.0\nno_tail_guard = \"this test asks what happens then\"",
    );
    fs::write(own.page(), page).unwrap();
    let page = own.page();
    let words = ["trial", text(&page), "--yes", "--keep"];
    let kept = home.assay(&args(&words, &[]));
    assert_eq!(kept.code, Some(1), "{} {}", kept.stdout, kept.stderr);
    assert!(kept.stdout.starts_with("BETTER"), "{}", kept.stdout);
    assert!(kept.stderr.contains("--despite-worse"), "{}", kept.stderr);
    assert!(kept.stderr.contains("p99"), "{}", kept.stderr);
    assert_eq!(own.value(), "0.3", "set back");
    let kept = home.assay(&args(&words, &["--despite-worse"]));
    assert_eq!(kept.code, Some(0), "{} {}", kept.stdout, kept.stderr);
    assert!(kept.stderr.contains("WORSE"), "{}", kept.stderr);
    assert_eq!(own.value(), "0.01", "kept");
}

#[test]
fn images_are_made_measured_and_gone() {
    if skip(&["qemu-img", "qemu-storage-daemon", "fio"], false) {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let words = [
        "trial",
        "qcow2-cluster-size",
        text(target.path()),
        "--pairs",
        "2",
        "--json",
    ];
    let ran = home.assay(&args(&words, &SHORT));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let trial = json(&ran);
    assert_eq!(trial["verdict"], "undecided", "{}", ran.stdout);
    assert_eq!(trial["pairs"].as_array().map(Vec::len), Some(2));
    assert_eq!(entries(target.path()), [""; 0], "nothing stays behind");
}

#[test]
fn ignored_flushes_are_unsafe_whatever_they_gain() {
    if skip(&["qemu-img", "qemu-storage-daemon", "fio"], false) {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let words = ["trial", "cache-unsafe", text(target.path()), "--json"];
    let ran = home.assay(&args(&words, &SHORT));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let trial = json(&ran);
    assert_eq!(trial["verdict"], "unsafe", "{}", ran.stdout);
    assert_eq!(entries(target.path()), [""; 0]);
    let keep = home.assay(&args(&words, &["--keep"]));
    assert_eq!(keep.code, Some(2));
    insta::assert_snapshot!(home.refusal(&keep), @"assay: cache-unsafe cannot be kept: it puts data at risk that was acknowledged as safe; no gain makes up for that. Leave out --keep to measure it anyway.");
}

/// Waits up to two minutes until a condition holds.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !so() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_trial_is_recovered() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let words = args(&["trial", text(&page), "--yes", "--quiet"], &[]);
    let mut child = home.command(&words).spawn().unwrap();
    // Stopped during the check: otherwise the slot may end before the kill.
    let process = Pid::from_child(&child);
    until("the change", || {
        kill_process(process, Signal::STOP).unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let changed = own.value() == "0.01";
        if !changed {
            kill_process(process, Signal::CONT).unwrap();
        }
        changed
    });
    child.kill().unwrap();
    child.wait().unwrap();
    // An orphaned load may still read it, but nothing writes it any more.
    assert_eq!(own.value(), "0.01");
    let note = home.assay(&args(&["trial", text(&page), "--dry-run"], &[]));
    assert!(
        note.stderr.contains("assay trial --recover"),
        "{}",
        note.stderr
    );
    let recovered = home.assay(&["trial", "--recover"]);
    // 1: something of other processes is left on this machine, with another state directory.
    let ended = matches!(recovered.code, Some(0 | 1));
    assert!(ended, "{}", recovered.stderr);
    assert!(
        recovered.stdout.contains("reverted"),
        "{}",
        recovered.stdout
    );
    assert_eq!(own.value(), SLOW);
    let again = home.assay(&["trial", "--recover"]);
    insta::assert_snapshot!(again.stdout.lines().next().unwrap(), @"Nothing to revert.");
    let again = home.assay(&["trial", "--recover", "--json"]);
    assert_eq!(json(&again)["recovered"], serde_json::json!([]));
}

#[test]
fn an_interrupted_trial_sets_back_and_goes_on_later() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let words = args(&["trial", text(&page), "--yes"], &[]);
    let child = home
        .command(&words)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    until("the change", || own.value() == "0.01");
    // A second trial on the same target would disturb the first.
    let second = home.assay(&words);
    assert_eq!(second.code, Some(2), "{}", second.stderr);
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let stopped = ran(child.wait_with_output().unwrap());
    assert_eq!(stopped.code, Some(130), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("--resume"), "{}", stopped.stderr);
    assert_eq!(own.value(), SLOW);
    let resumed = home.assay(&["trial", "--resume", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    assert_eq!(json(&resumed)["verdict"], "better", "{}", resumed.stdout);
    let whole = home.assay(&["trial", "--resume"]);
    insta::assert_snapshot!(whole.stderr, @"assay: nothing to resume: trial 1 has its verdict; `assay trial --show 1` shows it");
}

#[test]
fn in_a_against_a_nothing_is_changed() {
    let (home, own) = (Home::new(), Own::new("0.02"));
    let page = own.page();
    let words = ["trial", text(&page), "--aa", "--json", "--pairs", "6"];
    let ran = home.assay(&args(&words, &[]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_ne!(json(&ran)["verdict"], "better", "{}", ran.stdout);
    assert_eq!(own.value(), "0.02");
}

/// Returns the number of stored slots.
fn kept_slots(home: &Home) -> Option<usize> {
    let shown = home.assay(&args(&["trial", "--show", "last", "--json"], &[]));
    Some(json(&shown)["pairs"].as_array()?.len())
}

#[test]
fn an_apply_that_fails_in_the_middle_leaves_what_was_measured() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let count = own.dir.path().join("count");
    fs::write(
        own.apply(),
        format!(
            "#!/bin/sh\n[ \"$1\" = {SLOW} ] || {{ echo x >>'{0}'; [ $(wc -l <'{0}') -lt 6 ]; }} || exit 1\n\
             printf %s \"$1\" >\"$2\"\n",
            text(&count)
        ),
    )
    .unwrap();
    let words = args(
        &["trial", text(&own.page()), "--yes"],
        &["--pairs", "60", "--margin", "1%"],
    );
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(!ran.stdout.is_empty(), "the summary of what was measured");
    assert!(
        ran.stderr.contains("everything is reverted"),
        "{}",
        ran.stderr
    );
    assert_eq!(own.value(), SLOW);
    assert!(kept_slots(&home).is_some_and(|pairs| pairs >= 2));
}

/// A second session confirms the first if both have the same verdict.
#[test]
fn a_second_session_confirms_or_does_not() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let first = home.assay(&args(&["trial", text(&page), "--yes", "--json"], &[]));
    assert_eq!(json(&first)["verdict"], "better", "{}", first.stdout);
    let again = args(&["trial", "--confirm", "1", "--yes", "--json"], &[]);
    let second = home.assay(&again);
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    let both = [json(&first), json(&second)];
    let plan = |at: usize, key: &str| both[at]["trial"]["plan"][key].clone();
    assert_eq!(plan(0, "change"), plan(1, "change"));
    assert_ne!(plan(0, "seed"), plan(1, "seed"), "other coins");
    let shown = home.assay(&args(&["trial", "--show", "2", "--json"], &[]));
    let shown = json(&shown);
    let mut remarks = shown["trial"]["remarks"].as_array().unwrap().iter();
    let second = remarks.find_map(|remark| remark.as_str().filter(|text| text.contains("trial 1")));
    insta::assert_snapshot!(assay_testing::without_figures(second.unwrap()), @"second session of trial #: confirmed: first better (+#.# %), then better (+#.# %); a change that does nothing gets this verdict in both sessions in at most # of #,# cases");
    let short = args(&["trial", "--confirm", "1", "--yes", "--budget", "1s"], &[]);
    let short = home.assay(&short);
    assert_eq!(short.code, Some(2), "{} {}", short.stdout, short.stderr);
    assert!(short.stderr.contains("--budget"), "{}", short.stderr);
    // The better value is now worse. A load that ignores the setting would be called better in one
    // of twenty trials.
    let turned = "#!/bin/sh\n[ \"$(cat \"$1\")\" != 0.01 ] || sleep 0.3\nsleep 0.01\n";
    fs::write(own.load(), turned).unwrap();
    let third = home.assay(&args(
        &["trial", "--confirm", "1", "--yes", "--pairs", "6"],
        &[],
    ));
    assert_eq!(third.code, Some(1), "{} {}", third.stdout, third.stderr);
    assert_eq!(own.value(), SLOW);
}

//! `assay trial` as a user meets it, against real images, devices and services.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

#[path = "../common/mod.rs"]
mod common;
mod services;
mod stopped;

use assay_rigs::skip;
use common::{Home, Ran, entries, ran};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A trial that is as short as it can be.
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

/// Seconds of sleep; so far above the advice's own that a busy machine does not hide the difference.
const SLOW: &str = "0.3";

/// A piece of advice of the user's own: a file says how long the load takes.
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
    assert!(worse.stderr.contains("was not kept"), "{}", worse.stderr);
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

/// The page allows p99 to get far worse; the typical run gets better. To keep that takes a second word.
#[test]
fn a_figure_that_got_clearly_worse_is_not_kept_without_a_second_word() {
    let (home, own) = (Home::new(), Own::new("0.4"));
    // One run in five takes long with the change; in sum it is faster, also on a busy machine.
    let load = "#!/bin/sh\nv=$(cat \"$1\")\nc=\"$1.count\"\nn=$(cat \"$c\" 2>/dev/null || echo 0)\n\
                echo $((n + 1)) > \"$c\"\n\
                [ \"$v\" = 0.01 ] && [ $((n % 5)) -eq 0 ] && sleep 0.9\nsleep \"$v\"\n";
    fs::write(own.load(), load).unwrap();
    let page = fs::read_to_string(own.page()).unwrap();
    let page = page.replace(
        "slot_seconds = 0.1",
        "slot_seconds = 2.0\nno_tail_guard = \"this test asks what happens then\"",
    );
    fs::write(own.page(), page).unwrap();
    let page = own.page();
    let words = ["trial", text(&page), "--yes", "--keep"];
    let kept = home.assay(&args(&words, &[]));
    assert_eq!(kept.code, Some(1), "{} {}", kept.stdout, kept.stderr);
    assert!(kept.stdout.starts_with("BETTER"), "{}", kept.stdout);
    assert!(kept.stderr.contains("--despite-worse"), "{}", kept.stderr);
    assert!(kept.stderr.contains("p99"), "{}", kept.stderr);
    assert_eq!(own.value(), "0.4", "set back");
    let kept = home.assay(&args(&words, &["--despite-worse"]));
    assert_eq!(kept.code, Some(0), "{} {}", kept.stdout, kept.stderr);
    assert!(kept.stderr.contains("WORSE"), "{}", kept.stderr);
    assert_eq!(own.value(), "0.01", "kept");
}

#[test]
fn a_dry_run_and_a_refusal_touch_nothing() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let dry = home.assay(&args(&["trial", text(&page), "--dry-run"], &[]));
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(dry.stdout.contains("What would change"), "{}", dry.stdout);
    // Nobody is at the terminal to ask.
    let asked = home.assay(&args(&["trial", text(&page)], &[]));
    assert_eq!(asked.code, Some(2));
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(own.value(), SLOW);
    for (words, said) in [
        (vec!["trial"], "name the advice"),
        (
            vec!["trial", "qcow2-cluster-sise", "."],
            "qcow2-cluster-size",
        ),
        (
            vec!["trial", "qcow2-cluster-size", "/nowhere/at/all"],
            "no such file",
        ),
        (
            vec!["trial", "qcow2-cluster-size", ".", "--set", "sise=8K"],
            "size",
        ),
        (
            vec!["trial", "qcow2-cluster-size", ".", "--set", "size=3K"],
            "8K",
        ),
        (vec!["trial", "--resume"], "nothing was tried yet"),
        (vec!["trial", "--show", "7"], "no trial"),
    ] {
        let ran = home.assay(&words);
        assert_eq!(ran.code, Some(2), "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}

#[test]
fn advice_that_does_not_apply_says_which_fact_speaks_against_it() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let when = "[[when]]\ncel = 'facts[\"memory.total\"] < 1'\notherwise = \"too much memory\"\n";
    let text_of = own
        .text()
        .replace("[parameters.to]", &format!("{when}[parameters.to]"));
    fs::write(own.page(), &text_of).unwrap();
    let page = own.page();
    let ran = home.assay(&["trial", text(&page), "--yes"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("too much memory [memory.total is "),
        "{}",
        ran.stderr
    );
    assert_eq!(own.value(), SLOW);
    // A page without a trial can only be explained.
    let (head, _) = text_of.split_once("[parameters.to]").unwrap();
    let head = head
        .replace(when, "")
        .replace("sleep(1)\"", "It cannot be changed in place.\"");
    let (_, body) = text_of.rsplit_once("+++\n").unwrap();
    fs::write(own.page(), format!("{head}+++\n{body}")).unwrap();
    let ran = home.assay(&["trial", text(&page), "--yes"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("cannot be changed in place"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_page_that_is_wrong_is_told_by_its_line() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    fs::write(
        &page,
        own.text().replace("metric = \"p50\"", "metric = \"speed\""),
    )
    .unwrap();
    let ran = home.assay(&["trial", text(&page), "--yes"]);
    assert!(matches!(ran.code, Some(2 | 3)), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("sleep-less.md:21") && ran.stderr.contains("speed"),
        "{}",
        ran.stderr
    );
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
    assert!(keep.stderr.contains("cannot be kept"), "{}", keep.stderr);
}

#[test]
fn several_share_one_error_rate_and_one_report() {
    if skip(&["qemu-img", "qemu-storage-daemon", "fio"], false) {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let words = [
        "trial",
        "image-raw",
        "cache-writeback",
        text(target.path()),
        "--pairs",
        "1",
        "--json",
    ];
    let ran = home.assay(&args(&words, &SHORT));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let trials = json(&ran);
    assert_eq!(trials.as_array().map(Vec::len), Some(2), "{}", ran.stdout);
    assert_eq!(trials[0]["trial"]["plan"]["alpha"], 0.025, "{}", ran.stdout);
}

/// Waits until something is so, for at most half a minute.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
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
    until("the change", || own.value() == "0.01");
    child.kill().unwrap();
    child.wait().unwrap();
    // A load that the kill left may still be reading it, but nobody writes it any more.
    assert_eq!(own.value(), "0.01");
    let note = home.assay(&args(&["trial", text(&page), "--dry-run"], &[]));
    assert!(
        note.stderr.contains("assay trial --recover"),
        "{}",
        note.stderr
    );
    let recovered = home.assay(&["trial", "--recover"]);
    assert_eq!(recovered.code, Some(0), "{}", recovered.stderr);
    assert!(
        recovered.stdout.contains("set back"),
        "{}",
        recovered.stdout
    );
    assert_eq!(own.value(), SLOW);
    let again = home.assay(&["trial", "--recover"]);
    assert_eq!(again.stdout, "Nothing to set back.\n");
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
    // A second one on the same target would measure the first.
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
    assert!(whole.stderr.contains("has its verdict"), "{}", whole.stderr);
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

/// What others may write, own or exchange is no place for what root carries out.
#[test]
fn a_state_directory_that_is_not_ours_alone_is_refused_by_every_verb() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let home = Home::new();
    let place = home.dir.path();
    let mode = |name: &str, mode| {
        fs::set_permissions(place.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["open", "sticky", "group", "theirs", "above/below"] {
        fs::create_dir_all(place.join(name)).unwrap();
    }
    mode("open", 0o777);
    mode("sticky", 0o1777);
    mode("group", 0o770);
    mode("above", 0o777);
    symlink(place.join("above"), place.join("link")).unwrap();
    let mut bad = vec![
        "open",
        "sticky",
        "group",
        "above/below",
        "link",
        "link/below",
    ];
    match rustix::process::geteuid().is_root() {
        true => {
            std::os::unix::fs::chown(place.join("theirs"), Some(4242), None).unwrap();
            bad.push("theirs");
        }
        false => assay_testing::skipped("root", "only root can give a directory away"),
    }
    let target = home.target();
    let target = text(target.path());
    for state in bad {
        for verb in [
            &["trial", "--recover"][..],
            &["trial", "zfs-recordsize", target, "--dry-run"],
            &["run", "quick", target],
            &["stack", target, "--measure", "--yes"],
            &["lab", "list"],
            &["web", "http://127.0.0.1:1/"],
            &["net", "serve"],
            &["dups", "scan", target],
            &["disks", target],
            &["study", "run", "optane-points"],
            &["facts"],
            &["check"],
            &["advice"],
            &["runs"],
            &["demo"],
            &[],
        ] {
            let mut command = home.command(verb);
            let ran = common::ended({
                command.env("ASSAY_STATE", place.join(state));
                command
            });
            assert_eq!(ran.code, Some(2), "{state} {verb:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("ASSAY_STATE"), "{}", ran.stderr);
        }
        let kept = fs::read_dir(place.join(state)).unwrap();
        assert!(
            kept.filter_map(Result::ok)
                .all(|one| one.file_name() == "below")
        );
    }
    assert_eq!(fs::read_dir(target).unwrap().count(), 0);
}

/// A budget in which no verdict is possible is refused before anything begins, and the one
/// that is named does.
#[test]
fn a_budget_without_a_verdict_is_refused_before_anything_begins() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    let page = own.page();
    let with = |budget: &str| {
        let words = args(
            &["trial", text(&page), "--dry-run", "--slot", "2s"],
            &["--budget", budget],
        );
        home.assay(&words)
    };
    let ran = with("10s");
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    assert!(
        ran.stdout.is_empty() && ran.stderr.contains("--budget"),
        "{}",
        ran.stderr
    );
    // Six pairs of two slots of 2 s.
    assert!(ran.stderr.contains("24.0 s"), "{}", ran.stderr);
    assert_eq!(with("24s").code, Some(0));
    assert_eq!(own.value(), SLOW);
}

/// What reads already what it would be set to is the same on both sides.
#[test]
fn what_is_so_already_is_not_tried() {
    let (home, own) = (Home::new(), Own::new("0.01"));
    let page = own.page();
    for more in [vec!["--yes"], vec!["--dry-run"]] {
        let ran = home.assay(&args(&["trial", text(&page)], &more));
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        // Beside notes of what others left on this machine.
        let said = ran.stderr.lines().filter(|line| !line.starts_with("note:"));
        assert_eq!(said.count(), 1, "the answer and no plan: {}", ran.stderr);
        assert!(ran.stdout.is_empty(), "{}", ran.stdout);
    }
}

/// Slots that the store holds.
fn kept_slots(home: &Home) -> Option<usize> {
    let shown = home.assay(&args(&["trial", "--show", "last", "--json"], &[]));
    Some(json(&shown)["pairs"].as_array()?.len())
}

/// A privilege that is missing is known before the noise is measured.
#[test]
fn what_may_not_be_changed_is_known_before_the_load_runs() {
    let (home, own) = (Home::new(), Own::new(SLOW));
    // What cannot be set back either stays in the machine's notes, for the next test to stumble over.
    let apply = format!("#!/bin/sh\n[ \"$1\" = {SLOW} ]\n");
    fs::write(own.apply(), apply).unwrap();
    let marker = own.dir.path().join("ran");
    fs::write(
        own.load(),
        format!("#!/bin/sh\ntouch '{}'\n", text(&marker)),
    )
    .unwrap();
    let ran = home.assay(&args(&["trial", text(&own.page()), "--yes"], &[]));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(!marker.exists(), "nothing was measured");
    assert_eq!(own.value(), SLOW);
}

/// A change that cannot be made in the middle leaves what was measured, and says that
/// everything is set back.
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
        ran.stderr.contains("everything is set back"),
        "{}",
        ran.stderr
    );
    assert_eq!(own.value(), SLOW);
    assert!(kept_slots(&home).is_some_and(|pairs| pairs >= 2));
}

/// A second session confirms the first when both have the same verdict.
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
    let remarks = json(&shown)["trial"]["remarks"].to_string();
    assert!(
        remarks.contains("second session of trial 1: confirmed"),
        "{remarks}"
    );
    let short = args(&["trial", "--confirm", "1", "--yes", "--budget", "1s"], &[]);
    let short = home.assay(&short);
    assert_eq!(short.code, Some(2), "{} {}", short.stdout, short.stderr);
    assert!(short.stderr.contains("--budget"), "{}", short.stderr);
    // The load does not read the setting any more: what was better then is not now.
    fs::write(own.load(), "#!/bin/sh\nsleep 0.05\n").unwrap();
    let third = home.assay(&args(
        &["trial", "--confirm", "1", "--yes", "--pairs", "6"],
        &[],
    ));
    assert_eq!(third.code, Some(1), "{} {}", third.stdout, third.stderr);
    assert_eq!(own.value(), SLOW);
}

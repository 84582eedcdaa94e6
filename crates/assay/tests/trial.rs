//! `assay trial` as a user meets it, against real images, devices and services.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

mod common;

use assay_rigs::lacks;
use common::{Home, Ran, entries, ran};
use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A trial that is as short as it can be.
const SHORT: [&str; 6] = ["--slot", "200ms", "--washout", "50ms", "--size", "16MiB"];

fn skip(programs: &[&str], root: bool) -> bool {
    match lacks(programs, root) {
        Some(missing) => {
            eprintln!("skipped: {missing} is missing");
            true
        }
        None => false,
    }
}

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
    let (home, own) = (Home::new(), Own::new("0.05"));
    let page = own.page();
    let seen = home.assay(&args(&["trial", text(&page), "--yes", "--json"], &[]));
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(json(&seen)["verdict"], "better", "{}", seen.stdout);
    assert_eq!(own.value(), "0.05", "set back");

    let kept = home.assay(&args(&["trial", text(&page), "--yes", "--keep"], &[]));
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert!(kept.stdout.starts_with("BETTER"), "{}", kept.stdout);
    assert_eq!(own.value(), "0.01", "kept");

    let worse = args(
        &["trial", text(&page), "--yes", "--keep", "--set", "to=0.06"],
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

#[test]
fn a_dry_run_and_a_refusal_touch_nothing() {
    let (home, own) = (Home::new(), Own::new("0.05"));
    let page = own.page();
    let dry = home.assay(&args(&["trial", text(&page), "--dry-run"], &[]));
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(dry.stdout.contains("What would change"), "{}", dry.stdout);
    // Nobody is at the terminal to ask.
    let asked = home.assay(&args(&["trial", text(&page)], &[]));
    assert_eq!(asked.code, Some(2));
    assert!(asked.stderr.contains("--yes"), "{}", asked.stderr);
    assert_eq!(own.value(), "0.05");
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
    let (home, own) = (Home::new(), Own::new("0.05"));
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
    assert_eq!(own.value(), "0.05");
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
    let (home, own) = (Home::new(), Own::new("0.05"));
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
    let (home, own) = (Home::new(), Own::new("0.05"));
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
    assert_eq!(own.value(), "0.05");
    let again = home.assay(&["trial", "--recover"]);
    assert_eq!(again.stdout, "Nothing to set back.\n");
}

#[test]
fn an_interrupted_trial_sets_back_and_goes_on_later() {
    let (home, own) = (Home::new(), Own::new("0.05"));
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
    assert_eq!(own.value(), "0.05");
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

/// An ext4 of 160 MiB on a loop device, unmounted when dropped.
struct Loop {
    dir: tempfile::TempDir,
}

impl Loop {
    fn new() -> Self {
        let one = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let image = one.dir.path().join("image");
        fs::File::create(&image)
            .unwrap()
            .set_len(160 << 20)
            .unwrap();
        fs::create_dir(one.mountpoint()).unwrap();
        one.tool(&["mkfs.ext4", "-q", text(&image)]);
        one.tool(&[
            "mount",
            "-o",
            "loop,relatime",
            text(&image),
            text(&one.mountpoint()),
        ]);
        one
    }
    fn mountpoint(&self) -> PathBuf {
        self.dir.path().join("mnt")
    }
    fn tool(&self, argv: &[&str]) {
        let done = Command::new(argv[0]).args(&argv[1..]).status().unwrap();
        assert!(done.success(), "{argv:?}");
    }
    /// Device and options, from /proc/self/mounts.
    fn mount(&self) -> (String, String) {
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        let at = self.mountpoint();
        let mut fields = mounts
            .lines()
            .find(|line| line.contains(text(&at)))
            .unwrap()
            .split(' ');
        let device = fields
            .next()
            .unwrap()
            .trim_start_matches("/dev/")
            .to_owned();
        (device, fields.nth(2).unwrap().to_owned())
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.mountpoint()).status();
    }
}

#[test]
fn settings_of_a_device_and_a_mount_are_toggled_and_come_back() {
    if skip(&["fio", "mkfs.ext4", "losetup"], true) {
        return;
    }
    let (home, disk) = (Home::new(), Loop::new());
    let at = disk.mountpoint();
    let (device, options) = disk.mount();
    let attribute = format!("/sys/block/{device}/queue/read_ahead_kb");
    fs::write(&attribute, "128").unwrap();
    for advice in ["read-ahead", "noatime"] {
        let words = [
            "trial",
            advice,
            text(&at),
            "--pairs",
            "2",
            "--yes",
            "--json",
        ];
        let ran = home.assay(&args(&words, &SHORT));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let pairs = &json(&ran)["pairs"];
        assert_eq!(pairs.as_array().map(Vec::len), Some(2), "{}", ran.stdout);
    }
    assert_eq!(fs::read_to_string(&attribute).unwrap(), "128\n");
    assert_eq!(disk.mount(), (device, options));
    assert_eq!(entries(&at), ["lost+found"]);
}

#[test]
fn nginx_is_reloaded_for_each_side_and_its_file_comes_back() {
    if skip(&["nginx"], false) {
        return;
    }
    let home = Home::new();
    let nginx = assay_rigs::nginx::Nginx::start("").unwrap();
    nginx.file("big.bin", 1 << 20).unwrap();
    let (config, url) = (nginx.config(), nginx.url("/big.bin"));
    let before = fs::read(&config).unwrap();
    let set = [
        format!("config={}", text(&config)),
        format!("validate={}", nginx.validate().join(" ")),
        format!("reload={}", nginx.reload().join(" ")),
    ];
    let mut words = args(
        &[
            "trial",
            "nginx-sendfile",
            &url,
            "--yes",
            "--json",
            "--pairs",
            "3",
        ],
        &SHORT,
    );
    for set in &set {
        words.extend(["--set".into(), set.into()]);
    }
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        json(&ran)["pairs"].as_array().map(Vec::len),
        Some(3),
        "{}",
        ran.stdout
    );
    assert_eq!(fs::read(&config).unwrap(), before);
}

#[test]
fn pam_before_sql_costs_every_login() {
    if skip(&["dovecot", "doveconf", "doveadm"], true) {
        return;
    }
    let home = Home::new();
    let dovecot = assay_rigs::dovecot::Dovecot::start().unwrap();
    let before = fs::read(dovecot.config()).unwrap();
    let (config, password) = (dovecot.config(), dovecot.password_file());
    let sets = [
        format!("config={}", text(&config)),
        format!("user={}", assay_rigs::dovecot::USER),
        format!("password_file={}", text(&password)),
        format!("validate={}", dovecot.validate().join(" ")),
        format!("reload={}", dovecot.reload().join(" ")),
        "key=passdb[driver=pam]".to_owned(),
    ];
    let address = dovecot.address();
    let mut words = args(
        &["trial", "dovecot-pam-order", &address, "--yes", "--json"],
        &SHORT,
    );
    for set in &sets {
        words.extend(["--set".into(), set.into()]);
    }
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["verdict"], "better", "{}", ran.stdout);
    assert_eq!(fs::read(dovecot.config()).unwrap(), before);
    assert!(
        !ran.stdout.contains("c\\\\ake"),
        "the password is in no report"
    );
}

#[test]
fn a_slow_resolver_is_seen_in_the_time_of_a_login() {
    if skip(&["sshd", "ssh", "ssh-keygen", "ip"], true) {
        return;
    }
    let home = Home::new();
    let dns = assay_rigs::dns::SlowDns::start(Some(Duration::from_millis(300))).unwrap();
    let sshd = assay_rigs::sshd::Sshd::start(dns).unwrap();
    let config = sshd.config();
    let key = config.with_file_name("id");
    let words = [
        "trial".to_owned(),
        "ssh-usedns".to_owned(),
        assay_rigs::dns::ADDRESS.to_string(),
        "--set".to_owned(),
        format!("config={}", text(&config)),
        "--set".to_owned(),
        format!("keyfile={}", text(&key)),
        "--json".to_owned(),
    ];
    let command = home.command(&args(&[], &SHORT));
    let mut inside: Vec<OsString> = vec![command.get_program().to_owned()];
    inside.extend(words.iter().map(OsString::from));
    inside.extend(SHORT.map(OsString::from));
    let argv = sshd.dns.inside(&inside);
    let mut entered = Command::new(&argv[0]);
    entered.args(&argv[1..]);
    for (name, value) in command.get_envs() {
        entered.env(name, value.unwrap_or_default());
    }
    let ran = ran(entered.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(json(&ran)["verdict"], "better", "{}", ran.stdout);
}

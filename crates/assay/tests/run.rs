//! `assay run` end to end: the built binary, the real fio, real file systems.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, Loop, entries, fio, ran, root, script};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Small and short, but every workload of the plan runs.
const SHORT: [&str; 8] = [
    "--size",
    "16M",
    "--rounds",
    "2",
    "--runtime",
    "200ms",
    "--ramp",
    "100ms",
];

/// Adds the short settings, unless the test has its own.
fn with<'a>(first: &[&'a str], dir: &'a Path, rest: &[&'a str]) -> Vec<&'a str> {
    let mut args: Vec<&str> = first.to_vec();
    args.push(dir.to_str().unwrap());
    args.extend(
        SHORT
            .chunks(2)
            .filter(|pair| !rest.contains(&pair[0]))
            .flatten(),
    );
    args.extend(rest);
    args
}

#[test]
fn quick_prints_one_document_and_leaves_nothing_behind() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let out = home.assay(&with(&["run", "quick"], target.path(), &["--json"]));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let document: Value = serde_json::from_str(&out.stdout).unwrap();
    let samples = document["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 12, "six workloads, two rounds");
    for sample in samples {
        assert_eq!(sample["outcome"]["state"], "completed", "{sample}");
        let percentiles = sample["percentiles"].as_object().unwrap();
        let p50 = percentiles["p50"].as_f64().unwrap();
        assert!(p50 > 0.0 && p50 <= percentiles["p99"].as_f64().unwrap());
        assert!(sample["doubts"].is_array());
        assert!(sample.get("interval").is_some());
    }
    let results = document["results"].as_array().unwrap();
    assert_eq!(results.len(), 6);
    for result in results {
        assert!(
            result["limit"]["evidence"].as_str().unwrap().len() > 10,
            "{result}"
        );
    }
    assert_eq!(entries(target.path()), [] as [&str; 0]);
    assert_eq!(entries(&home.state().join("sessions")), [] as [&str; 0]);
}

#[test]
fn a_budget_reduces_the_rounds() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let measure = |budget: &str| {
        let words = [
            "--rw", "randread", "--rounds", "1000", "--budget", budget, "--json",
        ];
        home.assay(&with(&["run"], target.path(), &words))
    };
    let short = measure("1ms");
    assert_eq!(short.code, Some(2), "{}", short.stdout);
    assert!(short.stderr.contains("--budget"), "{}", short.stderr);
    let fits = measure("6s");
    assert_eq!(fits.code, Some(0), "{}", fits.stderr);
    let document: Value = serde_json::from_str(&fits.stdout).unwrap();
    let samples = document["samples"].as_array().unwrap().len();
    assert!((1..1000).contains(&samples), "{samples} rounds");
}

#[test]
fn a_missed_criterion_is_exit_status_1() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let one = ["--rw", "randread", "--want", "randread-4k-qd1.p99 <= 1ns"];
    let out = home.assay(&with(&["run"], target.path(), &one));
    assert_eq!(out.code, Some(1), "{}", out.stderr);
    assert!(out.stdout.contains("missed"), "{}", out.stdout);
    let one = ["--rw", "randread", "--want", "randread-4k-qd1.iops > 1"];
    assert_eq!(
        home.assay(&with(&["run"], target.path(), &one)).code,
        Some(0)
    );
}

#[test]
fn a_missing_directory_is_refused_and_not_created() {
    let home = Home::new();
    let missing = home.dir.path().join("not mounted");
    let out = home.assay(&["run", "quick", missing.to_str().unwrap()]);
    assert_eq!(out.code, Some(2));
    insta::assert_snapshot!(home.told(&out.stderr), @"assay: HOME/not mounted: there is no such file or directory; fio would create it and measure whatever is mounted above: create it, or check that the file system is mounted");
    assert!(!missing.exists());
}

#[test]
fn a_misspelt_plan_names_the_nearest() {
    let home = Home::new();
    let out = home.assay(&["run", "matix", "."]);
    assert_eq!(out.code, Some(2));
    insta::assert_snapshot!(home.told(&out.stderr), @"assay: `matix` is neither a plan nor a file or directory: did you mean the plan `matrix`?");
}

#[test]
fn a_plan_file_with_an_unknown_key_names_line_key_and_nearest() {
    let home = Home::new();
    let plan = home.dir.path().join("my.toml");
    std::fs::write(
        &plan,
        "name = \"x\"\n[[workload]]\npattern = \"read\"\nblocksize = \"4k\"\n",
    )
    .unwrap();
    let out = home.assay(&["run", "--plan-file", plan.to_str().unwrap(), "."]);
    assert_eq!(out.code, Some(2));
    insta::assert_snapshot!(home.told(&out.stderr), @"assay: HOME/my.toml:4: unknown key `blocksize`: did you mean `block_size`?");
}

#[test]
fn the_printed_plan_runs_again_as_it_is() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let printed = home.assay(&with(&["run", "sync"], target.path(), &["--print-plan"]));
    let plan = home.dir.path().join("printed.toml");
    std::fs::write(&plan, &printed.stdout).unwrap();
    let out = home.assay(&[
        "run",
        "--plan-file",
        plan.to_str().unwrap(),
        "--rounds",
        "1",
        "--json",
    ]);
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let document: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(document["samples"].as_array().unwrap().len(), 4);
}

#[test]
fn a_missing_fio_says_how_to_install_it() {
    let home = Home::new();
    let target = home.target();
    let out = home.assay(&[
        "run",
        "quick",
        target.path().to_str().unwrap(),
        "--fio",
        "/nonexistent",
    ]);
    assert_eq!(out.code, Some(2));
    insta::assert_snapshot!(home.refusal(&out), @"assay: fio is not installed; it is the load generator: `apt install fio` (Debian, Ubuntu, Proxmox) or `dnf install fio` (Fedora, RHEL)");
    assert_eq!(entries(target.path()), [] as [&str; 0]);
}

#[test]
fn a_fio_that_prints_garbage_fails_the_run_and_leaves_nothing() {
    let home = Home::new();
    let target = home.target();
    let fake = script(
        home.dir.path(),
        "fio",
        "[ \"$1\" = --version ] && { echo fio-3.33; exit; }\necho '{\"jobs\": [' > result.json",
    );
    let out = home.assay(&with(
        &["run"],
        target.path(),
        &[
            "--rw",
            "randread",
            "--rounds",
            "5",
            "--fio",
            fake.to_str().unwrap(),
        ],
    ));
    assert_eq!(out.code, Some(2), "{}{}", out.stdout, out.stderr);
    insta::assert_snapshot!(home.refusal(&out), @"assay: the samples measured so far are stored as run 1: 3 samples in a row failed, so the run ended; the last one: fio printed no usable result: cut off at line 2 (byte 11): the end of the JSON is missing; no complete document and no complete job of the cut one could still be read; run fio again, or copy the whole file");
    assert_eq!(entries(target.path()), [] as [&str; 0]);
}

#[test]
fn a_run_without_a_single_completed_sample_is_an_error() {
    let home = Home::new();
    let target = home.target();
    let fake = script(
        home.dir.path(),
        "fio",
        "[ \"$1\" = --version ] && { echo fio-3.33; exit; }\necho 'fio: no luck today, error' >&2; exit 1",
    );
    let rest = [
        "--rw",
        "randread",
        "--rounds",
        "1",
        "--fio",
        fake.to_str().unwrap(),
    ];
    let out = home.assay(&with(&["run"], target.path(), &rest));
    assert_eq!(out.code, Some(2), "{}", out.stderr);
    insta::assert_snapshot!(home.refusal(&out), @"assay: the samples measured so far are stored as run 1: 1 sample failed, so the run ended; the last one: fio ended with status 1: fio: no luck today, error");
    assert_eq!(entries(target.path()), [] as [&str; 0]);
}

/// Starts a long run, waits until samples are stored, and sends a signal.
fn interrupted(home: &Home, target: &Path, signal: rustix::process::Signal) -> common::Ran {
    let args = with(
        &["run"],
        target,
        &["--rw", "randread", "--quiet", "--rounds", "200"],
    );
    let child = home
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    loop {
        let runs = home.assay(&["runs", "--json"]);
        let stored = serde_json::from_str::<Value>(&runs.stdout)
            .ok()
            .and_then(|document| document["runs"][0]["samples"].as_u64())
            .unwrap_or(0);
        if stored >= 2 {
            break;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{}", runs.stdout);
        std::thread::sleep(Duration::from_millis(50));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, signal).unwrap();
    ran(child.wait_with_output().unwrap())
}

#[test]
fn ctrl_c_keeps_what_was_measured_and_resume_goes_on() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let out = interrupted(&home, target.path(), rustix::process::Signal::INT);
    assert_eq!(out.code, Some(130), "{}", out.stderr);
    let (_, way_out) = out.stderr.trim_end().rsplit_once("; ").unwrap();
    insta::assert_snapshot!(way_out, @"`assay run --resume 1` goes on");
    assert_eq!(entries(target.path()), [] as [&str; 0]);
    // The rest of 200 rounds takes too long for a test: the resumed run is interrupted too.
    let mut child = home
        .command(&["run", "--resume", "1", "--quiet"])
        .stderr(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    let second = home.assay(&["run", "--resume", "1"]);
    assert_eq!(second.code, Some(2));
    insta::assert_snapshot!(home.told(&second.stderr), @"assay: another assay is working on this run now");
    // Also for a process with another state directory and store.
    let third = Home::new().assay(&with(&["run"], target.path(), &["--rw", "randread"]));
    let by = format!("measured by another assay (process {})", child.id());
    assert!(third.stderr.contains(&by), "{}", third.stderr);
    assert_eq!(third.code, Some(2));
    rustix::process::kill_process(
        rustix::process::Pid::from_child(&child),
        rustix::process::Signal::TERM,
    )
    .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let runs: Value = serde_json::from_str(&home.assay(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(
        runs["runs"].as_array().unwrap().len(),
        1,
        "resumed, not begun again"
    );
}

#[test]
fn after_kill_9_the_next_start_removes_the_test_file_and_resume_works() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    interrupted(&home, target.path(), rustix::process::Signal::KILL);
    let left = entries(target.path());
    assert_eq!(left.len(), 1, "a killed process cannot clean up");
    // fio ends with its parent: no process works in the session's directory any more.
    let working = || {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let cwd = |entry: std::fs::DirEntry| std::fs::read_link(entry.path().join("cwd"));
        processes
            .filter_map(|entry| cwd(entry).ok())
            .any(|dir| dir.starts_with(home.state()))
    };
    let start = Instant::now();
    while working() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "fio is still running"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    let out = home.assay(&with(&["run"], target.path(), &["--rw", "randread"]));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(out.stderr.contains(&left[0]), "{}", out.stderr);
    assert_eq!(entries(target.path()), [] as [&str; 0]);
}

#[test]
fn a_full_file_system_is_refused_with_figures() {
    if !root() {
        return;
    }
    let home = Home::new();
    let mount = Mount::tmpfs("size=100m");
    let out = home.assay(&[
        "run",
        "quick",
        mount.path.to_str().unwrap(),
        "--size",
        "90M",
    ]);
    assert_eq!(out.code, Some(2));
    assert!(
        out.stderr.contains("90 MiB") && out.stderr.contains("--size"),
        "{}",
        out.stderr
    );
    assert_eq!(entries(&mount.path), [] as [&str; 0]);
}

#[test]
fn a_read_only_file_system_is_refused() {
    if !root() {
        return;
    }
    let home = Home::new();
    let mount = Mount::tmpfs("ro");
    let out = home.assay(&["run", "quick", mount.path.to_str().unwrap()]);
    assert_eq!(out.code, Some(2));
    assert!(
        out.stderr.contains("Read-only file system"),
        "{}",
        out.stderr
    );
}

#[test]
fn tmpfs_says_what_it_means() {
    if !root() || !fio() {
        return;
    }
    let home = Home::new();
    let mount = Mount::tmpfs("size=200m");
    let out = home.assay(&with(
        &["run"],
        &mount.path,
        &["--rw", "randread", "--json"],
    ));
    let note = out.stderr.lines().next().unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(note, &[(&mount.path, "MOUNT")]), @"note: MOUNT is tmpfs: it lives in memory, and these figures say nothing about a disk");
    let document: Value = serde_json::from_str(&out.stdout).unwrap();
    assert_eq!(
        document["results"][0]["validity"], "void",
        "{}",
        document["results"][0]
    );
}

#[test]
fn hostile_names_are_measured_like_any_other() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let base = home.target();
    for name in [
        "a:b",
        "two words",
        "quote'\"",
        "new\nline",
        "-rf",
        "%s",
        "back\\slash",
        "ünï",
    ] {
        let dir = base.path().join(name);
        std::fs::create_dir(&dir).unwrap();
        let out = home.assay(&with(
            &["run"],
            &dir,
            &["--rw", "randwrite", "--rounds", "1", "--json"],
        ));
        assert_eq!(out.code, Some(0), "{name:?}: {}", out.stderr);
        assert_eq!(entries(&dir), [] as [&str; 0]);
    }
}

#[test]
fn a_file_of_the_users_is_read_but_not_overwritten_unasked() {
    if !fio() {
        return;
    }
    let home = Home::new();
    let base = home.target();
    let file = base.path().join("precious");
    let data: Vec<u8> = (0..4u32 << 18).flat_map(u32::to_le_bytes).collect();
    std::fs::write(&file, &data).unwrap();
    let out = home.assay(&with(&["run"], &file, &["--rw", "randwrite"]));
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("--destroy-data"), "{}", out.stderr);
    let out = home.assay(&with(&["run"], &file, &["--rw", "randread"]));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    assert!(std::fs::read(&file).unwrap() == data, "untouched");
    let destroy = ["--rw", "randwrite", "--destroy-data"];
    let out = home.assay(&with(&["run"], &file, &destroy));
    assert_eq!(out.code, Some(2));
    for word in ["not empty", "hexdump", "--destroy-unknown-data"] {
        assert!(out.stderr.contains(word), "{}", out.stderr);
    }
    assert!(std::fs::read(&file).unwrap() == data, "untouched");
    let destroy = [&destroy[..], &["--destroy-unknown-data"]].concat();
    let out = home.assay(&with(&["run"], &file, &destroy));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let after = std::fs::read(&file).unwrap();
    assert!(after.len() == data.len() && after != data);
}

/// A temporary mount.
struct Mount {
    path: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

impl Mount {
    fn tmpfs(options: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mount");
        std::fs::create_dir(&path).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "assay-test"])
            .arg(&path)
            .status();
        assert!(mounted.unwrap().success());
        Self { path, _dir: dir }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

#[test]
fn a_block_device_is_overwritten_only_when_asked_named_exactly_and_empty() {
    if !root() || !fio() {
        return;
    }
    let home = Home::new();
    let Some(device) = Loop::new(64 << 20) else {
        return;
    };
    let path = Path::new(&device.device);
    let write = ["--rw", "randwrite"];
    let out = home.assay(&with(&["run"], path, &write));
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("--destroy-data"), "{}", out.stderr);

    let destroy = ["--rw", "randwrite", "--destroy-data", "--json"];
    let out = home.assay(&with(&["run"], path, &destroy));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
    let document: Value = serde_json::from_str(&out.stdout).unwrap();
    let sample = &document["samples"][0];
    assert_eq!(sample["outcome"]["state"], "completed", "{sample}");

    let link = home.dir.path().join("link");
    std::os::unix::fs::symlink(path, &link).unwrap();
    let out = home.assay(&with(&["run"], &link, &destroy));
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains(&device.device), "{}", out.stderr);

    let made = Command::new("mkfs.ext4")
        .arg("-q")
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
    let out = home.assay(&with(&["run"], path, &destroy));
    assert_eq!(out.code, Some(2));
    assert!(out.stderr.contains("ext4"), "{}", out.stderr);
    // Reading needs no permission, whatever the device contains.
    let out = home.assay(&with(&["run"], path, &["--rw", "randread"]));
    assert_eq!(out.code, Some(0), "{}", out.stderr);
}

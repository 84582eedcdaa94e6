//! Tests the experiments of `assay lab` with real guests: a full host, a full pool, power cuts under ZFS, CPU models
//! without AES, and counters of both sides of a sample.
//!
//! Without an image the tests are skipped: see `common::guests`.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::guests::{image, image_for_long, nothing_left, working_in};
use common::schemas::holds;
use common::{Home, root};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

fn json(home: &Home, code: i32, args: &[&str]) -> Value {
    let ran = home.assay(args);
    assert_eq!(ran.code, Some(code), "{}\n{}", ran.stdout, ran.stderr);
    nothing_left(home);
    holds(&format!("lab-{}", args[1]), &ran.stdout, &[]);
    serde_json::from_str(&ran.stdout).unwrap()
}

/// Returns the loop devices on files below the state directory.
fn loops(home: &Home) -> String {
    let listed = Command::new("losetup")
        .args(["--list", "--noheadings", "--output", "BACK-FILE"])
        .output()
        .unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    let ours = home.state().to_str().unwrap().to_owned();
    text.lines()
        .filter(|line| line.contains(&ours))
        .map(|line| format!("{line}\n"))
        .collect()
}

#[test]
fn a_guest_whose_host_is_full_is_paused_or_told_and_loses_nothing() {
    let Some(_one) = image() else { return };
    if !root() {
        return;
    }
    let home = Home::new();
    let disks = [
        "--disk",
        "8M",
        "--disk",
        "8M,format=qcow2",
        "--disk",
        "8M,werror=report",
        "--disk",
        "8M,bus=nvme",
    ];
    let args = ["lab", "full", "--room", "512K", "--after", "8", "--json"];
    let found = json(&home, 0, &[&args[..], &disks[..]].concat());
    assert_eq!(loops(&home), "");
    let disks = found["disks"].as_array().unwrap();
    let endings: Vec<_> = disks.iter().map(|disk| disk["ending"].as_str()).collect();
    let [paused, error] = [Some("paused"), Some("error")];
    assert_eq!(endings, [paused, paused, error, error], "{found:#}");
    for disk in disks {
        assert_eq!(disk["lost"], 0, "{disk:#}");
        assert_eq!(disk["resumed"], true, "{disk:#}");
        assert!(
            disk["acknowledged_before"].as_u64().unwrap() > 16,
            "{disk:#}"
        );
        assert_eq!(disk["acknowledged_after"], 8, "{disk:#}");
    }
    let event = |disk: usize| &disks[disk]["events"][0];
    assert_eq!(event(0)["event"], "BLOCK_IO_ERROR");
    assert_eq!(event(0)["action"], "stop");
    assert_eq!(event(2)["action"], "report");
    assert_eq!(disks[2]["guest_error"]["errno"], 5);
}

#[test]
fn killed_while_the_host_is_full_it_leaves_neither_mount_nor_loop_device() {
    let Some(_one) = image_for_long() else { return };
    if !root() {
        return;
    }
    let home = Home::new();
    let args = ["lab", "full", "--disk", "8M"];
    let mut assay = home.command(&args).stderr(Stdio::null()).spawn().unwrap();
    let lab = home.state().join("lab");
    let deadline = Instant::now() + Duration::from_secs(120);
    // QEMU runs, so the file system is mounted.
    while !lab.is_dir() || working_in(&lab).is_empty() {
        assert!(Instant::now() < deadline, "QEMU does not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(loops(&home).contains("backing"), "{}", loops(&home));
    assay.kill().unwrap();
    assay.wait().unwrap();
    let listed = home.assay(&["lab", "list"]);
    assert!(
        listed.stderr.contains("removed what was left"),
        "{}",
        listed.stderr
    );
    nothing_left(&home);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !loops(&home).is_empty() {
        assert!(Instant::now() < deadline, "{}", loops(&home));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_full_pool_under_a_program_and_under_a_hypervisor() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let args = [
        "lab", "full", "--pool", "--room", "512K", "--after", "4", "--json",
    ];
    let ran = home.assay(&args);
    nothing_left(&home);
    assert!(matches!(ran.code, Some(0 | 1)), "{}", ran.stderr);
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    let cases = found["disks"].as_array().unwrap();
    let case = |what: &str| cases.iter().find(|case| case["what"] == what).unwrap();
    // A file on a dataset returns ENOSPC at the write, and QEMU's default policy pauses the guest.
    for what in [
        "qcow2 on a dataset: QEMU, cache=none",
        "qcow2 on a dataset: QEMU, cache=writeback",
        "raw file on a dataset: QEMU, cache=none",
        "thin zvol: QEMU, cache=none",
    ] {
        let case = case(what);
        assert_eq!(case["ending"], "paused", "{case:#}");
        assert_eq!(
            (&case["lost"], &case["resumed"]),
            (&0.into(), &true.into()),
            "{case:#}"
        );
    }
    // A zvol accepts the write into the page cache and fails at the flush with another error: QEMU
    // does not pause, and refuses the disk permanently.
    let zvol = case("thin zvol: QEMU, cache=writeback");
    assert_eq!(zvol["ending"], "error", "{zvol:#}");
    assert_eq!(zvol["resumed"], false, "{zvol:#}");
    let told = case("raw file on a dataset: program, dsync");
    assert_eq!(told["guest_error"]["errno"], 28, "{told:#}");
    // No acknowledged write is lost, on any kind of storage.
    for case in cases {
        assert_eq!(case["kept"], true, "{case:#}");
    }
}

#[test]
fn zvols_keep_what_they_called_durable_unless_told_not_to() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let args = [
        "lab",
        "power-cut",
        "--zvol",
        "--records",
        "24",
        "--cuts",
        "2",
        "--json",
    ];
    let found = json(&home, 0, &args);
    let all = found["disks"].as_array().unwrap();
    assert_eq!(all.len(), 4, "{found:#}");
    for one in all {
        let disabled = one["what"].as_str().unwrap().contains("sync=disabled");
        assert_eq!(one["claims_durability"], !disabled, "{one:#}");
        assert_eq!(one["most_lost"].as_u64().unwrap() > 0, disabled, "{one:#}");
        let flushes = one["flushes"].as_u64().unwrap();
        assert_eq!(flushes >= 23, !disabled, "{one:#}");
        assert_eq!(one["cuts"], 2, "{one:#}");
    }
}

#[test]
fn a_processor_without_aes_is_found() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let host = cpuinfo.split_whitespace().any(|flag| flag == "aes");
    let args = [
        "lab", "crypto", "--cpu", "kvm64", "--accel", "tcg", "--json",
    ];
    let found = json(&home, i32::from(host), &args);
    let side = &found["models"][0]["side"];
    // It has none of these flags, which is different from unknown.
    assert_eq!(side["flags"], Value::Array(Vec::new()), "{side:#}");
    let driver = side["drivers"]["xts(aes)"].as_str().unwrap();
    assert!(driver.contains("generic"), "{driver}");
    let ciphers: Vec<_> = side["rates"].as_array().unwrap().iter().collect();
    for (tool, cipher) in [("openssl", "aes-256-gcm"), ("cryptsetup", "aes-xts 512")] {
        let rate = ciphers
            .iter()
            .find(|rate| rate["tool"] == tool && rate["cipher"] == cipher);
        let rate = rate.unwrap_or_else(|| panic!("{cipher}: {side:#}"));
        assert!(rate["encrypt"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(found["findings"].as_array().unwrap().is_empty(), !host);
}

#[test]
fn both_sides_of_a_sample_agree_on_its_flushes() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let args = [
        "lab",
        "measure",
        "--rw",
        "randwrite",
        "--sync",
        "fsync",
        "--iodepth",
        "1",
        "--rounds",
        "1",
        "--runtime",
        "2s",
        "--json",
        "--disk",
        "16M,bus=sata,format=qcow2",
        "--disk",
        "16M,cache=unsafe",
        "--disk",
        "16M,cache=writethrough",
    ];
    let found = json(&home, 0, &args);
    let sample = |disk: &str| {
        let samples = found["samples"].as_array().unwrap();
        samples
            .iter()
            .find(|sample| sample["disk"] == disk)
            .unwrap()
    };
    let codes = |disk: &str| -> Vec<String> {
        let doubts = sample(disk)["doubts"].as_array().unwrap();
        let code = |doubt: &Value| doubt["code"].as_str().unwrap().to_owned();
        doubts.iter().map(code).collect()
    };
    assert_eq!(codes("disk1"), Vec::<String>::new());
    assert!(sample("disk1")["host"]["flushes"].as_u64().unwrap() > 0);
    assert_eq!(codes("disk2"), ["flushes-dropped"]);
    assert_eq!(codes("disk3"), Vec::<String>::new());
    assert_eq!(sample("disk3")["guest"]["flushes"], 0);
}

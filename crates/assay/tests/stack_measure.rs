//! Tests `assay stack --measure`: real files, real images, and a real guest if its image is cached.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program and look at what it leaves"
)]

mod common;

use common::{Home, Ran, entries, ran};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// The shortest settings.
const SHORT: [&str; 11] = [
    "--measure",
    "--yes",
    "--quiet",
    "--runtime",
    "300ms",
    "--ramp",
    "50ms",
    "--size",
    "16M",
    "--rw",
    "randread",
];

fn skip() -> bool {
    assay_testing::servers::skip(&["fio", "qemu-img", "qemu-nbd"], false)
}

fn measure(home: &Home, target: &Path, more: &[&str]) -> Ran {
    let target = target.to_str().unwrap();
    let words = [&["stack", target][..], &SHORT, more].concat();
    home.assay(&words)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout)
        .unwrap_or_else(|error| panic!("{error}: {} {}", ran.stdout, ran.stderr))
}

/// Returns the mean latency of each rung in each round from the samples of the document.
fn latencies(document: &Value) -> BTreeMap<(String, u64), f64> {
    let samples = document["samples"].as_array().unwrap();
    let one = |sample: &Value| {
        let rung = sample["target"].as_str().unwrap().to_owned();
        let latency = sample["mean"].as_f64()?;
        Some(((rung, sample["round"].as_u64().unwrap()), latency))
    };
    let counts = samples.iter().filter(|one| one["validity"] != "void");
    counts.filter_map(one).collect()
}

fn names(document: &Value) -> Vec<&str> {
    let rungs = document["run"]["ladder"]["rungs"].as_array().unwrap();
    rungs
        .iter()
        .map(|rung| rung["name"].as_str().unwrap())
        .collect()
}

/// Checks that every step is the mean difference of its samples, and that nothing is left in the
/// target.
fn check(document: &Value, target: &Path) {
    let latencies = latencies(document);
    let names = names(document);
    let rounds = document["run"]["plan"]["rounds"].as_u64().unwrap();
    let fall = &document["waterfalls"][0];
    for step in fall["steps"].as_array().unwrap() {
        let name = |end: &str| names[step[end].as_u64().unwrap() as usize].to_owned();
        let pair = |round| {
            let at = |end| latencies.get(&(name(end), round)).copied();
            Some(at("to")? - at("from")?)
        };
        let pairs: Vec<f64> = (1..=rounds).filter_map(pair).collect();
        assert!(!pairs.is_empty(), "{step:#}");
        let mean = pairs.iter().sum::<f64>() / pairs.len() as f64;
        let told = step["added"]["value"].as_f64().unwrap();
        assert!(
            (mean - told).abs() <= 1e-6 * mean.abs().max(1.0),
            "{mean} {step:#}"
        );
    }
    assert_eq!(entries(target), [""; 0]);
}

#[test]
fn file_systems_are_measured_on_the_host_without_a_guest() {
    let tools = ["fio", "mkfs.ext4", "mkfs.xfs", "mkfs.btrfs"];
    if assay_testing::servers::skip(&tools, true) {
        return;
    }
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    if !Path::new("/dev/loop-control").exists()
        || !known.contains("xfs")
        || !known.contains("btrfs")
    {
        assay_testing::skipped("loop", "no loop devices, or no XFS and btrfs in the kernel");
        return;
    }
    let home = Home::new();
    let target = home.target();
    let more = ["--layers", "ext4,xfs,btrfs", "--rounds", "2", "--json"];
    let ran = measure(&home, target.path(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran);
    let expected = [
        "file",
        "loop",
        "loop-ext4",
        "loop-xfs",
        "loop-btrfs",
        "file-again",
        "loop-ext4-again",
    ];
    assert_eq!(names(&document), expected);
    check(&document, target.path());
    let targets = document["run"]["targets"].as_array().unwrap();
    let system = |name: &str| {
        let of = targets.iter().find(|one| one["name"] == name).unwrap();
        of["fs_type"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (system("loop-xfs"), system("loop-btrfs")),
        ("xfs".into(), "btrfs".into())
    );
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let place = target.path().display().to_string();
    assert!(!mounts.contains(&place), "a mount is left");
}

#[test]
fn raw_and_qcow2_without_a_guest() {
    if skip() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let page = home.dir.path().join("stack.html");
    let html = page.to_str().unwrap();
    let more = [
        "--layers", "image", "--rounds", "3", "--json", "--html", html,
    ];
    let ran = measure(&home, target.path(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran);
    let expected = [
        "file",
        "nbd-raw",
        "nbd-qcow2",
        "file-again",
        "nbd-qcow2-again",
    ];
    assert_eq!(names(&document), expected);
    assert_eq!(document["samples"].as_array().unwrap().len(), 15);
    check(&document, target.path());
    let whole = &document["waterfalls"][0]["wholes"][0];
    assert_eq!(whole["separate"], true);
    let value = |name: &str| whole[name]["value"].as_f64().unwrap();
    let gap = value("sum") - value("added") - value("closing");
    assert!(gap.abs() < 1e-3 * value("sum").abs().max(1.0), "{whole:#}");
    assert!(
        std::fs::read_to_string(&page)
            .unwrap()
            .contains("Look first")
    );
    // Nothing is left in the registries.
    assert_eq!(entries(&home.state().join("sessions")), [""; 0]);
    assert_eq!(entries(&home.state().join("journal/sessions")), [""; 0]);
    // It is a normal run and can be shown again.
    let shown = home.assay(&["stack", "--show"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("+ qcow2") && shown.stdout.contains("look first"));
    let markdown = home.assay(&["stack", "--show", "1", "--markdown"]);
    assert!(
        markdown.stdout.contains("| layer | time per I/O |"),
        "{}",
        markdown.stdout
    );
}

#[test]
fn nothing_is_made_before_a_yes_and_bad_input_is_named() {
    if skip() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let path = target.path().to_str().unwrap();
    let dry = home.assay(&["stack", path, "--measure", "--dry-run"]);
    assert_eq!(dry.code, Some(0), "{}", dry.stderr);
    assert!(dry.stdout.contains("qcow2 image over NBD") && dry.stdout.contains("in all"));
    let file = target.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let mut said = String::new();
    for words in [
        &["stack", path, "--measure"][..],
        &["stack", "/nonexistent", "--measure"],
        &["stack", file.to_str().unwrap(), "--measure"],
        &["stack", "no-such-guest", "--measure"],
        &["stack", path, "--measure", "--scratch-dir", path],
        &["stack", path, "--measure", "--scratch-vg", "vg0"],
        &["stack", path, "--measure", "--scratch-dataset", "tank/x"],
        &["stack", path, "--measure", "--scratch-vg", "../x"],
        &["stack", path, "--measure", "--layers", "floppy"],
        &["stack", path, "--measure", "--disk", "bus=floppy"],
        &["stack", path, "--measure", "--disk", "device=/dev/vda"],
        &["stack", path, "--measure", "--plan", "nonsense"],
        &["stack", "--show", "7"],
    ] {
        let ran = home.assay(words);
        assert_eq!(
            ran.code,
            Some(2),
            "{words:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
        said += &home.refusal(&ran);
    }
    insta::assert_snapshot!(said, @r#"
    assay: cannot ask before creating files and loading the storage: there is no terminal. Use --yes, or --dry-run to see the plan.
    assay: /nonexistent: No such file or directory (os error 2)
    assay: TARGET/file is no image that is known by its header, and no virtual machine here uses it: name a directory on the storage that is to be measured, or a virtual machine
    assay: no virtual machine "no-such-guest" is running or defined here
    assay: --scratch-dir and --vm-disk need a virtual machine or an image as TARGET: TARGET is a directory
    assay: --scratch-vg vg0: TARGET does not lie on the volume group vg0, so a volume there says nothing of it: there is no volume group under it
    assay: --scratch-dataset tank/x: TARGET does not lie on the pool tank, so a volume there says nothing of it: there is no pool under it
    assay: --scratch-vg: ".." is not an LVM name (letters, digits, + _ . -): write VG or VG/THINPOOL
    error: invalid value 'floppy' for '--layers <LAYER,…>': no layer "floppy"; there are file, image, guest, luks, lvm, ext4, xfs, btrfs
    assay: --disk: disk "512,format=qcow2,cache=none,bus=floppy": no bus "floppy"; there are virtio-blk, virtio-scsi, sata, ide, nvme
    assay: --disk: leave out dir= and device=, as images are created in TARGET
    assay: unknown plan `nonsense`: `assay run --help` lists the plans
    assay: nothing has been measured yet (HOME/store.db holds no runs): `assay run quick .` does
    "#);
    let much = home.assay(&["stack", path, "--measure", "--size", "900T"]);
    assert_eq!(much.code, Some(2), "{}", much.stdout);
    assert!(home.refusal(&much).contains("--size"), "{}", much.stderr);
    assert_eq!(entries(target.path()), ["file"]);
}

fn start(home: &Home, target: &Path) -> Child {
    let target = target.to_str().unwrap();
    let words = [
        &["stack", target][..],
        &SHORT,
        &["--layers", "image", "--rounds", "500"],
    ];
    let mut command = home.command(&words.concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until a sample is stored.
fn until_measuring(home: &Home) {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let shown = home.assay(&["stack", "--show", "--json"]);
        let samples = (shown.code == Some(0)).then(|| json(&shown)["samples"].clone());
        if samples.is_some_and(|samples| samples != Value::Array(Vec::new())) {
            return;
        }
        assert!(Instant::now() < deadline, "{}", shown.stderr);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn ctrl_c_cleans_up_and_keeps_what_was_measured() {
    if skip() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let child = start(&home, target.path());
    until_measuring(&home);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(130), "{}", ran.stderr);
    assert!(ran.stderr.contains("assay stack --show"), "{}", ran.stderr);
    assert_eq!(entries(target.path()), [""; 0]);
    let shown = home.assay(&["stack", "--show", "--json"]);
    assert!(!json(&shown)["samples"].as_array().unwrap().is_empty());
}

#[test]
fn kill_9_leaves_nothing_after_the_next_start() {
    if skip() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let mut child = start(&home, target.path());
    until_measuring(&home);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = entries(target.path());
    assert!(!left.is_empty());
    let path = target.path().to_str().unwrap();
    let next = home.assay(&["stack", path, "--measure", "--dry-run"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert!(next.stderr.contains(&left[0]), "{}", next.stderr);
    assert_eq!(entries(target.path()), [""; 0]);
    assert_eq!(entries(&home.state().join("journal/sessions")), [""; 0]);
}

#[test]
fn layers_in_a_guest() {
    if skip() {
        return;
    }
    let home = Home::new();
    let target = home.target();
    let path = target.path().to_str().unwrap();
    let dry = home.assay(&["stack", path, "--measure", "--dry-run", "--layers", "luks"]);
    if dry.stdout.contains("left out") {
        assay_testing::skipped("luks", format_args!("{}", dry.stdout));
        return;
    }
    let layers = "guest,luks,lvm,ext4,xfs,btrfs";
    let more = [
        "--layers", layers, "--rounds", "2", "--memory", "768M", "--json",
    ];
    let ran = measure(&home, target.path(), &more);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let document = json(&ran);
    check(&document, target.path());
    let ladder = &document["run"]["ladder"];
    assert!(["kvm", "tcg"].contains(&ladder["accel"].as_str().unwrap()));
    let emulated = document["run"]["remarks"].to_string().contains("emulated");
    assert_eq!(emulated, ladder["accel"] == "tcg");
    let wholes = document["waterfalls"][0]["wholes"].as_array().unwrap();
    assert_eq!(wholes.len(), 3, "one for each file system");
    let mut left = entries(&home.state().join("lab"));
    left.sort();
    assert_eq!(left, [".lock", "kvm.json"]);
}

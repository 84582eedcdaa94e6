//! A study on a ZFS file system of the user's: carried out by assay inside a guest, on a live pool.
//! One boot; it takes minutes, and is skipped unless it is asked for.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_host::Limits;
use assay_instruments::Cancel;
use assay_lab::{Disk, Guest, Options, State};
use common::guests::image_for_long;
use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(900);

/// One of everything that can be made below a dataset, and what cannot.
const STUDY: &str = r#"name = "own"
title = "t"
question = "q"
bench = "zfs"
source = { title = "s", machine = "m" }

[forms.quick]
rounds = 2
memory = "1g"
disk = "48m"
size = "4m"
time = "500ms"
pool = { disks = 1, size = "1g", ashift = 12 }

[forms.full]
rounds = 1000
memory = "1g"
disk = "48m"
size = "4m"
time = "500ms"
pool = { disks = 1, size = "1g", ashift = 12 }

[[configuration]]
name = "dataset"
figures = ["write", "commits", "accepted", "disk-bytes"]
on = "dataset"
properties = { recordsize = "16k" }

[[configuration]]
name = "zvol"
figures = ["write", "space"]
on = "zvol"
properties = { volblocksize = "8k" }

[[configuration]]
name = "ext4"
figures = ["write"]
on = "zvol"
fs = "ext4"

[[configuration]]
name = "fresh"
figures = ["write"]
on = "zvol"
fs = "ext4"
fresh = true

[[configuration]]
name = "guest"
figures = ["served", "served-commits"]
on = "zvol"
image = "raw"
guest = "virtio-blk"
cache = "none"

[[configuration]]
name = "guest-qcow2"
figures = ["served"]
on = "dataset"
image = "qcow2"
guest = "virtio-scsi"

[[configuration]]
name = "nbd"
figures = ["write"]
on = "zvol"
image = "raw"

[[configuration]]
name = "full"
figures = ["paused"]
on = "zvol"
image = "raw"
full = "pool"
fresh = true

[[configuration]]
name = "disk"
figures = ["write"]
on = "disk"

[[figure]]
name = "write"
better = "higher"
together = "write"
of = "iops"
job = { rw = "randwrite", bs = "4k", sync = 1 }

[[figure]]
name = "commits"
better = "neither"
together = "write"
of = "commits"
job = { rw = "randwrite", bs = "4k", sync = 1 }

[[figure]]
name = "disk-bytes"
better = "neither"
together = "write"
of = "disk-bytes"
job = { rw = "randwrite", bs = "4k", sync = 1 }

[[figure]]
name = "served"
better = "higher"
together = "served"
of = "iops"
requests = { write = true, block = "4k", random = true, count = 1000 }

[[figure]]
name = "served-commits"
better = "neither"
together = "served"
of = "commits"
requests = { write = true, block = "4k", random = true, count = 1000 }

[[figure]]
name = "accepted"
better = "neither"
exact = true
of = "accepted"
set = "atime=off"

[[figure]]
name = "space"
better = "lower"
exact = true
of = "space"

[[figure]]
name = "paused"
better = "neither"
exact = true
of = "paused"

[[conclusion]]
says = "Each durable write is a commit."
claim = [{ kind = "value", figure = "commits", of = "dataset", at_least = 0.9 }]
"#;

fn run(guest: &Guest, script: &str) -> (i32, String, String) {
    let argv = ["sh", "-uc", script].map(OsStr::new);
    let output = guest.run(&argv, Limits { timeout: PATIENCE });
    let output = output.unwrap_or_else(|error| panic!("{script}: {error}"));
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, output.text(), err)
}

fn sh(guest: &Guest, script: &str) -> String {
    let (status, out, err) = run(guest, script);
    assert_eq!(status, 0, "{script}: {out}{err}");
    out
}

/// What is the user's, and whatever else there is that a study could leave.
const WHOLE: &str = "zfs list -H -o name,used -t all -r tank | cut -f1; zfs get -H -o name,property,value,source \
     atime,compression,recordsize,mountpoint tank tank/data; sha256sum /tank/data/mine; \
     ls -A /tank/data /root/work; pgrep -c qemu-system || true; grep -c assay- /proc/mounts || true";

const ASSAY: &str =
    "cd /root; env ASSAY_STATE=/root/state ASSAY_STORE=/root/db assay study own.toml /root/work";

#[test]
fn a_study_below_a_dataset_touches_nothing_else_of_the_pool() {
    let Some((image, _one)) = image_for_long() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path()).unwrap();
    let options = Options {
        assay: Some(env!("CARGO_BIN_EXE_assay").into()),
        disks: vec![Disk::scratch("d1", 1 << 30)],
        boot_limit: PATIENCE,
        ..Options::new("study-own")
    };
    let guest = Guest::boot(&image, &options, &state, &Cancel::default()).unwrap();
    let device = guest.devices(&["d1"]).unwrap().remove(0);
    let device = device.display();
    sh(
        &guest,
        &format!(
            "for try in 1 2 3; do zpool create -f -o ashift=12 tank {device} && break; done
             zfs create -o compression=lz4 tank/data
             head -c 1000000 /dev/urandom > /tank/data/mine
             zfs snapshot tank/data@mine
             mkdir /root/work"
        ),
    );
    guest
        .push_bytes(STUDY.as_bytes(), Path::new("/root/own.toml"), 0o600)
        .unwrap();
    let before = sh(&guest, WHOLE);
    let history = sh(&guest, "zpool history tank | wc -l");

    let told = sh(
        &guest,
        &format!("{ASSAY} --on tank/data --seed 1 --json -q"),
    );
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let run_of = &told["run"];
    assert_eq!(run_of["complete"], true, "{told:#}");
    let observed = run_of["observations"].as_array().unwrap();
    let count = |configuration: &str, figure: &str| {
        let ours = observed.iter().filter(|one| {
            one["configuration"] == configuration
                && one["figure"] == figure
                && one["value"].as_f64().unwrap() > 0.0
        });
        ours.count()
    };
    for (configuration, figure, times) in [
        ("dataset", "write", 2),
        ("dataset", "commits", 2),
        ("dataset", "accepted", 1),
        ("zvol", "write", 2),
        ("zvol", "space", 1),
        ("ext4", "write", 2),
        ("fresh", "write", 2),
        ("guest", "served", 2),
        ("guest", "served-commits", 2),
        ("guest-qcow2", "served", 2),
    ] {
        assert_eq!(
            count(configuration, figure),
            times,
            "{configuration} {figure}: {told:#}"
        );
    }
    assert_eq!(
        told["result"]["conclusions"][0]["finding"], "supported",
        "{told:#}"
    );
    let mut not_tried: Vec<_> = run_of["not_tried"].as_array().unwrap().iter().collect();
    not_tried.sort_by_key(|one| one["configuration"].as_str().unwrap().to_owned());
    let names: Vec<_> = not_tried.iter().map(|one| &one["configuration"]).collect();
    assert_eq!(names, ["dataset", "disk", "full", "nbd"], "{told:#}");
    assert_eq!(sh(&guest, WHOLE), before);
    every_change_is_below_the_dataset(&guest, history.trim());

    // What is no place for it is refused before anything is made.
    for wrong in ["tank/nothing", "tank/data@mine", "-r", "tank/data/../x"] {
        let (status, _, err) = run(&guest, &format!("{ASSAY} --on={wrong} -q"));
        assert_eq!(status, 2, "{wrong}: {err}");
    }
    assert_eq!(sh(&guest, WHOLE), before);
}

/// ZFS keeps a list of all that was ever asked of a pool.
fn every_change_is_below_the_dataset(guest: &Guest, lines_before: &str) {
    let script = format!("zpool history tank | tail -n +{lines_before} | tail -n +2");
    let new = sh(guest, &script);
    assert!(new.contains("zfs create"), "{new}");
    for line in new.lines().filter(|line| line.contains("zfs ")) {
        let last = line.split_whitespace().last().unwrap_or_default();
        assert!(last.starts_with("tank/data/assay-"), "{line}");
    }
}

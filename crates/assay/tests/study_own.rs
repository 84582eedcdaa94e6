//! Tests a study on a user's ZFS file system: executed by assay inside a guest, on a live pool. Needs one boot and
//! several minutes, so it is skipped by default.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_lab::Zfs;
use common::pools::{Lab, Pools, Said, disks};

/// Every kind of object below a dataset, and impossible ones.
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

/// The user's objects, and everything that a study could leave.
const WHOLE: &str = "zfs list -H -o name,used -t all -r tank | cut -f1; zfs get -H -o name,property,value,source \
     atime,compression,recordsize,mountpoint tank tank/data; sha256sum /tank/data/mine; \
     ls -A /tank/data /root/work; pgrep -c qemu-system || true; grep -c assay- /proc/mounts || true";

const STATE: &str = "/root/state";

fn study(guest: &Pools, arguments: &str) -> Said {
    guest.assay(STATE, &format!("study own.toml /root/work {arguments}"))
}

#[test]
fn a_study_below_a_dataset_touches_nothing_else_of_the_pool() {
    let Some(lab) = Lab::new(Zfs::Stable) else {
        return;
    };
    let guest = lab.boot("study-own", disks(1, 1 << 30));
    guest.create(&format!("-o ashift=12 tank {}", guest.devices(1)[0]));
    guest.sh("zfs create -o compression=lz4 tank/data
         head -c 1000000 /dev/urandom > /tank/data/mine
         zfs snapshot tank/data@mine
         mkdir /root/work");
    guest.push(STUDY, "/root/own.toml");
    let before = guest.sh(WHOLE);
    let history = guest.sh("zpool history tank | wc -l");

    let said = study(&guest, "--on tank/data --seed 1 --json -q");
    assert_eq!(said.status, 0, "{}", said.err);
    let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
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
    assert_eq!(guest.sh(WHOLE), before);
    every_change_is_below_the_dataset(&guest, history.trim());

    // Invalid targets are refused before anything is created.
    for wrong in ["tank/nothing", "tank/data@mine", "-r", "tank/data/../x"] {
        let said = study(&guest, &format!("--on={wrong} -q"));
        assert_eq!(said.status, 2, "{wrong}: {}", said.err);
    }
    assert_eq!(guest.sh(WHOLE), before);
    one_that_is_killed_is_taken_back(&guest, &before);
}

fn one_that_is_killed_is_taken_back(guest: &Pools, before: &str) {
    guest.start(STATE, "study own.toml /root/work --on tank/data --full -q");
    guest.wait_for("[ $(zfs list -H -o name | grep -c assay-) -ge 2 ] && pgrep qemu-system");
    guest.kill();
    assert_ne!(guest.sh(WHOLE), before);
    let recovered = guest.assay(STATE, "trial --recover");
    assert_eq!(recovered.status, 0, "{}{}", recovered.out, recovered.err);
    // The next start removes files in the directory.
    let next = study(guest, "--on tank/data --dry-run");
    assert_eq!(next.status, 0, "{}", next.err);
    assert_eq!(guest.sh(WHOLE), before, "{}", recovered.out);
}

/// ZFS records every command on a pool.
fn every_change_is_below_the_dataset(guest: &Pools, lines_before: &str) {
    let script = format!("zpool history tank | tail -n +{lines_before} | tail -n +2");
    let new = guest.sh(&script);
    assert!(new.contains("zfs create"), "{new}");
    for line in new.lines().filter(|line| line.contains("zfs ")) {
        let last = line.split_whitespace().last().unwrap_or_default();
        assert!(last.starts_with("tank/data/assay-"), "{line}");
    }
}

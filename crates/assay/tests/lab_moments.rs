//! Guests that are rebooted or restored from a snapshot, and disks that stall.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::guests::{image_for_long, nothing_left};
use common::{Home, Ran};

#[test]
fn a_guest_starts_anew_and_goes_back() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let disks = [
        "--disk",
        "64M,format=qcow2,bus=virtio-scsi",
        "--disk",
        "64M,format=qcow2,iops=5000",
    ];
    let up = home.assay(
        &[
            &["lab", "up", "--guest", "nas", "--memory", "512M"],
            &disks[..],
        ]
        .concat(),
    );
    assert_eq!(up.code, Some(0), "{}", up.stderr);
    let works = |words: &[&str]| -> String {
        let ran = home.assay(words);
        assert_eq!(ran.code, Some(0), "{words:?}: {}", ran.stderr);
        ran.stdout
    };
    let sh = |script: &str| works(&["lab", "run", "--guest", "nas", "--", "sh", "-ec", script]);
    sh(
        "mkfs.ext4 -q /dev/disk/by-id/virtio-disk2; mount /dev/disk/by-id/virtio-disk2 /mnt
        echo one > /root/mark; echo one > /mnt/mark; sync",
    );

    // A snapshot: memory, root and disks.
    works(&["lab", "snapshot", "before"]);
    let listed = works(&["lab", "snapshot", "--json"]);
    common::schemas::holds("lab-snapshots", &listed, &["/snapshots/0"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["snapshots"][0]["tag"], "before");
    assert!(listed["snapshots"][0]["memory_bytes"].as_u64() > Some(1 << 20));
    let taken = home.assay(&["lab", "snapshot", "before"]);
    assert_eq!(taken.code, Some(2), "{}", taken.stderr);
    sh("echo two | tee /root/mark > /mnt/mark; sync");
    works(&["lab", "restore", "before"]);
    assert_eq!(sh("cat /root/mark /mnt/mark"), "one\none\n");

    // The content of root and disks stays, that of memory does not.
    let boot = || sh("cat /proc/sys/kernel/random/boot_id");
    let mut seen = vec![boot()];
    for words in [
        &["lab", "reboot"][..],
        &["lab", "reboot", "--reset", "--guest", "nas"],
    ] {
        sh("echo kept > /root/mark; sync; touch /run/gone");
        works(words);
        seen.push(boot());
        assert_eq!(sh("cat /root/mark; test ! -e /run/gone"), "kept\n");
        sh("assay --version");
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 3, "three systems: {seen:?}");
    // A guest that panics ends as before.
    works(&["lab", "restore", "before"]);
    works(&["lab", "snapshot", "--delete", "before"]);
    let none = home.assay(&["lab", "restore", "before"]);
    assert!(none.code == Some(2) && none.stderr.contains("no snapshot before"));

    // A disk without snapshot support.
    works(&["lab", "plug", "32M"]);
    let raw = home.assay(&["lab", "snapshot", "again"]);
    assert!(
        raw.code == Some(2) && raw.stderr.contains("disk3"),
        "{}",
        raw.stderr
    );
    works(&["lab", "down", "--guest", "nas"]);
    nothing_left(&home);
}

#[test]
fn disks_stall_and_go_on() {
    let Some(_one) = image_for_long() else { return };
    let home = Home::new();
    let disks = ["--disk", "32M", "--disk", "32M,bus=virtio-scsi"];
    let up = home.assay(&[&["lab", "up", "--memory", "512M"], &disks[..]].concat());
    assert_eq!(up.code, Some(0), "{}", up.stderr);
    for (disk, name) in [
        ("disk1", "virtio-disk1"),
        ("disk2", "scsi-0QEMU_QEMU_HARDDISK_disk2"),
    ] {
        a_disk_stalls(&home, disk, name);
    }
    let stall = ["lab", "stall", "disk1", "--length", "100ms", "--"];
    let status = home.assay(&[&stall[..], &["sh", "-c", "exit 7"]].concat());
    assert_eq!(status.code, Some(7), "{}", status.stderr);
    let none = home.assay(&["lab", "stall", "disk9", "--", "true"]);
    assert!(none.stderr.contains("disk2"), "{}", none.stderr);
    let long = home.assay(&["lab", "stall", "disk1", "--every", "1s", "--length", "1s"]);
    assert_eq!(long.code, Some(2), "{}", long.stderr);
    home.assay(&["lab", "down"]);
    nothing_left(&home);
}

/// Requests during a stall wait until its end.
fn a_disk_stalls(home: &Home, disk: &str, name: &str) {
    let path = format!("--filename=/dev/disk/by-id/{name}");
    let fio = [
        "fio",
        "--name=t",
        &path,
        "--rw=randread",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=4",
        "--time_based",
        "--runtime=7",
        "--output-format=json",
    ];
    let stall = [
        "lab", "stall", disk, "--every", "3s", "--length", "1s", "--",
    ];
    let ran: Ran = home.assay(&[&stall[..], &fio].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let begin = ran.stdout.find('{').unwrap();
    let found: serde_json::Value = serde_json::from_str(&ran.stdout[begin..]).unwrap();
    let longest = found["jobs"][0]["read"]["clat_ns"]["max"].as_u64().unwrap();
    assert!(longest > 700_000_000, "{longest} ns, {}", ran.stderr);
    let line = ran.stderr.lines().find(|line| line.contains(" stalls"));
    let count = line.and_then(|line| line.split_whitespace().next());
    let count: u64 = count.unwrap_or_default().parse().unwrap_or(0);
    assert!(count >= 2, "{}", ran.stderr);
}

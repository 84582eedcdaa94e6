//! Tests trials on live pools inside a guest: settings are changed and reverted, datasets and volumes created and
//! destroyed, also after `kill -9` and a power cut.
//!
//! One boot, and a second one after the cut, for an older and a newer OpenZFS; skipped if that image is not cached.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_lab::{Disk, Zfs};
use common::pools::{self, Lab, Pools, Said, find};

/// Directory of journal and store: on the pool under the power cut.
const STATE: &str = "/tank/state";

fn trial(guest: &Pools, arguments: &str) -> Said {
    guest.assay(STATE, &format!("trial {arguments}"))
}

/// Shell command for continuing.
const ASSAY: &str = "env ASSAY_STATE=/tank/state ASSAY_STORE=/tank/state/db assay trial";

/// Returns a user page that changes a setting; its load is a shell command.
fn page(guest: &Pools, name: &str, setting: &str, value: &str, load: &str) {
    let text = format!(
        r#"+++
title = "A test"
statement = "Set it."
predicts = "Nothing."
source = {{ who = "A test", claimed = "Nothing." }}
literature = {{ standing = "conditional", text = "None.", references = ["none"] }}
risk = {{ level = "low", text = "None." }}

[trial]
target = "mount"
metric = "iops"
slot_seconds = 0.1
washout_seconds = 0.0

[trial.change]
kind = "set"
value = "{value}"
setting = {setting}

[trial.load]
kind = "command"
argv = ["sh", "-c", "{load}"]
+++
"#
    ) + &[
        "Claim",
        "Why it may help",
        "When it does not apply",
        "How we test",
        "Undo",
        "Sources",
    ]
    .map(|section| format!("## {section}\n\nnone\n\n"))
    .concat();
    guest.push(&text, &format!("/root/{name}.md"));
}

fn property(dataset: &str, name: &str) -> String {
    format!(r#"{{ kind = "zfs-property", dataset = "{dataset}", property = "{name}" }}"#)
}

const ARC: &str = r#"{ kind = "module-parameter", module = "zfs", name = "zfs_arc_max" }"#;
/// Lists everything that the trials change.
const SETTINGS: &str = "zfs get -H -o name,property,value,source atime,compression tank/data; \
    zfs get -H -o name,property,value,source logbias tank/received; \
    cat /sys/module/zfs/parameters/zfs_arc_max; \
    awk '$1 == \"c_max\" { print $3 }' /proc/spl/kstat/zfs/arcstats; zfs list -H -o name";

#[test]
fn trials_on_live_pools() {
    trials(Zfs::Stable);
}

#[test]
fn trials_on_live_pools_of_openzfs_2_3() {
    trials(Zfs::Backports);
}

fn trials(zfs: Zfs) {
    let Some(lab) = Lab::new(zfs) else { return };
    let disks = pools::disks(6, 256 << 20);
    let mut guest = lab.boot("zfs-trials", disks.clone());
    let devices = guest.devices(6);
    let [a, b, log] = [0, 1, 2].map(|at| &devices[at]);
    let mirror = format!("mirror {a} {b} log {log}");
    guest.create(&format!("-o ashift=12 -O compression=zle tank {mirror}"));
    let raidz = devices[3..].join(" ");
    guest.create(&format!("-o ashift=12 other raidz1 {raidz}"));
    guest.sh("zfs create tank/state
         zfs create -o atime=off tank/data
         zfs create tank/data/assay-0123456789abcdef-now
         zfs create -o logbias=throughput tank/sent
         zfs snapshot tank/sent@a
         zfs send -p tank/sent@a | zfs receive tank/received
         zfs destroy -r tank/sent");
    let before = guest.sh(SETTINGS);
    assert!(
        before.contains("compression\tzle\tinherited from tank"),
        "{before}"
    );
    assert!(before.contains("logbias\tthroughput\treceived"), "{before}");

    every_setting_is_set_and_put_back(&guest);
    assert_eq!(guest.sh(SETTINGS), before);
    a_limit_that_zfs_ignores_is_told(&guest);
    assert_eq!(guest.sh(SETTINGS), before);
    datasets_and_volumes_side_by_side(&guest);
    assert_eq!(guest.sh(SETTINGS), before);
    killed_in_the_middle(&guest);
    assert_eq!(guest.sh(SETTINGS), before);

    // A power cut while a property is changed and two datasets exist.
    guest.sh(&format!(
        "{ASSAY} zfs-recordsize /tank/data --size 8M --slot 600s -q >/dev/null 2>&1 &"
    ));
    guest.wait_for("zfs list -H -o name | grep -q 'assay-.*-changed'");
    // The result of `zfs` is on disk, so no wait is needed.
    set_and_sleep(&guest);
    guest.guest.cut_power();
    let kept = disks.iter().map(|disk| Disk {
        content: Some(guest.guest.disk_file(disk)),
        ..disk.clone()
    });
    let second = lab.boot("zfs-after", kept.collect());
    drop(guest);
    second.sh("zpool import -f tank && zpool import -f other");
    let found = second.sh(SETTINGS);
    assert!(found.contains("compression\tlz4\tlocal"), "{found}");
    assert!(found.contains("-changed"), "{found}");
    let recovered = trial(&second, "--recover");
    assert_eq!(recovered.status, 0, "{}{}", recovered.out, recovered.err);
    // The automatic limit of the ARC differs between boots.
    let lasting = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.parse::<u64>().is_err());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lasting(&second.sh(SETTINGS)), lasting(&before));
}

/// Local, inherited and received properties, and a parameter whose file does not show its full
/// value.
fn every_setting_is_set_and_put_back(guest: &Pools) {
    let get = |name: &str, dataset: &str| format!("zfs get -H -o value {name} {dataset} >> seen");
    let limit = "grep c_max /proc/spl/kstat/zfs/arcstats >> seen";
    page(
        guest,
        "atime",
        &property("tank/data", "atime"),
        "on",
        &get("atime", "tank/data"),
    );
    page(
        guest,
        "lz4",
        &property("tank/data", "compression"),
        "lz4",
        &get("compression", "tank/data"),
    );
    page(
        guest,
        "bias",
        &property("tank/received", "logbias"),
        "latency",
        &get("logbias", "tank/received"),
    );
    page(guest, "arc", ARC, "83886080", limit);
    let said = trial(
        guest,
        "./atime.md ./lz4.md ./bias.md ./arc.md /tank/data --pairs 1 -y -q",
    );
    assert_eq!(said.status, 0, "{}{}", said.out, said.err);
    // The load ran with both values of each.
    let seen = guest.sh("sort -u /root/seen");
    for value in ["on", "off", "lz4", "zle", "latency", "throughput"] {
        assert!(seen.lines().any(|line| line == value), "{value}: {seen}");
    }
    let limits: Vec<&str> = seen
        .lines()
        .filter(|line| line.starts_with("c_max"))
        .collect();
    assert_eq!(limits.len(), 2, "{seen}");
    assert!(
        limits.iter().any(|line| line.ends_with(" 83886080")),
        "{seen}"
    );
}

fn a_limit_that_zfs_ignores_is_told(guest: &Pools) {
    page(guest, "small", ARC, "1000", "true");
    let said = trial(guest, "./small.md /tank/data --pairs 1 -y -q");
    assert_eq!(said.status, 2, "{}", said.out);
    let why = ["c_max", "Invalid argument"];
    assert!(why.iter().any(|why| said.err.contains(why)), "{}", said.err);
}

fn datasets_and_volumes_side_by_side(guest: &Pools) {
    let quick = "--size 8M --slot 300ms --washout 0s --pairs 1 -q --json";
    for (what, sides) in [
        (
            "zfs-recordsize /tank/data",
            [
                "filesystem, recordsize 131072",
                "filesystem, recordsize 16384",
            ],
        ),
        (
            "zfs-volblocksize /other",
            ["volume, volblocksize 8192", "volume, volblocksize 4096"],
        ),
        (
            "zfs-sync-disabled /tank/data",
            ["sync standard", "sync disabled"],
        ),
    ] {
        let said = trial(guest, &format!("{what} {quick}"));
        assert_eq!(said.status, 0, "{what}: {}", said.err);
        for side in sides {
            assert!(said.out.contains(side), "{what}, {side}: {}", said.out);
        }
        let told: serde_json::Value = serde_json::from_str(&said.out).unwrap();
        let lost = find(&told, "durability").cloned().unwrap_or_default();
        if what.starts_with("zfs-sync") {
            assert_eq!(
                (&lost[0]["lost"], &lost[1]["lost"]),
                (&0.into(), &60.into()),
                "{lost}"
            );
        }
    }
}

/// A load that sleeps where the property is set, and ends at once where it is not.
const SLEEP: &str = "case $(zfs get -H -o value compression tank/data) in lz4) sleep 50;; esac";

/// Starts a trial that changes a property and keeps running.
fn set_and_sleep(guest: &Pools) {
    page(
        guest,
        "sleep",
        &property("tank/data", "compression"),
        "lz4",
        SLEEP,
    );
    guest.sh(&format!(
        "cd /root; {ASSAY} ./sleep.md /tank --seed 1 -y -q >/dev/null 2>&1 & echo $! > pid"
    ));
    guest.wait_for("zfs get -H -o value compression tank/data | grep -q lz4");
}

fn killed_in_the_middle(guest: &Pools) {
    set_and_sleep(guest);
    guest.sh("kill -9 $(cat /root/pid); sleep 1");
    let found = guest.sh(SETTINGS);
    assert!(found.contains("compression\tlz4\tlocal"), "{found}");
    let recovered = trial(guest, "--recover");
    assert_eq!(recovered.status, 0, "{}{}", recovered.out, recovered.err);
    assert!(
        recovered.out.contains("compression of tank/data"),
        "{}{}",
        recovered.out,
        recovered.err
    );
}

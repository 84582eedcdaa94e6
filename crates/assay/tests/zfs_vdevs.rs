//! Tests every kind of vdev in a guest with an older and a newer OpenZFS: its facts, a trial on it, its counters, and
//! that only the named dataset is changed.
//!
//! One boot for each OpenZFS; skipped if that image is not cached.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_lab::Zfs;
use common::pools::{self, Lab, Pools};
use serde_json::Value;

#[test]
fn vdevs_of_openzfs_2_1() {
    vdevs(Zfs::Stable);
}

#[test]
fn vdevs_of_openzfs_2_3() {
    vdevs(Zfs::Backports);
}

/// Directory of journal and store: not on the pools.
const STATE: &str = "/root/state";
/// One pair gives no verdict, but it is a trial.
const QUICK: &str = "--slot 500ms --washout 100ms --pairs 1 -y -q --json";

fn vdevs(zfs: Zfs) {
    let Some(lab) = Lab::new(zfs) else { return };
    let guest = lab.boot("vdevs", pools::disks(6, 512 << 20));
    let disks = guest.devices(6);
    let first = |count: usize| disks[..count].join(" ");

    let [a, b, log, cache, c, d] = [0, 1, 2, 3, 4, 5].map(|at| &disks[at]);
    let mirror = format!("mirror {a} {b} log {log} cache {cache} special mirror {c} {d}");
    on(&guest, zfs, &mirror, |pool| {
        let kinds = ["data mirror", "special mirror", "log disk", "cache disk"];
        pool.reads(&kinds, 6);
        what_applies(pool);
        log_device(pool);
        special_device(pool);
        cache_device(pool);
    });
    on(&guest, zfs, &format!("raidz1 {}", first(3)), |pool| {
        pool.reads(&["data raidz1"], 3);
        sides(
            &pool.trial("zfs-recordsize --size 8M"),
            "recordsize",
            ["131072", "16384"],
        );
        inode_attributes(pool);
    });
    on(&guest, zfs, &format!("raidz2 {}", first(4)), |pool| {
        pool.reads(&["data raidz2"], 4);
        let told = pool.trial("zfs-volblocksize --size 8M");
        sides(&told, "volblocksize", ["8192", "4096"]);
    });
    on(&guest, zfs, &format!("raidz3 {}", first(5)), |pool| {
        pool.reads(&["data raidz3"], 5);
        let told = pool.trial("zfs-redundant-metadata --size 8M");
        sides(&told, "redundant_metadata", ["all", "most"]);
    });
    on(
        &guest,
        zfs,
        &format!("draid2:2d:6c:1s {}", first(6)),
        |pool| {
            pool.reads(&["data draid2:2d:6c:1s", "spare draid spare"], 6);
            let told = pool.trial("zfs-primarycache-metadata --size 8M");
            sides(&told, "primarycache", ["all", "metadata"]);
            // The ARC served on one side what the disks served on the other.
            let misses = |side| number(counters(&told, side), &["arc", "demand_data_misses"]);
            assert!(misses("changed") > 10 * misses("now").max(1), "{told:#}");
        },
    );
}

/// A pool with a named dataset and another one.
struct Pool<'a> {
    guest: &'a Pools,
    zfs: Zfs,
}

/// Creates a pool, and destroys it after checking that only named objects were changed.
fn on(guest: &Pools, zfs: Zfs, vdevs: &str, act: impl FnOnce(&Pool<'_>)) {
    guest.create(&format!("-o ashift=12 tank {vdevs}"));
    guest.sh("zfs create -o xattr=dir -o atime=on tank/data
         zfs create tank/other
         head -c 1M /dev/urandom > /tank/data/file
         cp /tank/data/file /tank/other/file
         zfs snapshot tank/other@a");
    let look = "sha256sum /tank/data/file /tank/other/file
        zfs list -H -t all -o name
        zfs get -r -H -s local,received -o name,property,value all tank
        grep . /sys/module/zfs/parameters/* | grep -v 'spa_config_path'
        zpool status -LP tank | grep -v scan:
        find /tank | sort";
    let before = guest.sh(look);
    let done = |history: String| -> Vec<String> {
        let lines = history.lines().filter(|line| !line.is_empty());
        lines.map(str::to_owned).collect()
    };
    let from = done(guest.sh("zpool history tank")).len();
    act(&Pool { guest, zfs });
    assert_eq!(guest.sh(look), before, "{vdevs}");
    let history = done(guest.sh("zpool history tank"));
    // The pool's own history of changes; two are from this test.
    let ours = [" tank/fresh", " xattr="];
    for line in &history[from..] {
        let named = |name: &&str| line.contains(name);
        assert!(
            line.contains(" tank/data/assay-") || ours.iter().any(named),
            "{vdevs}: {line}"
        );
    }
    guest.sh("zpool destroy tank");
}

impl Pool<'_> {
    /// Checks facts and layers: the vdevs in the order of `zpool status` as `CLASS KIND`, and all
    /// disks.
    fn reads(&self, kinds: &[&str], disks: usize) {
        let found = self
            .guest
            .found(STATE, "facts zfs.pool.tank --target /tank/data --json");
        let fact = |key: String| found["facts"][&key]["known"].clone();
        let mut devices = 0;
        for (at, kind) in kinds.iter().enumerate() {
            let of = |name: &str| fact(format!("zfs.pool.tank.vdev.{at}.{name}"));
            let told = format!("{} {}", text(&of("class")), text(&of("kind")));
            assert_eq!(told, *kind, "{found:#}");
            if !matches!(text(&of("class")), "cache" | "spare") {
                assert_eq!(of("ashift"), 12, "{kind}: {found:#}");
                assert_eq!(of("state"), "ONLINE", "{kind}: {found:#}");
            }
            let leaves = of("devices");
            let leaves = leaves.as_array().unwrap().iter();
            devices += leaves
                .filter(|leaf| text(leaf).starts_with("/dev/"))
                .count();
        }
        assert_eq!(devices, disks, "{found:#}");
        let next = format!("zfs.pool.tank.vdev.{}.kind", kinds.len());
        assert!(fact(next).is_null(), "{found:#}");

        let stack = self.guest.found(STATE, "stack /tank/data --json");
        let layers = stack["layers"].as_array().unwrap();
        let below = layers
            .iter()
            .filter(|layer| layer["kind"] == "disk")
            .count();
        assert_eq!(below, disks, "{stack:#}");
    }

    fn trial(&self, words: &str) -> Value {
        let (advice, more) = words.split_once(' ').unwrap_or((words, ""));
        let all = format!("trial {advice} /tank/data {more} {QUICK}");
        self.guest.json(STATE, &all)
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn pair<'a>(told: &'a Value, side: &str) -> &'a Value {
    let slot = &told["pairs"][0][side];
    assert_eq!(slot["outcome"]["state"], "completed", "{told:#}");
    slot
}

fn counters<'a>(told: &'a Value, side: &str) -> &'a Value {
    &pair(told, side)["counters"]
}

fn number(value: &Value, path: &[&str]) -> u64 {
    let found = path.iter().fold(value, |value, key| &value[*key]);
    found
        .as_u64()
        .unwrap_or_else(|| panic!("{path:?}: {value:#}"))
}

/// Both sides report the expected values.
fn sides(told: &Value, property: &str, values: [&str; 2]) {
    for (side, value) in ["now", "changed"].into_iter().zip(values) {
        let read = text(&pair(told, side)["read_back"]);
        let wanted = format!("{property} {value}");
        assert!(read.contains(&wanted), "{side}: {wanted}: {read}");
    }
}

/// Advice that depends on the version, on both sides of the boundary.
fn what_applies(pool: &Pool<'_>) {
    let newer = pool.zfs == Zfs::Backports;
    let version = pool.guest.sh("cat /sys/module/zfs/version");
    let series = if newer { "2.3." } else { "2.1." };
    assert!(version.starts_with(series), "{version}");
    // A dataset with only the defaults of the release.
    let defaults = pool.guest.sh("zfs create tank/fresh
         zfs create -V 1M tank/fresh/volume
         zfs get -H -o value volblocksize tank/fresh/volume
         cat /sys/module/zfs/parameters/l2arc_write_max");
    let wanted = if newer {
        "16K\n33554432\n"
    } else {
        "8K\n8388608\n"
    };
    assert_eq!(defaults, wanted, "OpenZFS {version}");
    let words = "advice --domain zfs --target /tank/fresh --json";
    let told = pool.guest.found(STATE, words);
    pool.guest.sh("zfs destroy -r tank/fresh");
    let all = told["advice"].as_array().unwrap();
    for (advice, applies_before, applies_since) in [
        ("zfs-atime", "yes", "no"),
        ("zfs-compression", "yes", "no"),
        ("zfs-direct-disabled", "no", "yes"),
        ("zfs-dnodesize-auto", "no", "yes"),
        ("zfs-l2arc-write-max", "yes", "yes"),
        ("zfs-special-small-blocks", "yes", "yes"),
        ("zfs-txg-timeout", "yes", "yes"),
        ("zfs-xattr-sa", "yes", "no"),
    ] {
        let found = all.iter().find(|one| one["id"] == advice).unwrap();
        let wanted = if newer { applies_since } else { applies_before };
        assert_eq!(found["here"]["applies"], wanted, "{advice}: {found:#}");
    }
}

/// With logbias=latency the log device contains the data; with throughput, and always since direct
/// I/O exists, only references.
fn log_device(pool: &Pool<'_>) {
    let told = pool.trial("zfs-logbias-throughput --size 8M");
    sides(&told, "logbias", ["latency", "throughput"]);
    let zil = |side, name| number(counters(&told, side), &["zil", name]);
    for (side, in_log) in [("now", pool.zfs == Zfs::Stable), ("changed", false)] {
        let commits = zil(side, "commits");
        if in_log {
            assert!(zil(side, "slog_bytes") >= 16384 * commits, "{told:#}");
        } else {
            // The log refers to data in their final place.
            assert!(zil(side, "slog_bytes") < 1024 * commits, "{told:#}");
            assert!(zil(side, "indirect_bytes") >= 16384 * commits, "{told:#}");
        }
    }
    for side in ["now", "changed"] {
        assert!(zil(side, "commits") > 0, "{told:#}");
        let flushes = counters(&told, side)["devices"].as_array().unwrap().iter();
        let flushes: u64 = flushes.map(|device| number(device, &["flushes"])).sum();
        assert!(flushes > 0, "{side}: {told:#}");
    }
}

/// Small blocks are stored where the property requests.
fn special_device(pool: &Pool<'_>) {
    let told = pool.trial("zfs-special-small-blocks --size 8M");
    sides(&told, "special_small_blocks", ["0", "16384"]);
    // Data was written to the mirror on one side, to the special mirror on the other.
    let read = |side, at: [usize; 2]| -> u64 {
        let devices = counters(&told, side)["devices"].as_array().unwrap();
        at.map(|at| number(&devices[at], &["read_bytes"]))
            .iter()
            .sum()
    };
    // Sorted by name: the disks of the log and cache devices are in between.
    let (data, special) = ([0, 1], [4, 5]);
    assert!(read("now", data) > 4 * read("now", special), "{told:#}");
    assert!(
        read("changed", special) > 4 * read("changed", data),
        "{told:#}"
    );
}

/// Tests a module parameter of the cache device.
fn cache_device(pool: &Pool<'_>) {
    let told = pool.trial("zfs-l2arc-write-max --size 8M");
    let before = pool
        .guest
        .sh("cat /sys/module/zfs/parameters/l2arc_write_max");
    let read = ["now", "changed"].map(|side| text(&pair(&told, side)["read_back"]).to_owned());
    assert_eq!(read, [before.trim(), "134217728"], "{told:#}");
    let devices = counters(&told, "now")["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 6, "{told:#}");
}

/// Tests attributes inside of the inode, outside, and in a larger inode.
fn inode_attributes(pool: &Pool<'_>) {
    // Up to 2.2 `dir` reads back as `on`, which means the same; since then `sa` does.
    let (dir, sa) = match pool.zfs {
        Zfs::Stable => ("on", "sa"),
        Zfs::Backports => ("dir", "on"),
    };
    for (advice, property, values) in [
        ("zfs-xattr-sa", "xattr", [dir, sa]),
        ("zfs-dnodesize-auto", "dnodesize", ["legacy", "auto"]),
    ] {
        if advice == "zfs-dnodesize-auto" {
            pool.guest.sh("zfs set xattr=sa tank/data");
        }
        let told = pool.trial(&format!("{advice} --set files=100"));
        sides(&told, property, values);
    }
    pool.guest.sh("zfs set xattr=dir tank/data");
}

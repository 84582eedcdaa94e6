//! Trials on live pools, carried out by assay inside a guest: settings set and put back, data sets
//! and volumes made and destroyed, after `kill -9` and after a power cut as well.
//!
//! One boot, and a second one after the cut; skipped where no guest image is cached.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

use assay_host::Limits;
use assay_instruments::Cancel;
use assay_lab::{Cache, Disk, Guest, Image, Options, State};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// An emulated guest on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(900);

fn image() -> Option<Image> {
    if std::env::var_os("ASSAY_LAB_ALL").is_none() {
        eprintln!("skipped: it takes minutes; ASSAY_LAB_ALL=1 runs it");
        return None;
    }
    let found = Cache::of_user().ok().and_then(|cache| cache.find());
    if found.is_none() {
        eprintln!("skipped: no guest image; `assay lab build` makes one");
    }
    found
}

/// What a command of the guest said.
struct Said {
    status: i32,
    out: String,
    err: String,
}

fn run(guest: &Guest, argv: &[&str]) -> Said {
    let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
    let limits = Limits { timeout: PATIENCE };
    let output = guest
        .run(&words, limits)
        .unwrap_or_else(|error| panic!("{argv:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said {
        status: output.status,
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

fn sh(guest: &Guest, script: &str) -> String {
    let said = run(guest, &["sh", "-euc", script]);
    assert_eq!(said.status, 0, "{script}: {}{}", said.out, said.err);
    said.out
}

/// assay in the guest, with its journal and store on the pool.
const ASSAY: &str = "env ASSAY_STATE=/tank/state ASSAY_STORE=/tank/state/db assay trial";

fn trial(guest: &Guest, arguments: &str) -> Said {
    run(
        guest,
        &["sh", "-c", &format!("cd /root; {ASSAY} {arguments}")],
    )
}

fn wait_for(guest: &Guest, script: &str) {
    let deadline = Instant::now() + PATIENCE;
    while run(guest, &["sh", "-c", script]).status != 0 {
        assert!(Instant::now() < deadline, "{script}");
        std::thread::sleep(Duration::from_millis(500));
    }
}

/// A piece of advice of one's own that sets something; its load is a shell command.
fn page(guest: &Guest, name: &str, setting: &str, value: &str, load: &str) {
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
    let to = PathBuf::from(format!("/root/{name}.md"));
    guest.push_bytes(text.as_bytes(), &to, 0o644).unwrap();
}

fn property(dataset: &str, name: &str) -> String {
    format!(r#"{{ kind = "zfs-property", dataset = "{dataset}", property = "{name}" }}"#)
}

const ARC: &str = r#"{ kind = "module-parameter", module = "zfs", name = "zfs_arc_max" }"#;
/// Everything that the trials change.
const SETTINGS: &str = "zfs get -H -o name,property,value,source atime,compression tank/data; \
    zfs get -H -o name,property,value,source logbias tank/received; \
    cat /sys/module/zfs/parameters/zfs_arc_max; \
    awk '$1 == \"c_max\" { print $3 }' /proc/spl/kstat/zfs/arcstats; zfs list -H -o name";

#[test]
fn trials_on_live_pools() {
    let Some(image) = image() else { return };
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path()).unwrap();
    let boot = |name: &str, disks: Vec<Disk>| {
        let options = Options {
            assay: Some(env!("CARGO_BIN_EXE_assay").into()),
            disks,
            boot_limit: PATIENCE,
            ..Options::new(name)
        };
        Guest::boot(&image, &options, &state, &Cancel::default()).unwrap()
    };
    let disks: Vec<Disk> = (1..=6)
        .map(|number| Disk::scratch(&format!("d{number}"), 256 << 20))
        .collect();
    let mut guest = boot("zfs-trials", disks.clone());
    let names = ["d1", "d2", "d3", "d4", "d5", "d6"];
    let devices = guest.devices(&names).unwrap();
    let devices: Vec<_> = devices
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    // zpool waits 30 s for udev to see its partitions, which may be too short here.
    let create =
        |words: &str| format!("for try in 1 2 3; do zpool create -f {words} && break; done");
    let [a, b, log] = [0, 1, 2].map(|at| &devices[at]);
    let mirror = format!("-o ashift=12 -O compression=zle tank mirror {a} {b} log {log}");
    sh(&guest, &create(&mirror));
    let raidz = format!("-o ashift=12 other raidz1 {}", devices[3..].join(" "));
    sh(&guest, &create(&raidz));
    sh(
        &guest,
        "zfs create tank/state
         zfs create -o atime=off tank/data
         zfs create tank/data/assay-0123456789abcdef-now
         zfs create -o logbias=throughput tank/sent
         zfs snapshot tank/sent@a
         zfs send -p tank/sent@a | zfs receive tank/received
         zfs destroy -r tank/sent",
    );
    let before = sh(&guest, SETTINGS);
    assert!(
        before.contains("compression\tzle\tinherited from tank"),
        "{before}"
    );
    assert!(before.contains("logbias\tthroughput\treceived"), "{before}");

    every_setting_is_set_and_put_back(&guest);
    assert_eq!(sh(&guest, SETTINGS), before);
    a_limit_that_zfs_ignores_is_told(&guest);
    assert_eq!(sh(&guest, SETTINGS), before);
    datasets_and_volumes_side_by_side(&guest);
    assert_eq!(sh(&guest, SETTINGS), before);
    killed_in_the_middle(&guest);
    assert_eq!(sh(&guest, SETTINGS), before);

    // A power cut with a property set and two data sets there.
    sh(
        &guest,
        &format!("{ASSAY} zfs-recordsize /tank/data --size 8M --slot 600s -q >/dev/null 2>&1 &"),
    );
    wait_for(&guest, "zfs list -H -o name | grep -q 'assay-.*-changed'");
    // What `zfs` has answered is on disk: nothing has to be waited for.
    set_and_sleep(&guest);
    guest.cut_power();
    let kept = disks.iter().map(|disk| Disk {
        content: Some(guest.disk_file(disk)),
        ..disk.clone()
    });
    let second = boot("zfs-after", kept.collect());
    drop(guest);
    sh(&second, "zpool import -f tank && zpool import -f other");
    let found = sh(&second, SETTINGS);
    assert!(found.contains("compression\tlz4\tlocal"), "{found}");
    assert!(found.contains("-changed"), "{found}");
    let recovered = trial(&second, "--recover");
    assert_eq!(recovered.status, 0, "{}{}", recovered.out, recovered.err);
    // The automatic limit of the ARC differs from boot to boot.
    let lasting = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.parse::<u64>().is_err());
        lines.map(str::to_owned).collect()
    };
    assert_eq!(lasting(&sh(&second, SETTINGS)), lasting(&before));
}

/// Local, inherited and received properties, and a parameter whose file does not tell all.
fn every_setting_is_set_and_put_back(guest: &Guest) {
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
    // The load ran with each value of each.
    let seen = sh(guest, "sort -u /root/seen");
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

fn a_limit_that_zfs_ignores_is_told(guest: &Guest) {
    page(guest, "small", ARC, "1000", "true");
    let said = trial(guest, "./small.md /tank/data --pairs 1 -y -q");
    assert_eq!(said.status, 2, "{}", said.out);
    let why = ["c_max", "Invalid argument"];
    assert!(why.iter().any(|why| said.err.contains(why)), "{}", said.err);
}

fn datasets_and_volumes_side_by_side(guest: &Guest) {
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

/// The first value of that key, wherever it stands.
fn find<'a>(value: &'a serde_json::Value, key: &str) -> Option<&'a serde_json::Value> {
    match value {
        serde_json::Value::Object(map) => map
            .get(key)
            .or_else(|| map.values().find_map(|value| find(value, key))),
        serde_json::Value::Array(items) => items.iter().find_map(|value| find(value, key)),
        _ => None,
    }
}

/// A load that lasts where the property is set, and is over at once where it is not.
const SLEEP: &str = "case $(zfs get -H -o value compression tank/data) in lz4) sleep 50;; esac";

/// Leaves a trial running that has set a property.
fn set_and_sleep(guest: &Guest) {
    page(
        guest,
        "sleep",
        &property("tank/data", "compression"),
        "lz4",
        SLEEP,
    );
    sh(
        guest,
        &format!(
            "cd /root; {ASSAY} ./sleep.md /tank --seed 1 -y -q >/dev/null 2>&1 & echo $! > pid"
        ),
    );
    wait_for(
        guest,
        "zfs get -H -o value compression tank/data | grep -q lz4",
    );
}

fn killed_in_the_middle(guest: &Guest) {
    set_and_sleep(guest);
    sh(guest, "kill -9 $(cat /root/pid); sleep 1");
    let found = sh(guest, SETTINGS);
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

//! `assay stack --measure` with volumes of a real pool and a real volume group, inside a guest: made,
//! measured, taken away, also after `kill -9`; and refused where they would be in the way.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program in a guest"
)]

mod common;

use assay_host::Limits;
use assay_instruments::Cancel;
use assay_lab::{Disk, Guest, Options, State};
use common::guests::image_for_long;
use serde_json::Value;
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// An emulated guest on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(900);

/// A pool on d1 and a group on d2, with things in them that are not assay's, and a file system on a
/// zvol, on LUKS on a logical volume, and directly in the pool.
const SETUP: &str = r#"
for try in 1 2 3; do zpool create -f -o ashift=12 -O compression=lz4 tank "$1" && break; done
zfs create tank/data
zfs create "tank/with blank"
zfs create -o assay:session=assay-0123456789abcdef tank/data/assay-0123456789abcdef-zvol
zfs create -s -V 128M -b 16k tank/vol
pvcreate -q "$2"
vgcreate -q vg-a "$2"
lvcreate -q -y -n data -L 200M vg-a
lvcreate -q -y -n assay-0123456789abcdef-lv -L 8M vg-a
lvcreate -q -y -T -L 64M vg-a/pool
printf secret | cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 /dev/vg-a/data -
printf secret | cryptsetup open /dev/vg-a/data vault -d -
mkdir -p /srv/lv /srv/zvol
mkfs.ext4 -q /dev/mapper/vault
mount /dev/mapper/vault /srv/lv
for try in 1 2 3 4 5 6 7 8 9 10; do [ -e /dev/zvol/tank/vol ] && break; sleep 1; done
mkfs.ext4 -q /dev/zvol/tank/vol
mount /dev/zvol/tank/vol /srv/zvol
"#;

/// What must be the same before and after.
const THINGS: &str = "zfs list -H -o name,assay:session -t all; lvs --noheadings -o lv_name,lv_tags vg-a; \
    ls -A /tank/data /srv/lv /srv/zvol; cat /proc/mounts";

const SHORT: &str =
    "--measure --yes --quiet --json --rounds 2 --runtime 1s --ramp 50ms --size 8M --seed 1";

/// assay keeps its things apart from what is measured.
const ENV: &str = "env ASSAY_STATE=/root/state ASSAY_STORE=/root/store.db";

/// Of the six samples of a rung: on a busy machine one may see no I/O at all.
const MOST: usize = 4;

struct Said {
    status: i32,
    out: String,
    err: String,
}

struct Machine(Guest);

impl Machine {
    fn run(&self, argv: &[&str]) -> Said {
        let words: Vec<&OsStr> = argv.iter().map(OsStr::new).collect();
        let limits = Limits { timeout: PATIENCE };
        let output = self.0.run(&words, limits);
        let output = output.unwrap_or_else(|error| panic!("{argv:?}: {error}"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            status: output.status,
            out: text(&output.stdout),
            err: text(&output.stderr),
        }
    }

    fn sh(&self, script: &str) -> String {
        let said = self.run(&["sh", "-euc", script]);
        assert_eq!(said.status, 0, "{script}: {}{}", said.out, said.err);
        said.out
    }

    fn assay(&self, arguments: &str) -> Said {
        let said = self.run(&["sh", "-c", &format!("{ENV} assay {arguments}")]);
        assert!(!said.err.contains("panicked"), "{arguments}: {}", said.err);
        said
    }

    /// Measures and returns the document; nothing is left.
    fn measured(&self, arguments: &str) -> Value {
        let before = self.sh(THINGS);
        let said = self.assay(&format!("stack {arguments} {SHORT}"));
        assert_eq!(said.status, 0, "{arguments}: {}", said.err);
        assert_eq!(self.sh(THINGS), before, "{arguments}");
        serde_json::from_str(&said.out).unwrap()
    }

    fn wait_for(&self, script: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.run(&["sh", "-c", script]).status != 0 {
            assert!(Instant::now() < deadline, "{script}");
            std::thread::sleep(Duration::from_millis(500));
        }
    }
}

fn rungs(document: &Value) -> Vec<&str> {
    let rungs = document["run"]["ladder"]["rungs"].as_array().unwrap();
    rungs
        .iter()
        .map(|rung| rung["name"].as_str().unwrap())
        .collect()
}

/// Samples of a rung that count.
fn valid(document: &Value, rung: &str) -> usize {
    let samples = document["samples"].as_array().unwrap().iter();
    let counts = |sample: &&Value| sample["target"] == rung && sample["validity"] != "void";
    samples.filter(counts).count()
}

/// A guest that is set up, with what it needs to live.
fn with_machine(name: &str, act: impl FnOnce(&Machine)) {
    let Some((image, _one)) = image_for_long() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let state = State::open(dir.path()).unwrap();
    let options = Options {
        assay: Some(env!("CARGO_BIN_EXE_assay").into()),
        disks: vec![
            Disk::scratch("d1", 640 << 20),
            Disk::scratch("d2", 320 << 20),
        ],
        boot_limit: PATIENCE,
        ..Options::new(name)
    };
    let guest = Guest::boot(&image, &options, &state, &Cancel::default()).unwrap();
    let devices = guest.devices(&["d1", "d2"]).unwrap();
    let [pool, group] = [0, 1].map(|at| devices[at].display().to_string());
    let machine = Machine(guest);
    let made = machine.run(&["sh", "-euc", SETUP, "sh", &pool, &group]);
    assert_eq!(made.status, 0, "{}{}", made.out, made.err);
    act(&machine);
}

#[test]
fn volumes_of_a_real_pool_and_a_real_group() {
    with_machine("stack-volumes", |machine| {
        a_file_system_on_luks_on_a_volume(machine);
        on_a_zvol_and_in_the_pool(machine);
        what_would_be_in_the_way_is_refused(machine);
    });
}

#[test]
fn two_at_once_and_one_that_is_killed() {
    with_machine("stack-killed", killed_in_the_middle);
}

fn a_file_system_on_luks_on_a_volume(machine: &Machine) {
    let document = machine.measured("/srv/lv --layers file --scratch-vg vg-a");
    assert_eq!(rungs(&document), ["lv", "file", "lv-again", "file-again"]);
    let ladder = &document["run"]["ladder"]["rungs"];
    assert_eq!(ladder[1]["layer"], "ext4 on LUKS");
    assert_eq!(ladder[1]["parent"], 0);
    // The volume's own counters, not those of the target's.
    let targets = &document["run"]["targets"];
    assert_ne!(targets[0]["devices"], targets[1]["devices"], "{targets:#}");
    for rung in rungs(&document) {
        assert!(valid(&document, rung) >= MOST, "{rung}: {document:#}");
    }
    let whole = &document["waterfalls"][0]["wholes"][0];
    assert_eq!(whole["separate"], true, "{whole:#}");
    let thin = machine.measured("/srv/lv --layers file --scratch-vg vg-a/pool");
    assert_eq!(
        thin["run"]["ladder"]["rungs"][0]["settings"]["thin_pool"],
        "pool"
    );
    assert!(valid(&thin, "thin-lv") >= MOST, "{thin:#}");
}

fn on_a_zvol_and_in_the_pool(machine: &Machine) {
    let document = machine.measured("/srv/zvol --layers file --scratch-dataset 'tank/with blank'");
    assert_eq!(
        rungs(&document),
        ["zvol", "file", "zvol-again", "file-again"]
    );
    let zvol = &document["run"]["ladder"]["rungs"][0];
    // As the target's own.
    assert_eq!(zvol["settings"]["volblocksize"], "16k", "{zvol:#}");
    // Its reads came from the pool's disk.
    let sample = document["samples"].as_array().unwrap();
    let read = sample
        .iter()
        .find(|one| one["target"] == "zvol" && one["workload"] == "randread-4k-qd1");
    assert_ne!(read.unwrap()["validity"], "void", "{read:#?}");

    let document = machine.measured("/tank/data --layers image --scratch-dataset tank/data");
    let expected = [
        "file",
        "zvol",
        "nbd-raw",
        "nbd-qcow2",
        "file-again",
        "nbd-qcow2-again",
    ];
    assert_eq!(rungs(&document), expected);
    for rung in ["file", "zvol"] {
        assert!(valid(&document, rung) >= MOST, "{rung}: {document:#}");
    }
    let step = &document["waterfalls"][0]["steps"][0];
    assert_eq!((&step["from"], &step["to"]), (&0.into(), &1.into()));
    assert!(step["added"]["value"].is_number(), "{step:#}");
}

fn what_would_be_in_the_way_is_refused(machine: &Machine) {
    let before = machine.sh(THINGS);
    for (arguments, said) in [
        ("/srv/lv --scratch-vg vg-b", "it lies on vg-a"),
        ("/srv/lv --scratch-dataset tank", "no pool under it"),
        ("/tank/data --scratch-vg vg-a", "no volume group under it"),
        ("/tank/data --scratch-dataset tank/none", "does not exist"),
        ("/tank/data --scratch-dataset tank/vol", "it is a volume"),
        ("/tank/data --scratch-dataset tank/data@x", "tank/data@x"),
        ("/tank/data --scratch-dataset -r", "-r"),
        (
            "/tank/data --scratch-dataset tank --size 500M",
            "smaller --size",
        ),
        ("/srv/lv --scratch-vg vg-a --size 400M", "smaller --size"),
        (
            "/srv/lv --scratch-vg vg-a/pool --size 60M",
            "thin pool would be",
        ),
        ("/srv/lv --scratch-vg vg-a/data", "there is pool"),
        ("/srv/lv --scratch-vg=-x", "no name of LVM"),
        ("/srv/lv --scratch-vg 'vg-a/../x'", "no name of LVM"),
        (
            "/tank/data --scratch-dataset tank --scratch-set mountpoint=/etc",
            "mountpoint",
        ),
        (
            "/tank/data --scratch-dataset tank --scratch-set volblocksize=7",
            "volblocksize",
        ),
    ] {
        let short = match arguments.contains("--size") {
            true => SHORT.replace("--size 8M", ""),
            false => SHORT.to_owned(),
        };
        let ran = machine.assay(&format!("stack {arguments} --layers file {short}"));
        assert_eq!(ran.status, 2, "{arguments}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(said), "{arguments}: {}", ran.err);
        assert_eq!(machine.sh(THINGS), before, "{arguments}");
    }
    // A full thin pool may need the room of the group.
    machine.sh("lvcreate -q -y -V 62M -T vg-a/pool -n full
         dd if=/dev/urandom of=/dev/vg-a/full bs=1M count=56 oflag=direct status=none");
    let ran = machine.assay(&format!(
        "stack /srv/lv --layers file --scratch-vg vg-a {SHORT}"
    ));
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("may need the free room"), "{}", ran.err);
    machine.sh("lvremove -q -y vg-a/full");
}

fn killed_in_the_middle(machine: &Machine) {
    let before = machine.sh(THINGS);
    for (arguments, there) in [
        (
            "/srv/lv --layers file --scratch-vg vg-a",
            "lvs --noheadings -o lv_tags vg-a | grep -q assay-",
        ),
        (
            "/tank/data --layers image --scratch-dataset tank/data",
            "[ $(zfs list -H -o name | grep -c assay-) -ge 3 ] && pgrep qemu-",
        ),
    ] {
        let long = SHORT.replace("--runtime 1s", "--runtime 60s");
        machine.sh(&format!(
            "{ENV} assay stack {arguments} {long} >/dev/null 2>&1 </dev/null & echo $! > /root/pid"
        ));
        machine.wait_for(there);
        // A second one would measure the first: it is refused, and takes nothing away from it.
        let other = machine.assay(&format!("stack {arguments} {SHORT}"));
        assert_eq!(other.status, 2, "{arguments}: {}", other.out);
        let busy = other.err.contains("another assay is at work");
        assert!(busy, "{arguments}: {}", other.err);
        machine.sh(there);
        machine.sh("kill -9 $(cat /root/pid); sleep 1");
        assert_ne!(machine.sh(THINGS), before, "{arguments}");
        let recovered = machine.assay("trial --recover");
        assert_eq!(recovered.status, 0, "{}{}", recovered.out, recovered.err);
        // Scratch files in the target go with the next start.
        let next = machine.assay(&format!("stack {arguments} --measure --dry-run --size 8M"));
        assert_eq!(next.status, 0, "{arguments}: {}", next.err);
        assert_eq!(machine.sh(THINGS), before, "{arguments}: {}", recovered.out);
    }
}

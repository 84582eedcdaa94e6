//! Tests `assay stack --measure` with volumes of a real pool and volume group inside a guest: created, measured and
//! removed, also after `kill -9`; refused where they would interfere.
#![allow(
    clippy::disallowed_methods,
    reason = "tests drive the real program in a guest"
)]

mod common;

use assay_lab::{Disk, Zfs};
use common::pools::{Lab, Pools, Said};
use serde_json::Value;

/// A pool on d1 and a group on d2 with foreign objects, and a file system on a zvol, on LUKS on a
/// logical volume, and directly in the pool.
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

/// Output that must be equal before and after.
const THINGS: &str = "zfs list -H -o name,assay:session -t all; lvs --noheadings -o lv_name,lv_tags vg-a; \
    ls -A /tank/data /srv/lv /srv/zvol; cat /proc/mounts";

const SHORT: &str = "--measure --yes --quiet --json --rounds 2 --rw randread --runtime 1s --ramp 50ms --size 8M --seed 1";

/// State directory of assay outside of the measured storage.
const STATE: &str = "/root/state";

/// On a busy machine one of the two samples of a rung may see no I/O.
const MOST: usize = 1;

fn assay(guest: &Pools, arguments: &str) -> Said {
    guest.assay(STATE, arguments)
}

/// Measures and returns the document; checks that nothing is left.
fn measured(guest: &Pools, arguments: &str) -> Value {
    let before = guest.sh(THINGS);
    let document = guest.json(STATE, &format!("stack {arguments} {SHORT}"));
    assert_eq!(guest.sh(THINGS), before, "{arguments}");
    document
}

fn rungs(document: &Value) -> Vec<&str> {
    let rungs = document["run"]["ladder"]["rungs"].as_array().unwrap();
    rungs
        .iter()
        .map(|rung| rung["name"].as_str().unwrap())
        .collect()
}

/// Returns the number of valid samples of a rung.
fn valid(document: &Value, rung: &str) -> usize {
    let samples = document["samples"].as_array().unwrap().iter();
    let counts = |sample: &&Value| sample["target"] == rung && sample["validity"] != "void";
    samples.filter(counts).count()
}

/// Starts a prepared guest.
fn with_guest(name: &str, act: impl FnOnce(&Pools)) {
    let Some(lab) = Lab::new(Zfs::Stable) else {
        return;
    };
    let disks = vec![
        Disk::scratch("d1", 640 << 20),
        Disk::scratch("d2", 320 << 20),
    ];
    let guest = lab.boot(name, disks);
    let devices = guest.devices(2);
    let made = guest.run(&["sh", "-euc", SETUP, "sh", &devices[0], &devices[1]]);
    assert_eq!(made.status, 0, "{}{}", made.out, made.err);
    act(&guest);
}

#[test]
fn volumes_of_a_real_pool_and_a_real_group() {
    with_guest("stack-volumes", |guest| {
        a_file_system_on_luks_on_a_volume(guest);
        on_a_zvol_and_in_the_pool(guest);
        what_would_be_in_the_way_is_refused(guest);
    });
}

#[test]
fn two_at_once_and_one_that_is_killed() {
    with_guest("stack-killed", killed_in_the_middle);
}

fn a_file_system_on_luks_on_a_volume(guest: &Pools) {
    let document = measured(guest, "/srv/lv --layers file --scratch-vg vg-a");
    assert_eq!(rungs(&document), ["lv", "file", "lv-again", "file-again"]);
    let ladder = &document["run"]["ladder"]["rungs"];
    assert_eq!(ladder[1]["layer"], "ext4 on LUKS");
    assert_eq!(ladder[1]["parent"], 0);
    // The counters of the volume itself, not those of the target.
    let targets = &document["run"]["targets"];
    assert_ne!(targets[0]["devices"], targets[1]["devices"], "{targets:#}");
    for rung in rungs(&document) {
        assert!(valid(&document, rung) >= MOST, "{rung}: {document:#}");
    }
    let whole = &document["waterfalls"][0]["wholes"][0];
    assert_eq!(whole["separate"], true, "{whole:#}");
    let thin = measured(guest, "/srv/lv --layers file --scratch-vg vg-a/pool");
    assert_eq!(
        thin["run"]["ladder"]["rungs"][0]["settings"]["thin_pool"],
        "pool"
    );
    assert!(valid(&thin, "thin-lv") >= MOST, "{thin:#}");
}

fn on_a_zvol_and_in_the_pool(guest: &Pools) {
    let document = measured(
        guest,
        "/srv/zvol --layers file --scratch-dataset 'tank/with blank'",
    );
    assert_eq!(
        rungs(&document),
        ["zvol", "file", "zvol-again", "file-again"]
    );
    let zvol = &document["run"]["ladder"]["rungs"][0];
    // Like that of the target.
    assert_eq!(zvol["settings"]["volblocksize"], "16k", "{zvol:#}");
    // Its reads came from the pool's disk.
    let sample = document["samples"].as_array().unwrap();
    let read = sample.iter().find(|one| one["target"] == "zvol");
    assert_ne!(read.unwrap()["validity"], "void", "{read:#?}");

    let document = measured(
        guest,
        "/tank/data --layers image --scratch-dataset tank/data",
    );
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

fn what_would_be_in_the_way_is_refused(guest: &Pools) {
    let before = guest.sh(THINGS);
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
        let ran = assay(guest, &format!("stack {arguments} --layers file {short}"));
        assert_eq!(ran.status, 2, "{arguments}: {}{}", ran.out, ran.err);
        assert!(ran.err.contains(said), "{arguments}: {}", ran.err);
        assert_eq!(guest.sh(THINGS), before, "{arguments}");
    }
    // A full thin pool may need the space of the group.
    guest.sh("lvcreate -q -y -V 62M -T vg-a/pool -n full
         dd if=/dev/urandom of=/dev/vg-a/full bs=1M count=56 oflag=direct status=none");
    let ran = assay(
        guest,
        &format!("stack /srv/lv --layers file --scratch-vg vg-a {SHORT}"),
    );
    assert_eq!(ran.status, 2, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("may need the free room"), "{}", ran.err);
    guest.sh("lvremove -q -y vg-a/full");
}

fn killed_in_the_middle(guest: &Pools) {
    let before = guest.sh(THINGS);
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
        guest.start(STATE, &format!("stack {arguments} {long}"));
        guest.wait_for(there);
        // A second measurement would disturb the first: it is refused, and removes nothing of it.
        let other = assay(guest, &format!("stack {arguments} {SHORT}"));
        assert_eq!(other.status, 2, "{arguments}: {}", other.out);
        let busy = other.err.contains("another assay is at work");
        assert!(busy, "{arguments}: {}", other.err);
        guest.sh(there);
        guest.kill();
        assert_ne!(guest.sh(THINGS), before, "{arguments}");
        let recovered = assay(guest, "trial --recover");
        assert_eq!(recovered.status, 0, "{}{}", recovered.out, recovered.err);
        // The next start removes scratch files in the target.
        let next = assay(
            guest,
            &format!("stack {arguments} --measure --dry-run --size 8M"),
        );
        assert_eq!(next.status, 0, "{arguments}: {}", next.err);
        assert_eq!(guest.sh(THINGS), before, "{arguments}: {}", recovered.out);
    }
}

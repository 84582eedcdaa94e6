//! Builds real file systems on loop devices. Needs root.
#![allow(clippy::disallowed_methods, reason = "it looks at what was made")]

use crate::bench::Bench;
use assay_changes::side_by_side::{ArmError, Built, Endpoint, build};
use assay_host::LiveHost;
use assay_loads::Cancel;
use assay_model::Bytes;
use assay_model::change::Arm;
use assay_model::trial::Side;
use std::os::unix::fs::MetadataExt as _;

const SIZE: Bytes = Bytes(16 << 20);

fn arm(fstype: &str, mkfs: &[&str], mount: &[&str]) -> Arm {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Arm::FileSystem {
        fstype: fstype.to_owned(),
        mkfs: words(mkfs),
        mount: words(mount),
    }
}

fn make<'a>(bench: &'a Bench, name: &str, arm: &Arm) -> Result<Built<'a>, ArmError> {
    let place = bench.place(name, SIZE);
    build(&LiveHost, &bench.session, arm, &place, &Cancel::default())
}

fn root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        assay_testing::skipped("root", "mounts need root");
    }
    root
}

#[test]
fn two_file_systems_side_by_side() {
    if !root() {
        return;
    }
    let bench = Bench::below("a b,c\n'é");
    let now = make(&bench, "now", &arm("ext4", &[], &["relatime"])).unwrap();
    let changed = arm("ext4", &["-O", "^has_journal"], &["noatime"]);
    let changed = make(&bench, "changed", &changed).unwrap();
    let (read_now, read_changed) = (now.read_back().unwrap(), changed.read_back().unwrap());
    assert!(read_now.starts_with("ext4 rw,relatime"), "{read_now}");
    let mut features = read_now.split_whitespace();
    assert!(features.any(|one| one == "has_journal"), "{read_now}");
    assert!(
        read_changed.starts_with("ext4 rw,noatime"),
        "{read_changed}"
    );
    assert!(!read_changed.contains("has_journal"), "{read_changed}");
    for built in [&now, &changed] {
        let Endpoint::Path(file) = built.endpoint() else {
            panic!("a file system is measured in a file");
        };
        let found = file.metadata().unwrap();
        assert_eq!(found.size(), SIZE.0);
        assert!(found.blocks() * 512 >= SIZE.0, "every block is written");
    }
    drop((now, changed));
    assert!(bench.nothing_left());
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(&bench.session.tag()));
}

#[test]
fn xfs_btrfs_and_the_old_ones() {
    if !root() {
        return;
    }
    for (fstype, mkfs, mount, said) in [
        ("xfs", &["-m", "reflink=0"][..], &[][..], "reflink=0"),
        (
            "btrfs",
            &["--csum", "xxhash"],
            &["compress=zstd:1"],
            "compress=zstd:1",
        ),
        ("ext3", &[], &["data=writeback"], "data=writeback"),
        ("ext2", &[], &[], "ext2 rw"),
    ] {
        let bench = Bench::new();
        let built = make(&bench, "now", &arm(fstype, mkfs, mount)).unwrap();
        let read = built.read_back().unwrap();
        assert!(read.starts_with(fstype) && read.contains(said), "{read}");
        let (_, loop_device) = read.rsplit_once(", ").unwrap();
        insta::allow_duplicates! {
            insta::assert_snapshot!(loop_device, @"loop device with direct I/O");
        }
        assert_eq!(read, built.read_back().unwrap());
        drop(built);
        assert!(bench.nothing_left());
    }
}

#[test]
fn what_the_tools_refuse_is_said_in_their_words() {
    if !root() {
        return;
    }
    let bench = Bench::new();
    for (arm, said) in [
        (
            arm("ext4", &["-b", "77"], &[]),
            "mkfs.ext4: invalid block size - 77",
        ),
        (arm("ext4", &[], &["no_such_option"]), "mount: "),
        (
            arm("xfs", &["-m", "no_such=1"], &[]),
            "mkfs.xfs: unknown option -m no_such",
        ),
        (
            arm("btrfs", &["--csum", "no_such"], &[]),
            "mkfs.btrfs: unknown csum type",
        ),
        (arm("zfs", &[], &[]), "assay makes these"),
        (arm("ext4", &["/dev/null"], &[]), "one device, its own"),
    ] {
        let error = make(&bench, "now", &arm).err().unwrap().to_string();
        assert!(error.contains(said) && !error.contains('\n'), "{error}");
        assert!(bench.nothing_left(), "{error}");
    }
}

#[test]
fn write_barriers_decide_what_survives() {
    if !root() {
        return;
    }
    for (fstype, mount, safe) in [
        ("ext4", &[][..], true),
        ("ext4", &["barrier=0"], false),
        ("xfs", &[], true),
    ] {
        let bench = Bench::new();
        let mut built = make(&bench, "now", &arm(fstype, &[], mount)).unwrap();
        let proof = built
            .prove_durability(Side::Changed, &Cancel::default())
            .unwrap();
        // Not all blocks: another program may have flushed the whole machine in the meantime.
        let lost = proof.lost;
        assert_eq!(lost == 0, safe, "{fstype} {mount:?}: {lost}");
        drop(built);
        assert!(bench.nothing_left());
    }
}

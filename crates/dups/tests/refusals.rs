//! Tests actions that the kernel would refuse. The plan already refuses them, with the reason, and promises no space.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::act::Action;
use assay_dups::act::execute::{ActOptions, ActOutcome, execute};
use assay_dups::act::journal::Journal;
use assay_dups::act::plan::{ActPlan, PlanRules, plan};
use assay_dups::{Scan, ScanOptions, scan};
use common::{Mount, Place, free, noise, put};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn look(roots: &[&Path]) -> Scan {
    let roots: Vec<PathBuf> = roots.iter().map(|root| root.to_path_buf()).collect();
    let mut options = ScanOptions::default();
    options.walk.other_filesystems = true;
    free(|control| scan(&roots, &options, None, control)).unwrap()
}

fn planned(found: &Scan, action: &Action) -> ActPlan {
    plan(&found.files, &found.groups, action, &PlanRules::default()).unwrap()
}

fn act(place: &Place, plan: &ActPlan) -> ActOutcome {
    let mut journal = Journal::begin(&place.db()).unwrap();
    free(|control| execute(plan, &mut journal, &ActOptions::default(), control)).unwrap()
}

fn ran(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program).args(arguments).output();
    done.is_ok_and(|done| done.status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Checks that the only group is refused completely: no step, no space, and a reason for every copy but one.
fn refused_whole(found: &Scan, action: &Action, refused: usize) -> ActPlan {
    let plan = planned(found, action);
    assert!(plan.steps.is_empty(), "{action:?}: {:?}", plan.steps);
    assert_eq!(
        (plan.gain(), plan.refused.len()),
        (0, refused),
        "{:?}",
        plan.refused
    );
    plan
}

#[test]
fn copies_on_two_file_systems() {
    let place = Place::new();
    let Ok(far) = tempfile::tempdir_in("/dev/shm") else {
        return;
    };
    let near = place.dir.path().join("near");
    put(near.join("a"), &noise(1, 60_000));
    put(far.path().join("b"), &noise(1, 60_000));
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    if device(&near) == device(far.path()) {
        return assay_testing::skipped("tmpfs", "/dev/shm is no other file system here");
    }
    let found = look(&[&near, far.path()]);
    let group = found.groups.at(0);
    assert_eq!(
        (group.gain(), group.gain_across(&found.files)),
        (60_000, 60_000)
    );
    refused_whole(&found, &Action::Hardlink, 1);
    refused_whole(&found, &Action::Reflink, 1);
    assert_eq!(planned(&found, &Action::Delete).gain(), 60_000);
    // With a second copy on the same file system, that copy is linked, and the other file system keeps one.
    put(far.path().join("c"), &noise(1, 60_000));
    let found = look(&[&near, far.path()]);
    let group = found.groups.at(0);
    assert_eq!(
        (group.gain(), group.gain_across(&found.files)),
        (120_000, 60_000)
    );
    let plan = planned(&found, &Action::Hardlink);
    assert_eq!(
        (plan.steps.len(), plan.gain(), plan.refused.len()),
        (1, 60_000, 1)
    );
}

/// Three disks: links cannot cross disks, so each disk keeps a copy unless files are deleted.
#[test]
fn copies_on_several_disks() {
    let place = Place::new();
    let mut disks = Vec::new();
    for kind in ["btrfs", "xfs", "ext4"] {
        let folder = place.dir.path().join(kind);
        std::fs::create_dir(&folder).unwrap();
        let Some(mount) = Mount::new(&folder, kind, &["-q"]) else {
            return;
        };
        put(mount.0.join("tree/a"), &noise(1, 81_920));
        put(mount.0.join("tree/bb"), &noise(1, 81_920));
        disks.push(mount);
    }
    rustix::fs::sync();
    let roots: Vec<PathBuf> = disks.iter().map(|disk| disk.0.join("tree")).collect();
    let roots: Vec<&Path> = roots.iter().map(PathBuf::as_path).collect();
    let found = look(&roots);
    let group = found.groups.at(0);
    let across = group.gain_across(&found.files);
    assert_eq!(across, group.gain_across_disks(&found.files));
    assert_eq!((group.gain(), across), (5 * 81_920, 2 * 81_920));
    let linked = planned(&found, &Action::Hardlink);
    assert_eq!(
        (linked.steps.len(), linked.gain()),
        (3, group.gain() - across)
    );
    let shared = planned(&found, &Action::Reflink);
    assert_eq!(
        shared.steps.len(),
        2,
        "ext4 shares nothing: {:?}",
        shared.refused
    );
    assert_eq!(act(&place, &shared).gain, shared.gain());
    assert!(planned(&found, &Action::Reflink).steps.is_empty());
    assert_eq!(planned(&look(&roots), &Action::Delete).gain(), 3 * 81_920);
}

#[test]
fn xfs_without_shared_blocks() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "xfs", &["-q", "-m", "reflink=0"]) else {
        return;
    };
    let root = mount.0.join("tree");
    put(root.join("a"), &noise(1, 60_000));
    put(root.join("bb"), &noise(1, 60_000));
    rustix::fs::sync();
    refused_whole(&look(&[&root]), &Action::Reflink, 1);
    assert_eq!(planned(&look(&[&root]), &Action::Hardlink).steps.len(), 1);
}

#[test]
fn content_in_the_metadata_is_not_shared() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "btrfs", &["-q"]) else {
        return;
    };
    for (name, content) in [
        ("short", noise(1, 7)),
        ("longer", noise(2, 1900)),
        ("zero", vec![0; 1500]),
    ] {
        let root = mount.0.join(name);
        for copy in ["a", "b", "c"] {
            put(root.join(copy), &content);
        }
        let found = look(&[&root]);
        refused_whole(&found, &Action::Reflink, 2);
        assert_eq!(planned(&found, &Action::Hardlink).steps.len(), 2);
    }
    // Compressed, the file is short enough.
    let root = mount.0.join("compressed");
    std::fs::create_dir(&root).unwrap();
    if ran("chattr", &["+c", text(&root)]) {
        for copy in ["a", "b"] {
            put(root.join(copy), &[b'x'; 4000]);
        }
        rustix::fs::sync();
        refused_whole(&look(&[&root]), &Action::Reflink, 1);
    }
}

#[test]
fn subvolumes_share_blocks_but_no_links() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "btrfs", &["-q"]) else {
        return;
    };
    let (one, two) = (mount.0.join("one"), mount.0.join("two"));
    for path in [&one, &two] {
        assert!(ran("btrfs", &["-q", "subvolume", "create", text(path)]));
    }
    put(one.join("a"), &noise(1, 200_000));
    put(two.join("b"), &noise(1, 200_000));
    rustix::fs::sync();
    let found = look(&[&mount.0]);
    let group = found.groups.at(0);
    assert_eq!(
        (
            group.gain_across(&found.files),
            group.gain_across_disks(&found.files)
        ),
        (200_000, 0)
    );
    refused_whole(&found, &Action::Hardlink, 1);
    let plan = planned(&found, &Action::Reflink);
    let outcome = act(&place, &plan);
    assert_eq!(
        (outcome.done, outcome.gain),
        (1, 200_000),
        "{:?}",
        outcome.refused
    );
    let again = look(&[&mount.0]);
    assert_eq!(again.groups.at(0).gain(), 0, "shared across subvolumes");
    // A snapshot shares all blocks from the start, and cannot be changed.
    let shot = mount.0.join("shot");
    assert!(ran(
        "btrfs",
        &["-q", "subvolume", "snapshot", "-r", text(&one), text(&shot)]
    ));
    let found = look(&[&one, &shot]);
    assert_eq!(found.groups.at(0).gain(), 0);
    for action in [Action::Hardlink, Action::Delete] {
        refused_whole(&found, &action, 1);
    }
    assert!(planned(&found, &Action::Reflink).steps.is_empty());
    // A copy that shares no block, in a read-only snapshot.
    put(two.join("c"), &noise(9, 200_000));
    assert!(ran(
        "btrfs",
        &[
            "-q",
            "subvolume",
            "snapshot",
            "-r",
            text(&two),
            text(&mount.0.join("shot2"))
        ]
    ));
    put(
        one.join("c of its own, with a longer name"),
        &noise(9, 200_000),
    );
    rustix::fs::sync();
    let found = look(&[&one, &mount.0.join("shot2")]);
    let plan = planned(&found, &Action::Delete);
    assert!(
        plan.steps
            .iter()
            .all(|step| !step.remove.path.windows(5).any(|part| part == b"shot2"))
    );
}

#[test]
fn no_copy_on_write_and_already_shared() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "btrfs", &["-q"]) else {
        return;
    };
    let root = mount.0.join("nocow");
    std::fs::create_dir(&root).unwrap();
    put(root.join("a"), b"");
    assert!(ran("chattr", &["+C", text(&root.join("a"))]));
    std::fs::write(root.join("a"), noise(1, 100_000)).unwrap();
    put(root.join("bb"), &noise(1, 100_000));
    rustix::fs::sync();
    refused_whole(&look(&[&root]), &Action::Reflink, 1);
    // The blocks were shared after the scan, so the index does not know it.
    let root = mount.0.join("shared");
    let a = put(root.join("a"), &noise(2, 100_000));
    let b = put(root.join("bb"), &noise(2, 100_000));
    rustix::fs::sync();
    let scanned = look(&[&root]);
    let plan = planned(&scanned, &Action::Reflink);
    assert_eq!(plan.gain(), 100_000);
    assert_eq!(act(&place, &plan).gain, 100_000);
    assert_eq!(
        act(&place, &plan).gain,
        0,
        "a second time nothing is gained"
    );
    // Sharing changes no time of a file, so the scan from before it still counts.
    assert!(planned(&scanned, &Action::Reflink).steps.is_empty());
    assert_ne!(
        std::fs::metadata(a).unwrap().ino(),
        std::fs::metadata(b).unwrap().ino()
    );
}

#[test]
fn what_chattr_seals_is_left_alone() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "ext4", &["-q"]) else {
        return;
    };
    let free_again = |path: &Path| ran("chattr", &["-i", "-a", text(path)]);
    for (number, (flag, sealed)) in [("+i", "bb"), ("+a", "bb"), ("+i", "."), ("+a", ".")]
        .into_iter()
        .enumerate()
    {
        let root = mount.0.join(format!("sealed{number}"));
        put(root.join("a"), &noise(1, 5000));
        put(root.join("sub/bb"), &noise(1, 5000));
        let target = root.join("sub").join(sealed);
        if !ran("chattr", &[flag, text(&target)]) {
            return assay_testing::skipped("chattr", "no flags can be set");
        }
        let found = look(&[&root]);
        for action in [
            Action::Hardlink,
            Action::Delete,
            Action::Move(b"/nowhere".to_vec()),
        ] {
            refused_whole(&found, &action, 1);
        }
        assert!(free_again(&target));
    }
    // The kept copy cannot get another name.
    let root = mount.0.join("kept");
    let a = put(root.join("a"), &noise(1, 5000));
    put(root.join("bb"), &noise(1, 5000));
    assert!(ran("chattr", &["+i", text(&a)]));
    let found = look(&[&root]);
    refused_whole(&found, &Action::Hardlink, 1);
    assert_eq!(planned(&found, &Action::Delete).steps.len(), 1);
    assert!(free_again(&a));
}

#[test]
fn a_read_only_mount_and_two_bind_mounts() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "ext4", &["-q"]) else {
        return;
    };
    let (one, two) = (mount.0.join("one"), mount.0.join("two"));
    put(one.join("a"), &noise(1, 5000));
    put(two.join("longer/than/the/other/bb"), &noise(1, 5000));
    let bound = place.dir.path().join("bound");
    std::fs::create_dir(&bound).unwrap();
    let Some(bind) = Mount::bind(&two, &bound) else {
        return;
    };
    let found = look(&[&one, &bound]);
    refused_whole(&found, &Action::Hardlink, 1);
    assert_eq!(planned(&found, &Action::Delete).steps.len(), 1);
    assert!(ran("mount", &["-o", "remount,bind,ro", text(&bind.0)]));
    refused_whole(&look(&[&one, &bound]), &Action::Delete, 1);
}

#[test]
fn a_swap_file_in_use() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "ext4", &["-q"]) else {
        return;
    };
    let root = mount.0.join("tree");
    let swap = put(root.join("swap file"), &vec![0; 1 << 20]);
    assert!(ran("mkswap", &["-q", text(&swap)]));
    std::fs::write(root.join("a"), std::fs::read(&swap).unwrap()).unwrap();
    rustix::fs::sync();
    if !ran("swapon", &[text(&swap)]) {
        return assay_testing::skipped("swap", "no swap file can be used here");
    }
    let found = look(&[&root]);
    let sums: Vec<usize> = [Action::Hardlink, Action::Delete]
        .map(|action| planned(&found, &action).steps.len())
        .into();
    assert!(ran("swapoff", &[text(&swap)]));
    assert_eq!(sums, [0, 0]);
}

/// ext4 permits at most 65,000 names per file: another copy is kept and takes the remaining names.
#[test]
fn as_many_names_as_a_file_can_have() {
    let place = Place::new();
    let Some(mount) = Mount::new(place.dir.path(), "ext4", &["-q"]) else {
        return;
    };
    let root = mount.0.join("tree");
    let a = put(root.join("a"), b"content");
    for number in 1..64_999 {
        std::fs::hard_link(&a, root.join(format!("also{number}"))).unwrap();
    }
    for name in ["copy of it 1", "copy of it 2", "copy of it 3"] {
        put(root.join(name), b"content");
    }
    let plan = planned(&look(&[&root]), &Action::Hardlink);
    assert_eq!(plan.steps.len(), 2);
    let outcome = act(&place, &plan);
    assert_eq!(outcome.done, 2, "{:?}", outcome.refused);
    assert_eq!(std::fs::metadata(&a).unwrap().nlink(), 65_000);
}

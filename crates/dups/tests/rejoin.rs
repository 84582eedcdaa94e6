//! Tests the undo of names that were one file. Rotations like those of rsnapshot are restored with the same number of
//! inodes and bytes, also after a kill at any moment, on full disks, and while other programs run.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::act::Action;
use assay_dups::act::journal::{Journal, StepState};
use assay_dups::act::plan::{ActPlan, PlanRules, plan};
use assay_dups::act::undo::{UndoMoment, UndoOptions, plan_undo, recover, undo_journal};
use assay_dups::{ScanOptions, scan};
use common::{Mount, Place, free, noise, put, scan_tree};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Sets of names that are one file, with the file's mtime, mode and content.
type Partition = BTreeSet<(BTreeSet<PathBuf>, i64, u32, Vec<u8>)>;

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files_below(&path)),
            false if path.is_symlink() => {}
            false => found.push(path),
        }
    }
    found
}

fn partition(root: &Path) -> Partition {
    let mut inodes: BTreeMap<(u64, u64), BTreeSet<PathBuf>> = BTreeMap::new();
    for path in files_below(root) {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        inodes
            .entry((meta.dev(), meta.ino()))
            .or_default()
            .insert(path);
    }
    let sets = inodes.into_values().map(|names| {
        let first = names.first().unwrap().clone();
        let meta = std::fs::metadata(&first).unwrap();
        let content = std::fs::read(&first).unwrap();
        (names, meta.mtime(), meta.mode(), content)
    });
    sets.collect()
}

/// Returns the bytes of all files, each inode counted once.
fn taken(root: &Path) -> u64 {
    let mut inodes = BTreeMap::new();
    for path in files_below(root) {
        let meta = std::fs::metadata(&path).unwrap();
        inodes.insert(meta.ino(), meta.blocks() * 512);
    }
    inodes.into_values().sum()
}

fn set_time(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    let file = std::fs::File::open(path).unwrap();
    file.set_modified(time).unwrap();
}

/// Creates two hosts with the same files, each rotated with `cp -al`: every content has two inodes with one
/// name in each rotation, and the groups are interleaved in every folder.
fn rotate(root: &Path, files: u64, rotations: u64, size: usize) {
    for (number, host) in ["alpha", "beta"].into_iter().enumerate() {
        for file in 0..files {
            let name = |turn: u64| root.join(format!("daily.{turn}/{host}/etc/f{file}"));
            let first = put(name(0), &noise(file + 1, size));
            let mode = if file % 3 == 0 { 0o600 } else { 0o644 };
            std::fs::set_permissions(&first, std::fs::Permissions::from_mode(mode)).unwrap();
            set_time(&first, 1_000_000 + 1000 * number as u64 + file);
            for turn in 1..rotations {
                let link = name(turn);
                std::fs::create_dir_all(link.parent().unwrap()).unwrap();
                std::fs::hard_link(&first, link).unwrap();
            }
        }
    }
}

fn make_plan(root: &Path, action: &Action, rules: &PlanRules) -> ActPlan {
    let found = scan_tree(root, &ScanOptions::default(), None);
    plan(&found.files, &found.groups, action, rules).unwrap()
}

fn no_asides(root: &Path) {
    for path in files_below(root) {
        let name = path.file_name().unwrap().as_bytes().to_vec();
        assert!(!name.starts_with(b".assay"), "{}", path.display());
    }
}

fn far(place: &Place) -> Option<(tempfile::TempDir, Action)> {
    let far = tempfile::tempdir_in("/dev/shm").ok()?;
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    let action = Action::Move(far.path().as_os_str().as_bytes().to_vec());
    (device(far.path()) != device(place.dir.path())).then_some((far, action))
}

/// Returns the actions, each with the folder to which it moves files.
fn actions(place: &Place) -> Vec<(Action, Option<tempfile::TempDir>)> {
    let near = place.dir.path().join("trash").into_os_string();
    let mut all = vec![
        (Action::Hardlink, None),
        (Action::Delete, None),
        (Action::Move(near.as_bytes().to_vec()), None),
    ];
    match far(place) {
        Some((dir, action)) => all.push((action, Some(dir))),
        None => assay_testing::skipped("tmpfs", "/dev/shm is no other file system here"),
    }
    all
}

#[test]
fn rotations_come_back_as_the_files_they_were() {
    for number in 0..4 {
        let place = Place::new();
        let mut all = actions(&place);
        if number >= all.len() {
            return;
        }
        let (action, _dir) = all.swap_remove(number);
        rotate(&place.root(), 7, 5, 8192);
        let (before, bytes) = (partition(&place.root()), taken(&place.root()));
        assert_eq!(before.len(), 14);
        let (outcome, journal) = place.act(&place.plan(&action, &PlanRules::default()), &|_, _| {});
        assert_eq!(outcome.done, 35, "{action:?}: {:?}", outcome.refused);
        assert!(taken(&place.root()) * 2 == bytes);
        assert_eq!(outcome.gain, bytes / 2, "{action:?}");
        let cost = plan_undo(&journal).unwrap();
        assert!(!cost.is_costly(), "{action:?}: {cost:?}");
        assert_eq!(cost.names, 35);
        let renamed = matches!(&action, Action::Move(to) if !to.starts_with(b"/dev/shm"));
        let copies = if renamed { 0 } else { 7 };
        assert_eq!((cost.copies, cost.bytes), (copies, copies * (bytes / 14)));
        let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
        assert_eq!(undone.restored, 35, "{action:?}: {:?}", undone.refused);
        assert_eq!(partition(&place.root()), before, "{action:?}");
        assert_eq!(taken(&place.root()), bytes);
        no_asides(place.dir.path());
    }
}

/// Undo is killed at every moment of several names, twice: the next undo continues.
#[test]
fn attack_a_kill_at_any_moment_of_undo() {
    let moments = [
        UndoMoment::Begun,
        UndoMoment::Made,
        UndoMoment::Placed,
        UndoMoment::Restored,
    ];
    let (mut tried, mut held) = (0_u64, 0_u64);
    for number in 0..4 {
        for moment in moments {
            for victims in [[0, 1], [1, 3], [4, 2], [8, 5]] {
                let place = Place::new();
                let mut all = actions(&place);
                if number >= all.len() {
                    continue;
                }
                let (action, dir) = all.swap_remove(number);
                rotate(&place.root(), 3, 3, 4096);
                let before = partition(&place.root());
                let (_, journal) =
                    place.act(&place.plan(&action, &PlanRules::default()), &|_, _| {});
                for victim in victims {
                    let seen = std::cell::Cell::new(0);
                    let interfere = |now: UndoMoment, _: &assay_dups::act::ActStep| {
                        if now == moment {
                            if seen.get() == victim {
                                std::panic::resume_unwind(Box::new("killed"));
                            }
                            seen.set(seen.get() + 1);
                        }
                    };
                    let options = UndoOptions {
                        interfere: &interfere,
                        ..UndoOptions::default()
                    };
                    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        undo_journal(&journal, &options).unwrap();
                    }));
                    if victim % 2 == 1 && Journal::load(&journal).unwrap().is_unfinished() {
                        let recovered = recover(&journal).unwrap();
                        assert!(recovered.interrupted && recovered.refused.is_empty());
                        no_asides(&place.root());
                    }
                }
                let cost = plan_undo(&journal).unwrap();
                assert!(!cost.is_costly(), "{action:?} {moment:?}: {cost:?}");
                let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
                tried += 1;
                let whole = undone.refused.is_empty() && partition(&place.root()) == before;
                held += u64::from(whole);
                assert!(
                    whole,
                    "{action:?} {moment:?} {victims:?}: {:?}",
                    undone.refused
                );
                no_asides(place.dir.path());
                assert!(dir.is_none_or(|dir| files_below(dir.path()).is_empty()));
                let entries = Journal::load(&journal).unwrap().entries;
                assert!(entries.values().all(|one| one.state == StepState::Undone));
            }
        }
    }
    assay_testing::attacked("undo of hard links, killed", tried, held);
}

/// Names that the action leaves alone keep the file in existence, so the action frees nothing and undo copies nothing.
#[test]
fn names_that_were_left_alone_are_joined_again() {
    for action in [Action::Hardlink, Action::Delete] {
        let place = Place::new();
        rotate(&place.root(), 4, 3, 8192);
        let before = partition(&place.root());
        let rules = PlanRules {
            scope: vec![
                place.root().join("daily.1/alpha"),
                place.root().join("daily.2/alpha"),
            ],
            ..PlanRules::default()
        };
        let plan = place.plan(&action, &rules);
        assert_eq!((plan.steps.len(), plan.gain()), (8, 0));
        let (outcome, journal) = place.act(&plan, &|_, _| {});
        assert_eq!(
            (outcome.done, outcome.gain),
            (8, 0),
            "{:?}",
            outcome.refused
        );
        let cost = plan_undo(&journal).unwrap();
        assert_eq!((cost.names, cost.copies, cost.bytes), (8, 0, 0));
        assert!(!cost.is_costly());
        undo_journal(&journal, &UndoOptions::default()).unwrap();
        assert_eq!(partition(&place.root()), before, "{action:?}");
    }
}

/// A name that was not scanned keeps the file in existence but is unknown to undo. Undo refuses, unless a copy is
/// permitted.
#[test]
fn a_file_with_unknown_names_costs_a_copy() {
    let place = Place::new();
    rotate(&place.root(), 2, 2, 8192);
    let outside = place.dir.path().join("outside");
    std::fs::hard_link(place.root().join("daily.0/alpha/etc/f1"), &outside).unwrap();
    let plan = place.plan(&Action::Hardlink, &PlanRules::default());
    let size = std::fs::metadata(&outside).unwrap().blocks() * 512;
    assert_eq!(
        plan.gain(),
        size,
        "the file with a name outside frees nothing"
    );
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!((outcome.done, outcome.gain), (4, size));
    let cost = plan_undo(&journal).unwrap();
    assert!(cost.is_costly());
    assert_eq!((cost.copies, cost.bytes, cost.freed), (2, 2 * size, size));
    assert_eq!(cost.apart.len(), 1);
    let all = UndoOptions {
        despite_cost: true,
        ..UndoOptions::default()
    };
    let undone = undo_journal(&journal, &all).unwrap();
    assert_eq!(undone.restored, 4, "{:?}", undone.refused);
    assert_eq!(partition(&place.root()).len(), 4);
}

/// Names that were removed, replaced or edited, or whose folder or other names changed: each is left
/// unchanged, and the others become one file again.
#[test]
fn names_that_changed_meanwhile_are_left_alone() {
    let place = Place::new();
    rotate(&place.root(), 5, 4, 8192);
    let before = partition(&place.root());
    let (_, journal) = place.act(
        &place.plan(&Action::Hardlink, &PlanRules::default()),
        &|_, _| {},
    );
    let acted: Vec<PathBuf> = Journal::load(&journal)
        .unwrap()
        .entries
        .values()
        .map(|one| PathBuf::from(std::ffi::OsStr::from_bytes(&one.step.remove.path)))
        .collect();
    let of = |file: usize, turn: usize| {
        let end = format!("etc/f{file}");
        let mut all = acted.iter().filter(|path| path.ends_with(&end));
        all.nth(turn).unwrap().clone()
    };
    std::fs::remove_file(of(0, 1)).unwrap();
    std::fs::remove_file(of(1, 2)).unwrap();
    put(of(1, 2), b"another file");
    std::fs::rename(of(2, 0), place.dir.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("nowhere", of(2, 0)).unwrap();
    let (one, other) = (of(3, 0), of(4, 0));
    let swapped = place.dir.path().join("swap");
    std::fs::rename(&one, &swapped).unwrap();
    std::fs::rename(&other, &one).unwrap();
    std::fs::rename(&swapped, &other).unwrap();
    let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
    assert_eq!(undone.restored, 15, "{:?}", undone.refused);
    assert_eq!(undone.refused.len(), 5);
    assert_eq!(std::fs::read(of(1, 2)).unwrap(), b"another file");
    assert!(!of(0, 1).exists());
    let changed = [of(0, 1), of(1, 2), of(2, 0), one, other];
    let after = partition(&place.root());
    for (names, time, mode, content) in before {
        let left: BTreeSet<PathBuf> = names
            .iter()
            .filter(|one| !changed.contains(one))
            .cloned()
            .collect();
        let same = after
            .iter()
            .any(|now| left.is_subset(&now.0) && (now.1, now.2, &now.3) == (time, mode, &content));
        assert!(same, "{left:?}");
    }
}

/// Journals of earlier versions: no line records which names were one file, but the steps contain the file
/// numbers.
#[test]
fn journals_without_this_knowledge_are_read() {
    let place = Place::new();
    rotate(&place.root(), 4, 3, 8192);
    let before = partition(&place.root());
    let (_, journal) = place.act(
        &place.plan(&Action::Hardlink, &PlanRules::default()),
        &|_, _| {},
    );
    let text = std::fs::read(&journal).unwrap();
    let mut old = Vec::new();
    for line in text
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
    {
        let (_, body) = assay_host::seal::unseal(line).unwrap();
        let mut body: serde_json::Value = serde_json::from_slice(&body).unwrap();
        if let Some(step) = body.pointer_mut("/intent/step") {
            step.as_object_mut().unwrap().remove("origin");
        }
        old.extend(serde_json::to_vec(&body).unwrap());
        old.push(b'\n');
    }
    std::fs::write(&journal, old).unwrap();
    let entries = Journal::load(&journal).unwrap().entries;
    assert!(entries.values().all(|one| one.step.origin.is_none()));
    assert_eq!(plan_undo(&journal).unwrap().copies, 4);
    let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
    assert_eq!(undone.restored, 12, "{:?}", undone.refused);
    assert_eq!(partition(&place.root()), before);
}

/// Fills a file system until this number of bytes is free.
fn fill(point: &Path, leave: u64) -> PathBuf {
    let path = point.join("filler");
    let file = std::fs::File::create(&path).unwrap();
    let available = || {
        let stat = rustix::fs::statvfs(point).unwrap();
        stat.f_bavail * stat.f_frsize
    };
    let mut length = 0;
    while available() > leave {
        let step = (available() - leave).clamp(64 * 1024, 8 << 20);
        let begun = rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), length, step);
        if begun.is_err() {
            break;
        }
        length += step;
        rustix::fs::syncfs(&file).unwrap();
    }
    path
}

/// Small file systems: with the space that the action freed, everything is restored; with less, undo refuses.
#[test]
fn on_a_full_disk_nothing_is_begun_that_cannot_end() {
    for (kind, arguments) in [
        ("ext4", &["-q", "-m", "0"][..]),
        ("xfs", &["-q"][..]),
        ("btrfs", &["-q"][..]),
    ] {
        let place = Place::new();
        let Some(mount) = Mount::new(place.dir.path(), kind, arguments) else {
            continue;
        };
        let root = mount.0.join("tree");
        rotate(&root, 10, 6, 1 << 20);
        rustix::fs::sync();
        let (before, bytes) = (partition(&root), taken(&root));
        let mut journal = Journal::begin(&place.db()).unwrap();
        let plan = make_plan(&root, &Action::Hardlink, &PlanRules::default());
        let outcome = free(|control| {
            let options = assay_dups::act::execute::ActOptions::default();
            assay_dups::act::execute::execute(&plan, &mut journal, &options, control)
        })
        .unwrap();
        assert_eq!(outcome.done, 60, "{kind}: {:?}", outcome.refused);
        let filler = fill(&mount.0, 4 << 20);
        let cost = plan_undo(journal.path()).unwrap();
        assert!(cost.is_costly(), "{kind}: {cost:?}");
        assert_eq!(cost.short.len(), 1, "{kind}: {cost:?}");
        // Continued anyway: names without space are listed, and nothing is lost.
        let undone = undo_journal(journal.path(), &UndoOptions::default()).unwrap();
        assert!(!undone.refused.is_empty(), "{kind}");
        no_asides(&root);
        for (names, _, _, content) in &before {
            for name in names {
                assert_eq!(&std::fs::read(name).unwrap(), content, "{kind}");
            }
        }
        std::fs::remove_file(&filler).unwrap();
        rustix::fs::sync();
        let cost = plan_undo(journal.path()).unwrap();
        assert!(!cost.is_costly(), "{kind}: {cost:?}");
        let undone = undo_journal(journal.path(), &UndoOptions::default()).unwrap();
        assert!(undone.refused.is_empty(), "{kind}: {:?}", undone.refused);
        assert_eq!(partition(&root), before, "{kind}");
        rustix::fs::sync();
        assert_eq!(taken(&root), bytes, "{kind}");
    }
}

/// Files that shared their blocks with the copy that stayed use no space when they are restored.
#[test]
fn what_shared_its_blocks_shares_them_again() {
    for kind in ["btrfs", "xfs"] {
        let place = Place::new();
        let Some(mount) = Mount::new(place.dir.path(), kind, &["-q"]) else {
            continue;
        };
        let root = mount.0.join("tree");
        let a = put(root.join("a"), &noise(3, 1 << 20));
        let b = root.join("bb");
        let done = std::process::Command::new("cp")
            .arg("--reflink=always")
            .args([&a, &b])
            .status();
        assert!(done.unwrap().success());
        std::fs::hard_link(&b, root.join("b2")).unwrap();
        set_time(&b, 77_777);
        rustix::fs::sync();
        let before = partition(&root);
        let mut journal = Journal::begin(&place.db()).unwrap();
        let plan = make_plan(&root, &Action::Hardlink, &PlanRules::default());
        assert_eq!((plan.steps.len(), plan.gain()), (2, 0), "{kind}");
        free(|control| {
            let options = assay_dups::act::execute::ActOptions::default();
            assay_dups::act::execute::execute(&plan, &mut journal, &options, control)
        })
        .unwrap();
        let cost = plan_undo(journal.path()).unwrap();
        assert_eq!((cost.names, cost.bytes), (2, 0), "{kind}");
        let undone = undo_journal(journal.path(), &UndoOptions::default()).unwrap();
        assert!(undone.refused.is_empty(), "{kind}: {:?}", undone.refused);
        assert_eq!(partition(&root), before, "{kind}");
        rustix::fs::sync();
        let again = scan_tree(&root, &ScanOptions::default(), None);
        assert_eq!(
            again.groups.at(0).gain(),
            0,
            "{kind}: the blocks are shared"
        );
    }
}

/// Names of one file below two mounts: hard links cannot cross mounts, so undo refuses unless a copy is
/// permitted.
#[test]
fn names_below_two_mounts() {
    let place = Place::new();
    rotate(&place.root(), 2, 2, 8192);
    let second = place.dir.path().join("second");
    std::fs::create_dir_all(&second).unwrap();
    let below = place.root().join("daily.1");
    let Some(_mount) = Mount::bind(&below, &second) else {
        return;
    };
    let first = place.root().join("daily.0");
    let roots = [first.clone(), second.clone()];
    let options = ScanOptions::default();
    let found = free(|control| scan(&roots, &options, None, control)).unwrap();
    let plan = plan(
        &found.files,
        &found.groups,
        &Action::Delete,
        &PlanRules::default(),
    )
    .unwrap();
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 4, "{:?}", outcome.refused);
    let cost = plan_undo(&journal).unwrap();
    assert_eq!((cost.copies, cost.apart.len()), (4, 2), "{cost:?}");
    assert!(cost.is_costly());
    let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
    assert_eq!((undone.restored, undone.refused.len()), (2, 2));
    let all = UndoOptions {
        despite_cost: true,
        ..UndoOptions::default()
    };
    assert_eq!(undo_journal(&journal, &all).unwrap().restored, 2);
}

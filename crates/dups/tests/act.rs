//! Tests of actions: the plan's promises are kept, changed files are left unchanged, and no content is ever
//! lost.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::act::Action;
use assay_dups::act::execute::{ActOptions, Moment, execute};
use assay_dups::act::journal::Journal;
use assay_dups::act::plan::{PlanRules, Prefer, plan};
use assay_dups::act::undo::{UndoOptions, recover, undo_journal};
use assay_dups::{Index, ScanOptions};
use common::{Mount, Place, free, noise, put, scan_tree};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

fn ino(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn hardlinks_and_back() {
    for plain in [false, true] {
        link_and_back(Place {
            plain,
            ..Place::new()
        });
    }
}

fn link_and_back(place: Place) {
    let a = put(place.root().join("a"), b"content");
    let b = put(place.root().join("sub/b"), b"content");
    let c = put(place.root().join("sub/c"), b"other");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    std::fs::File::options()
        .write(true)
        .open(&b)
        .unwrap()
        .set_modified(old)
        .unwrap();
    let plan = place.plan(&Action::Hardlink, &PlanRules::default());
    assert_eq!(plan.steps.len(), 1);
    assert_eq!(plan.gain(), 7);
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(
        (outcome.done, outcome.gain),
        (1, 7),
        "{:?}",
        outcome.refused
    );
    assert_eq!(ino(&a), ino(&b));
    assert_eq!(std::fs::read(&c).unwrap(), b"other");
    assert_eq!(
        std::fs::read_dir(place.root().join("sub")).unwrap().count(),
        2
    );
    let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
    assert_eq!(undone.restored, 1, "{:?}", undone.refused);
    assert_ne!(ino(&a), ino(&b));
    assert_eq!(std::fs::read(&b).unwrap(), b"content");
    assert_eq!(std::fs::metadata(&b).unwrap().modified().unwrap(), old);
    assert_eq!(
        undo_journal(&journal, &UndoOptions::default())
            .unwrap()
            .restored,
        0,
        "nothing is taken back twice"
    );
}

#[test]
fn deletes_and_back_but_never_the_last_copy() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        put(place.root().join(name), b"content");
    }
    std::fs::hard_link(place.root().join("b"), place.root().join("b2")).unwrap();
    let plan = place.plan(&Action::Delete, &PlanRules::default());
    assert_eq!(plan.steps.len(), 3, "both names of b, and c");
    assert_eq!(plan.gain(), 14);
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 3, "{:?}", outcome.refused);
    assert_eq!(std::fs::read_dir(place.root()).unwrap().count(), 1);
    assert!(
        place
            .plan(&Action::Delete, &PlanRules::default())
            .steps
            .is_empty()
    );
    assert_eq!(
        undo_journal(&journal, &UndoOptions::default())
            .unwrap()
            .restored,
        3
    );
    assert_eq!(std::fs::read(place.root().join("c")).unwrap(), b"content");
    // The kept copy disappears during the action: the others stay.
    let plan = place.plan(&Action::Delete, &PlanRules::default());
    let kept = plan.steps[0].keep.path.clone();
    let (outcome, _) = place.act(&plan, &|moment, _| {
        if moment == Moment::Exchanged {
            let _ = std::fs::remove_file(std::ffi::OsStr::from_bytes(&kept));
        }
    });
    assert_eq!(outcome.done, 0);
    assert!(!place.scan().files.files.is_empty());
}

#[test]
fn moves_and_back() {
    for plain in [false, true] {
        let place = Place {
            plain,
            ..Place::new()
        };
        let target = place.dir.path().join("trash");
        move_and_back(&place, &target);
    }
}

/// Moves to a file system in memory, if that is another file system: files are copied, compared, and copied
/// back by undo.
#[test]
fn moves_to_another_file_system_and_back() {
    let place = Place::new();
    let far = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    if device(far.path()) == device(place.dir.path()) {
        return assay_testing::skipped("tmpfs", "/dev/shm is no other file system here");
    }
    move_and_back(&place, far.path());
    assert_eq!(files_below(far.path()), 0);
}

fn files_below(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path()),
            false => 1,
        })
        .sum()
}

fn move_and_back(place: &Place, target: &Path) {
    put(place.root().join("a"), b"content");
    let b = put(place.root().join("deep/er/b"), b"content");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_nanos(1_000_000_001);
    let file = std::fs::File::options().write(true).open(&b).unwrap();
    file.set_modified(old).unwrap();
    drop(file);
    std::fs::set_permissions(&b, std::fs::Permissions::from_mode(0o641)).unwrap();
    let action = Action::Move(target.as_os_str().as_bytes().to_vec());
    let plan = place.plan(&action, &PlanRules::default());
    let (outcome, journal) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 1, "{:?}", outcome.refused);
    let moved = target.join(b.strip_prefix("/").unwrap());
    assert_eq!(std::fs::read(&moved).unwrap(), b"content");
    assert!(!b.exists());
    let as_before = |path: &Path| {
        let meta = std::fs::metadata(path).unwrap();
        assert_eq!(meta.modified().unwrap(), old);
        assert_eq!(meta.permissions().mode() & 0o7777, 0o641);
    };
    as_before(&moved);
    assert_eq!(files_below(target), 1);
    std::fs::remove_dir_all(place.root().join("deep")).unwrap();
    let undone = undo_journal(&journal, &UndoOptions::default()).unwrap();
    assert_eq!(undone.restored, 1, "{:?}", undone.refused);
    assert_eq!(std::fs::read(&b).unwrap(), b"content");
    as_before(&b);
    assert_eq!(files_below(&place.root()), 2);
}

#[test]
fn rules_say_which_copy_stays() {
    let place = Place::new();
    for (name, age) in [("x/long name", 1), ("y/b", 3), ("z/c.orig", 2)] {
        let path = put(place.root().join(name), b"content");
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(age);
        std::fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }
    let kept = |rules: PlanRules| {
        let plan = place.plan(&Action::Delete, &rules);
        let name = plan.steps[0].keep.path.clone();
        let removed = plan.steps.len();
        (
            String::from_utf8(name)
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned(),
            removed,
        )
    };
    let rules = PlanRules::default();
    assert_eq!(kept(rules.clone()), ("b".into(), 2));
    assert_eq!(
        kept(PlanRules {
            prefer: Prefer::Oldest,
            ..rules.clone()
        }),
        ("long name".into(), 2)
    );
    assert_eq!(
        kept(PlanRules {
            prefer: Prefer::Newest,
            ..rules.clone()
        }),
        ("b".into(), 2)
    );
    assert_eq!(
        kept(PlanRules {
            keep_matching: vec!["*.orig".into()],
            ..rules.clone()
        }),
        ("c.orig".into(), 2)
    );
    let root = place.root();
    assert_eq!(
        kept(PlanRules {
            keep_in: vec![root.join("x")],
            ..rules.clone()
        }),
        ("long name".into(), 2)
    );
    assert_eq!(
        kept(PlanRules {
            scope: vec![root.join("y")],
            ..rules.clone()
        })
        .1,
        1
    );
    assert_eq!(
        kept(PlanRules {
            protect: vec![root.join("z")],
            ..rules
        }),
        ("c.orig".into(), 2)
    );
}

#[test]
fn what_would_change_meaning_is_refused() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    let b = put(place.root().join("bb"), b"content");
    std::fs::set_permissions(&b, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plan = place.plan(&Action::Hardlink, &PlanRules::default());
    assert!(plan.steps.is_empty());
    insta::assert_snapshot!(plan.refused[0].why, @"the copy that stays has other permissions");
    std::fs::set_permissions(&b, std::fs::Permissions::from_mode(0o644)).unwrap();
    // The file is open for writing.
    let plan = place.plan(&Action::Hardlink, &PlanRules::default());
    let writer = std::fs::File::options().write(true).open(&b).unwrap();
    let (outcome, _) = place.act(&plan, &|_, _| {});
    let why = assay_testing::normalize_output(&outcome.refused[0].why, &[(place.root(), "TREE")]);
    insta::assert_snapshot!(why, @"TREE/bb is open for writing in some program");
    drop(writer);
    // The file was replaced by a link to the kept copy.
    let plan = place.plan(&Action::Delete, &PlanRules::default());
    std::fs::remove_file(&b).unwrap();
    std::os::unix::fs::symlink(place.root().join("a"), &b).unwrap();
    let (outcome, _) = place.act(&plan, &|_, _| {});
    assert_eq!(outcome.done, 0);
    assert!(
        outcome.refused[0].why.contains("symbolic link"),
        "{:?}",
        outcome.refused
    );
}

#[test]
fn a_torn_line_in_the_journal_harms_nothing() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    put(place.root().join("bb"), b"content");
    let plan = place.plan(&Action::Hardlink, &PlanRules::default());
    let (_, journal) = place.act(&plan, &|_, _| {});
    let text = std::fs::read(&journal).unwrap();
    for cut in 0..text.len() {
        std::fs::write(&journal, &text[..cut]).unwrap();
        let undone = recover(&journal).unwrap();
        assert!(undone.refused.is_empty());
    }
}

#[test]
fn the_index_learns_what_was_done() {
    let place = Place::new();
    put(place.root().join("a"), b"content");
    put(place.root().join("sub/bb"), b"content");
    put(place.root().join("sub/c"), b"content");
    let mut index = Index::open(&place.db()).unwrap();
    scan_tree(&place.root(), &ScanOptions::default(), Some(&mut index));
    let rules = PlanRules {
        scope: vec![place.root().join("sub/bb")],
        ..PlanRules::default()
    };
    let (outcome, _) = place.act(&place.plan(&Action::Delete, &rules), &|_, _| {});
    index.amend(&outcome.changes).unwrap();
    let files = index.load(&[]).unwrap();
    let groups = assay_dups::group::by_hash(&files);
    assert_eq!(groups.at(0).files.len(), 2);
    assert_eq!(files.files.len(), 2);
}

/// Runs on btrfs and XFS in a file, if possible (root, loop devices, mkfs).
#[test]
fn reflinks_are_made_and_recognised() {
    for (kind, arguments) in [("btrfs", &["-q"][..]), ("xfs", &["-q"][..])] {
        let dir = tempfile::tempdir().unwrap();
        let Some(mount) = Mount::new(dir.path(), kind, arguments) else {
            continue;
        };
        let root = mount.0.join("tree");
        let content = noise(5, 1_000_000);
        let a = put(root.join("a"), &content);
        let b = put(root.join("bb"), &content);
        for path in [&a, &b] {
            std::fs::File::open(path).unwrap().sync_all().unwrap();
        }
        let before = std::fs::metadata(&b).unwrap();
        let db = dir.path().join("index.db");
        let mut index = Index::open(&db).unwrap();
        let scan = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
        assert_eq!(scan.groups.at(0).gain(), 1_000_000, "{kind}");
        let plan = plan(
            &scan.files,
            &scan.groups,
            &Action::Reflink,
            &PlanRules::default(),
        )
        .unwrap();
        let mut journal = Journal::begin(&db).unwrap();
        let outcome =
            free(|control| execute(&plan, &mut journal, &ActOptions::default(), control)).unwrap();
        assert_eq!(outcome.done, 1, "{kind} {:?}", outcome.refused);
        let after = std::fs::metadata(&b).unwrap();
        assert_eq!(
            (before.ino(), before.mtime_nsec()),
            (after.ino(), after.mtime_nsec())
        );
        assert_eq!(std::fs::read(&b).unwrap(), content);
        let again = scan_tree(&root, &ScanOptions::default(), None);
        assert_eq!(again.groups.len(), 1);
        assert_eq!(
            again.groups.at(0).gain(),
            0,
            "{kind}: what is shared is not promised again"
        );
    }
}

/// Holes use no space, so removing them cannot free any.
#[test]
fn only_what_a_file_takes_is_promised() {
    let place = Place::new();
    for name in ["a", "bb", "ccc"] {
        let path = put(place.root().join(name), b"");
        let file = std::fs::File::options().write(true).open(path).unwrap();
        file.set_len(64 << 20).unwrap();
        file.write_all_at(b"data", 32 << 20).unwrap();
        file.sync_all().unwrap();
    }
    let taken = std::fs::metadata(place.root().join("bb")).unwrap().blocks() * 512;
    if taken >= 64 << 20 {
        return assay_testing::skipped("holes", "the file system keeps none");
    }
    let mut index = Index::open(&place.db()).unwrap();
    let scan = scan_tree(&place.root(), &ScanOptions::default(), Some(&mut index));
    assert_eq!(scan.groups.at(0).gain(), 2 * taken);
    assert!(scan.cost.bytes < 16 << 20, "holes are not read");
    let plan = place.plan(&Action::Delete, &PlanRules::default());
    assert_eq!(plan.gain(), 2 * taken);
    let stored = assay_dups::group::by_hash(&index.load(&[]).unwrap());
    assert_eq!(stored.at(0).gain(), 2 * taken, "the index knows it too");
}

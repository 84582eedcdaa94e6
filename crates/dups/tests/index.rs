//! Tests of the index: the data that it stores, and stale data that it must not trust.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::earlier_roots::Presence;
use assay_dups::{Control, Error, Index, ScanOptions, ScanProgress, scan};
use common::{groups_of, let_settle, noise, oracle, put, scan_tree};
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn tree(root: &Path) {
    for number in 0..40 {
        put(root.join(format!("one/{number}")), &noise(number, 5_000));
        put(root.join(format!("two/{number}")), &noise(number, 5_000));
        put(
            root.join(format!("odd/{number}")),
            &noise(number + 100, 5_000),
        );
        put(
            root.join(format!("big/{number}")),
            &noise(number % 20, 200_000),
        );
    }
}

#[test]
fn an_unchanged_rescan_opens_nothing_and_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    tree(&root);
    let_settle();
    let db = dir.path().join("index.db");
    let mut index = Index::open(&db).unwrap();
    let first = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert!(first.cost.opens > 0);
    let written = std::fs::read(&db).unwrap();
    let second = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert_eq!(second.cost, assay_dups::read::Cost::default());
    assert_eq!(groups_of(&second), groups_of(&first));
    assert_eq!(std::fs::read(&db).unwrap(), written);
}

#[test]
fn only_what_changed_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    tree(&root);
    let_settle();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    // A further copy of a large file: reads it, and the samples of the files with its size.
    put(root.join("new"), &noise(3, 200_000));
    std::fs::remove_file(root.join("one/7")).unwrap();
    let_settle();
    let again = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert_eq!(groups_of(&again), oracle(&root));
    assert!(
        again.cost.bytes < 200_000 + 41 * 3 * 4096 + 1,
        "{:?}",
        again.cost
    );
    let third = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert_eq!(third.cost.opens, 0);
}

/// An edit that other programs' caches miss: same size, with the old mtime restored.
#[test]
fn an_edit_with_its_time_set_back_is_no_duplicate() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    let a = put(root.join("a"), b"same content");
    put(root.join("b"), b"same content");
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    // Both immediately after the scan and later.
    for settle in [true, false, true, false] {
        std::fs::write(&a, b"same content").unwrap();
        if settle {
            let_settle();
        }
        let found = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
        assert_eq!(found.groups.len(), 1);
        let mtime = std::fs::metadata(&a).unwrap().modified().unwrap();
        std::fs::write(&a, b"same kontent").unwrap();
        let file = std::fs::File::options().write(true).open(&a).unwrap();
        file.set_modified(mtime).unwrap();
        drop(file);
        let found = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
        assert_eq!(found.groups.len(), 0, "settle: {settle}");
    }
}

/// Files that were hashed in different scans have not been compared with each other.
#[test]
fn roots_scanned_apart_are_compared_when_scanned_together() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    for (name, seed) in [("x/1", 1), ("x/2", 2), ("y/1", 1), ("y/3", 3)] {
        put(root.join(name), &noise(seed, 9_000));
    }
    let_settle();
    // A rotating disk is read in another order, and everything read is hashed.
    let options = ScanOptions {
        rotates: Some(false),
        ..ScanOptions::default()
    };
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    for part in ["x", "y"] {
        let found = scan_tree(&root.join(part), &options, Some(&mut index));
        assert!(found.groups.is_empty());
    }
    // All files have one size. Whether the other folder has a copy of an unhashed file is unknown.
    let files = index.load(&[]).unwrap();
    let unknown = assay_dups::report::find_uncompared(&files);
    let unhashed = (0..4).filter(|id| files.hash(*id).is_none());
    assert_eq!(unknown, unhashed.collect::<Vec<_>>());
    assert!(!unknown.is_empty());
    let found = scan_tree(&root, &options, Some(&mut index));
    assert_eq!(groups_of(&found), oracle(&root));
    assert_eq!(found.groups.len(), 1);
    let files = index.load(&[]).unwrap();
    assert!(assay_dups::report::find_uncompared(&files).is_empty());
}

#[test]
fn an_interrupted_scan_keeps_what_it_knows_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    tree(&root);
    let_settle();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let stop = AtomicBool::new(false);
    let progress = ScanProgress::default();
    let tick = || {
        if progress
            .bytes_read
            .load(std::sync::atomic::Ordering::Relaxed)
            > 0
        {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let control = Control {
        stop: &stop,
        progress: &progress,
        tick: &tick,
        threads: Some(1),
    };
    let cut = scan(
        std::slice::from_ref(&root),
        &ScanOptions::default(),
        Some(&mut index),
        &control,
    )
    .unwrap();
    for group in groups_of(&cut) {
        assert!(
            oracle(&root)
                .iter()
                .any(|whole| group.iter().all(|file| whole.contains(file)))
        );
    }
    let whole = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert_eq!(groups_of(&whole), oracle(&root));
    assert!(!whole.interrupted);
    assert_eq!(
        scan_tree(&root, &ScanOptions::default(), Some(&mut index))
            .cost
            .opens,
        0
    );
}

#[test]
fn a_foreign_or_truncated_index_is_named_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let text = put(dir.path().join("notes.txt"), &noise(1, 3000));
    assert!(matches!(Index::open(&text), Err(Error::Foreign { .. })));
    assert_eq!(std::fs::read(&text).unwrap(), noise(1, 3000));
    let other = dir.path().join("other.db");
    rusqlite::Connection::open(&other)
        .unwrap()
        .execute_batch("CREATE TABLE t (a)")
        .unwrap();
    assert!(matches!(Index::open(&other), Err(Error::Foreign { .. })));
    // Cut off in the middle.
    let root = dir.path().join("tree");
    for number in 0..2000 {
        put(
            root.join(format!("{}/{number}", number / 20)),
            &noise(number, 60),
        );
    }
    let cut = dir.path().join("cut.db");
    scan_tree(
        &root,
        &ScanOptions::default(),
        Some(&mut Index::open(&cut).unwrap()),
    );
    let whole = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let result = Index::open(&cut).and_then(|index| index.load(&[]).map(drop));
    let error = result.err().unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(error, &[(dir.path(), "DIR")]), @"index DIR/cut.db: database disk image is malformed; if the file is damaged, move it away and scan again");
}

/// The state after a process was killed while writing: readers see the previous state.
#[test]
fn a_half_written_index_is_as_before() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    for name in ["a", "b"] {
        put(root.join(name), &noise(1, 3000));
    }
    let db = dir.path().join("index.db");
    let mut index = Index::open(&db).unwrap();
    scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    drop(index);
    let writer = rusqlite::Connection::open(&db).unwrap();
    writer
        .execute_batch(
            "PRAGMA cache_size = 2; BEGIN; UPDATE folders SET block = zeroblob(9);
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
             INSERT INTO folders SELECT '', CAST(i AS BLOB), zeroblob(20000) FROM n;",
        )
        .unwrap();
    let left = dir.path().join("left.db");
    std::fs::copy(&db, &left).unwrap();
    let journal = dir.path().join("left.db-journal");
    std::fs::copy(dir.path().join("index.db-journal"), &journal).unwrap();
    drop(writer);
    assert!(std::fs::metadata(&left).unwrap().len() > 1_000_000);
    let files = Index::read(&left).unwrap().load(&[]).unwrap();
    assert_eq!(files.files.len(), 2);
    assert!(!journal.exists());
}

#[test]
fn a_folder_is_no_index_and_nothing_is_left_beside_a_foreign_file() {
    let dir = tempfile::tempdir().unwrap();
    let error = Index::open(dir.path()).err().unwrap();
    insta::assert_snapshot!(assay_testing::normalize_output(error, &[(dir.path(), "DIR")]), @"index DIR: a folder; name a file in it with --index");
    let error = Index::read("/dev/zero".as_ref()).err().unwrap();
    insta::assert_snapshot!(error, @"index /dev/zero: not a regular file; name another with --index");
    let notes = put(dir.path().join("in/notes.txt"), &noise(1, 300));
    assert!(Index::open(&notes).is_err());
    assert_eq!(std::fs::read_dir(dir.path().join("in")).unwrap().count(), 1);
}

#[test]
fn two_scans_at_once_are_kept_apart() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("index.db");
    let held = Index::open(&db).unwrap();
    assert!(matches!(Index::open(&db), Err(Error::Busy { .. })));
    assert!(Index::read(&db).is_ok());
    drop(held);
    assert!(Index::open(&db).is_ok());
}

#[test]
fn indexes_of_several_machines_answer_one_question() {
    let dir = tempfile::tempdir().unwrap();
    let options = ScanOptions {
        hash_all: true,
        ..ScanOptions::default()
    };
    put(dir.path().join("nas/film"), &noise(1, 3000));
    put(dir.path().join("nas/only"), &noise(2, 300));
    put(dir.path().join("laptop/film copy"), &noise(1, 3000));
    let mut both = Index::open(&dir.path().join("both.db")).unwrap();
    for name in ["nas", "laptop"] {
        let db = dir.path().join(format!("{name}.db"));
        scan_tree(
            &dir.path().join(name),
            &options,
            Some(&mut Index::open(&db).unwrap()),
        );
        for _ in 0..2 {
            both.merge(name, &Index::read(&db).unwrap()).unwrap();
        }
    }
    let files = both.load(&[]).unwrap();
    let groups = assay_dups::group::by_hash(&files);
    assert_eq!(groups.len(), 1);
    let machines: Vec<&str> = groups
        .at(0)
        .files
        .iter()
        .map(|id| files.machine(*id))
        .collect();
    assert_eq!(machines, ["laptop", "nas"]);
    assert_eq!(assay_dups::report::find_uniques(&files).len(), 1);
    assert_eq!(both.roots().unwrap().len(), 2);
    assert!(assay_dups::report::find_uncompared(&files).is_empty());
    // A machine that has not hashed all files: its file may equal the file of the other machines.
    put(dir.path().join("old/film"), &noise(1, 3000));
    let db = dir.path().join("old.db");
    let mut old = Index::open(&db).unwrap();
    scan_tree(
        &dir.path().join("old"),
        &ScanOptions::default(),
        Some(&mut old),
    );
    drop(old);
    both.merge("old", &Index::read(&db).unwrap()).unwrap();
    let files = both.load(&[]).unwrap();
    let unknown = assay_dups::report::find_uncompared(&files);
    let machines: Vec<&str> = unknown.iter().map(|id| files.machine(*id)).collect();
    assert_eq!(machines, ["old"]);
}

#[test]
fn folders_that_are_copies() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    for copy in ["x", "y"] {
        for number in 0..5 {
            put(
                root.join(format!("{copy}/sub/{number}")),
                &noise(number, 1000),
            );
        }
        put(root.join(format!("{copy}/top")), b"top");
    }
    put(root.join("z/0"), &noise(0, 1000));
    put(root.join("z/own"), b"own");
    for hash_all in [false, true] {
        let options = ScanOptions {
            hash_all,
            ..ScanOptions::default()
        };
        let found = scan_tree(&root, &options, None);
        let folders = assay_dups::folders::compare_folders(&found.files);
        assert_eq!(folders.same.len(), 1, "{folders:?} {:?}", found.skipped);
        let ends: Vec<bool> = folders.same[0]
            .paths
            .iter()
            .zip(["/x", "/y"])
            .map(|(path, end)| path.ends_with(end.as_bytes()))
            .collect();
        assert_eq!(ends, [true, true]);
        assert_eq!(folders.same[0].files, 6);
        assert!(
            folders
                .overlapping
                .iter()
                .any(|one| found.files.dir_path(one.b).ends_with(b"/z") && one.files == 1)
        );
    }
}

/// A file with names in two folders and a copy in a third folder is a copy in both pairs.
#[test]
fn a_name_of_a_copy_is_a_copy_wherever_it_lies() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    put(root.join("a/1"), &noise(1, 1000));
    put(root.join("b/1"), &noise(1, 1000));
    for folder in ["a", "b", "c"] {
        put(root.join(folder).join("own"), folder.as_bytes());
    }
    std::fs::hard_link(root.join("a/1"), root.join("c/1")).unwrap();
    let found = scan_tree(&root, &ScanOptions::default(), None);
    let folders = assay_dups::folders::compare_folders(&found.files);
    let end = |dir: u32| found.files.dir_path(dir).last().copied().unwrap() as char;
    let mut pairs: Vec<(char, char)> = folders
        .overlapping
        .iter()
        .map(|one| (end(one.a), end(one.b)))
        .collect();
    pairs.sort_unstable();
    // a and c have the same file, which is not a copy.
    assert_eq!(pairs, [('a', 'b'), ('b', 'c')]);
}

/// States stored during a long scan are still in the index at its end.
#[test]
fn a_scan_kept_in_parts_is_whole_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    tree(&root);
    let_settle();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let options = ScanOptions {
        checkpoint: Some(1),
        ..ScanOptions::default()
    };
    for _ in 0..2 {
        let found = scan_tree(&root, &options, Some(&mut index));
        assert_eq!(groups_of(&found), oracle(&root));
        assert_eq!(
            index.load(&[]).unwrap().files.len(),
            found.files.files.len()
        );
    }
    let again = scan_tree(&root, &options, Some(&mut index));
    assert_eq!(again.cost.opens, 0);
}

/// The disk of the index is full: the scan reports it and its result is complete; the index keeps its previous
/// state.
#[test]
fn a_full_disk_under_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let small = dir.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let Some(_mount) = common::Mount::memory(&small, "size=256k") else {
        return;
    };
    let root = dir.path().join("tree");
    for number in 0..20 {
        put(
            root.join(format!("first/{number}")),
            &noise(number / 2, 500),
        );
    }
    let_settle();
    let db = small.join("index.db");
    let mut index = Index::open(&db).unwrap();
    let first = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert!(first.index_error.is_none(), "{:?}", first.index_error);
    // More names than the disk can store.
    for number in 0..3000 {
        let name = format!("more/{number}-{}", "long".repeat(30));
        put(root.join(name), &noise(number / 2, 500));
    }
    let full = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    let error = full.index_error.as_ref().unwrap().to_string();
    assert!(
        error.contains("index.db") && error.contains("full"),
        "{error}"
    );
    assert_eq!(groups_of(&full), oracle(&root));
    drop(index);
    let kept = Index::read(&db).unwrap().load(&[]).unwrap();
    assert_eq!(kept.files.len(), first.files.files.len());
    // With free space the same index continues.
    std::fs::remove_dir_all(root.join("more")).unwrap();
    let mut index = Index::open(&db).unwrap();
    let again = scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert!(again.index_error.is_none(), "{:?}", again.index_error);
    assert_eq!(again.cost.opens, 0);
}

/// Each folder is rescanned with the options of its last scan; a folder inside a later scan's root is no
/// longer a root.
#[test]
fn every_root_is_scanned_again_in_its_own_way() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("tree");
    let sub = root.join("sub");
    for (path, length) in [("a", 10), ("b", 2000), ("sub/c", 10), ("sub/d", 2000)] {
        put(root.join(path), &noise(1, length));
    }
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let mut large = ScanOptions::default();
    large.walk.filter.min_size = 1000;
    let again = ScanOptions {
        as_before: true,
        ..ScanOptions::default()
    };
    let both = |index: &mut Index, options: &ScanOptions| {
        let roots: Vec<_> = index
            .roots()
            .unwrap()
            .into_iter()
            .map(|one| one.path)
            .collect();
        let found = common::free(|control| scan(&roots, options, Some(index), control)).unwrap();
        (roots.len(), found.files.files.len())
    };
    scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    scan_tree(&sub, &large, Some(&mut index));
    // Repeated, because the threads may run in another order.
    for _ in 0..5 {
        assert_eq!(both(&mut index, &again), (2, 3));
    }
    // A later scan of the whole tree replaces the options of its part.
    scan_tree(&root, &large, Some(&mut index));
    assert_eq!(both(&mut index, &again), (1, 2));
    assert_eq!(both(&mut index, &ScanOptions::default()), (1, 4));
    scan_tree(&sub, &large, Some(&mut index));
    assert_eq!(index.roots().unwrap().len(), 2);
}

/// A folder reached through a link, through another mount, or renamed between two scans: one inode is one
/// file.
#[test]
fn one_folder_by_two_paths_is_no_copy_of_itself() {
    let dir = tempfile::tempdir().unwrap();
    let (root, alias) = (dir.path().join("tree"), dir.path().join("alias"));
    put(root.join("a"), b"same");
    put(root.join("lone"), b"lone");
    std::os::unix::fs::symlink(&root, &alias).unwrap();
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    for path in [&root, &alias] {
        scan_tree(path, &ScanOptions::default(), Some(&mut index));
    }
    let groups = |index: &Index| {
        let files = index.load(&[]).unwrap();
        let groups = assay_dups::group::by_hash(&files);
        let group = groups.iter().next();
        (
            files.files.len(),
            group.map(|one| (one.files.len(), one.links.len())),
        )
    };
    assert_eq!(groups(&index), (4, None));
    put(root.join("b"), b"same");
    for path in [&root, &alias] {
        scan_tree(path, &ScanOptions::default(), Some(&mut index));
    }
    assert_eq!(groups(&index), (6, Some((2, 2))));
}

/// A scan does not forget the roots inside it that are not mounted or are on another file system.
#[test]
fn a_root_that_was_not_gone_through_stays_remembered() {
    let dir = tempfile::tempdir().unwrap();
    let (root, disk) = (dir.path().join("tree"), dir.path().join("tree/disk"));
    put(root.join("a"), b"same");
    std::fs::create_dir_all(&disk).unwrap();
    let Some(mount) = common::Mount::plain(&disk, "tmpfs", "rw") else {
        return;
    };
    put(disk.join("b"), b"same");
    put(disk.join("sub/c"), b"same");
    let mut index = Index::open(&dir.path().join("index.db")).unwrap();
    let presence = |index: &Index| {
        let roots = index.roots().unwrap();
        let disk = roots.iter().find(|one| one.path == disk).unwrap();
        index.presence(disk).unwrap()
    };
    let remembered = |index: &Index| index.load(&[]).unwrap().files.len();
    scan_tree(&disk, &ScanOptions::default(), Some(&mut index));
    for fresh in [false, true] {
        let options = ScanOptions {
            fresh,
            ..ScanOptions::default()
        };
        scan_tree(&root, &options, Some(&mut index));
        assert_eq!(remembered(&index), 3);
    }
    assert_eq!(presence(&index), Presence::There);
    // No file of its own remains, and the disk inside it does not show its path.
    std::fs::remove_file(root.join("a")).unwrap();
    scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    let outer = index.roots().unwrap().remove(0);
    assert_eq!(
        (&outer.path, index.presence(&outer).unwrap()),
        (&root, Presence::There)
    );
    put(root.join("a"), b"same");
    drop(mount);
    scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert_eq!(
        (remembered(&index), presence(&index)),
        (3, Presence::Elsewhere)
    );
    std::fs::remove_dir(&disk).unwrap();
    scan_tree(&root, &ScanOptions::default(), Some(&mut index));
    assert_eq!(remembered(&index), 3);
    assert!(matches!(presence(&index), Presence::Gone(_)));
}

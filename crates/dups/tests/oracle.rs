//! Compares the groups with plain SHA-256 of all files, on difficult trees.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::hash::HashKind;
use assay_dups::{Reason, ScanOptions};
use common::{groups_of, noise, oracle, put, scan_tree};
use proptest::prelude::*;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// A file of a tree.
#[derive(Clone, Debug)]
struct Spec {
    folder: u8,
    name: Vec<u8>,
    /// Seed of the content: files with the same seed and size are equal except for flipped bytes.
    seed: u8,
    size: usize,
    /// Position of the byte to change, as a fraction of the size in 256ths.
    flip: Option<u8>,
    kind: u8,
}

fn specs() -> impl Strategy<Value = Vec<Spec>> {
    // Sizes near the limits of the stages: samples, small files, chunks.
    let sizes = prop_oneof![
        4 => Just(1_usize), 4 => Just(100), 2 => Just(4096), 2 => Just(12_289),
        2 => Just(131_072), 2 => Just(131_073), 2 => Just(262_144), 1 => Just(400_001),
    ];
    let name = proptest::collection::vec(
        any::<u8>().prop_filter("no name", |byte| *byte != 0 && *byte != b'/'),
        1..12,
    );
    let spec = (
        0..6_u8,
        name,
        0..3_u8,
        sizes,
        proptest::option::weighted(0.4, any::<u8>()),
        0..20_u8,
    )
        .prop_map(|(folder, name, seed, size, flip, kind)| Spec {
            folder,
            name,
            seed,
            size,
            flip,
            kind,
        });
    proptest::collection::vec(spec, 1..60)
}

fn build(root: &Path, specs: &[Spec]) {
    let folders: [&[u8]; 6] = [b".", b"a", b"a/b\n", b"\xff\xfe", b".hidden", b"a/\x1c x"];
    for spec in specs {
        let folder = root.join(OsStr::from_bytes(folders[usize::from(spec.folder)]));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(OsStr::from_bytes(&spec.name));
        if std::fs::symlink_metadata(&path).is_ok() {
            continue;
        }
        let mut content = noise(u64::from(spec.seed), spec.size);
        if let Some(flip) = spec.flip {
            let at = spec.size * usize::from(flip) / 256;
            content[at] ^= 1;
        }
        match spec.kind {
            0 => {
                let _ = std::os::unix::fs::symlink(root, &path);
            }
            1 => {
                rustix::fs::mknodat(
                    rustix::fs::CWD,
                    &path,
                    rustix::fs::FileType::Fifo,
                    rustix::fs::Mode::from_raw_mode(0o644),
                    0,
                )
                .unwrap();
            }
            2 => {
                // A hole in the middle third.
                use std::os::unix::fs::FileExt as _;
                let file = std::fs::File::create(&path).unwrap();
                file.write_at(&content[..spec.size / 3], 0).unwrap();
                file.set_len(spec.size as u64).unwrap();
                let last = spec.size / 3 * 2;
                file.write_at(&content[last..], last as u64).unwrap();
            }
            3 => std::fs::write(&path, b"").unwrap(),
            4 => {
                std::fs::write(&path, &content).unwrap();
                let mut other = spec.name.clone();
                other.truncate(200);
                other.extend_from_slice(b".link");
                let _ = std::fs::hard_link(&path, root.join(OsStr::from_bytes(&other)));
            }
            _ => std::fs::write(&path, &content).unwrap(),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn same_groups_as_sha256(specs in specs()) {
        let dir = tempfile::tempdir().unwrap();
        build(dir.path(), &specs);
        let wanted = oracle(dir.path());
        let found = scan_tree(dir.path(), &ScanOptions::default(), None);
        prop_assert_eq!(groups_of(&found), wanted.clone());
        let cryptographic = ScanOptions { hash: Some(HashKind::Blake3), ..ScanOptions::default() };
        let found = scan_tree(dir.path(), &cryptographic, None);
        prop_assert_eq!(groups_of(&found), wanted.clone());
        let hashed = ScanOptions { hash_all: true, paranoid: true, ..ScanOptions::default() };
        let found = scan_tree(dir.path(), &hashed, None);
        prop_assert_eq!(groups_of(&found), wanted);
    }

    /// Scans, changes some files, and scans again with the index: the groups must be correct.
    #[test]
    fn same_groups_when_remembered(before in specs(), after in specs(), gone in any::<[bool; 60]>()) {
        let dir = tempfile::tempdir().unwrap();
        let tree = dir.path().join("tree");
        std::fs::create_dir(&tree).unwrap();
        let db = dir.path().join("index.db");
        build(&tree, &before);
        let mut index = assay_dups::Index::open(&db).unwrap();
        let found = scan_tree(&tree, &ScanOptions::default(), Some(&mut index));
        prop_assert_eq!(groups_of(&found), oracle(&tree));
        for (id, gone) in (0..found.files.files.len() as u32).zip(gone) {
            if gone {
                let _ = std::fs::remove_file(OsStr::from_bytes(&found.files.path(id)));
            }
        }
        build(&tree, &after);
        drop(index);
        let mut index = assay_dups::Index::open(&db).unwrap();
        let wanted = oracle(&tree);
        let found = scan_tree(&tree, &ScanOptions::default(), Some(&mut index));
        prop_assert_eq!(groups_of(&found), wanted.clone());
        let stored = index.load(&[]).unwrap();
        let groups: common::Groups = assay_dups::group::by_hash(&stored)
            .iter()
            .map(|group| group.files.iter().map(|id| stored.path(*id)).collect())
            .collect();
        prop_assert_eq!(groups, wanted);
    }
}

/// More files of one size than are read in parallel; they differ outside of the samples.
#[test]
fn large_groups() {
    let dir = tempfile::tempdir().unwrap();
    for size in [1000, 150_000] {
        for number in 0..150_u32 {
            let mut content = noise(7, size);
            content[size / 5] = (number % 50) as u8;
            put(dir.path().join(format!("{size}/{number}")), &content);
        }
    }
    for hash in [HashKind::Blake3, HashKind::Xxh3].map(Some) {
        let options = ScanOptions {
            hash,
            ..ScanOptions::default()
        };
        let found = scan_tree(dir.path(), &options, None);
        assert_eq!(groups_of(&found), oracle(dir.path()));
        assert_eq!(found.groups.len(), 100);
    }
}

/// Positions at which a file differs from other files of its size.
fn changes() -> impl Strategy<Value = Vec<Option<(u32, u8)>>> {
    let change = (any::<u32>(), 1..4_u8);
    // Few positions, so that changed files can be equal to each other too.
    let few = prop_oneof![Just(0_u32), Just(70_000), Just(599_999), Just(u32::MAX / 3)];
    let one = prop_oneof![2 => change, 3 => (few, 1..3_u8)];
    proptest::collection::vec(proptest::option::weighted(0.7, one), 2..90)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Files of one size that differ in one byte at any position, in several classes, and partly more files
    /// than are read in parallel; large files are read in growing pieces.
    #[test]
    fn same_groups_when_one_byte_differs(changes in changes(), size in prop_oneof![
        Just(600_000_usize), Just(2_100_000), Just(70_001), Just(65_536), Just(65_537), Just(3_000), Just(1),
    ]) {
        let dir = tempfile::tempdir().unwrap();
        let content = noise(9, size);
        for (number, change) in changes.iter().enumerate() {
            let mut content = content.clone();
            if let Some((at, by)) = change {
                content[*at as usize % size] ^= by;
            }
            put(dir.path().join(number.to_string()), &content);
        }
        let wanted = oracle(dir.path());
        for hash in [HashKind::Blake3, HashKind::Xxh3].map(Some) {
            let options = ScanOptions { hash, ..ScanOptions::default() };
            prop_assert_eq!(groups_of(&scan_tree(dir.path(), &options, None)), wanted.clone());
        }
    }
}

/// Two threads read files while another program truncates, replaces and removes them: no reported group
/// contains a file that was not a duplicate, and the scan ends.
#[test]
fn files_that_change_are_set_aside() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_path_buf();
    for number in 0..300 {
        put(
            root.join(format!("f{number}")),
            &noise(number % 30, 140_000),
        );
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _stop = assay_testing::Stop(&stop);
        scope.spawn(|| {
            let mut turn = 0_u64;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let path = root.join(format!("f{}", turn * 7 % 300));
                match turn % 4 {
                    0 => drop(std::fs::File::create(&path)),
                    1 => drop(std::fs::remove_file(&path)),
                    2 => drop(std::fs::write(&path, noise(turn, 140_000))),
                    _ => {
                        let _ = std::fs::remove_file(&path);
                        let _ = rustix::fs::mknodat(
                            rustix::fs::CWD,
                            &path,
                            rustix::fs::FileType::Fifo,
                            rustix::fs::Mode::from_raw_mode(0o644),
                            0,
                        );
                    }
                }
                turn += 1;
            }
        });
        for _ in 0..10 {
            let found = scan_tree(&root, &ScanOptions::default(), None);
            for group in found.groups.iter() {
                assert!(group.files.len() > 1 && group.size > 0);
            }
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let found = scan_tree(&root, &ScanOptions::default(), None);
    assert_eq!(groups_of(&found), oracle(&root));
}

#[test]
fn what_is_left_out_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    put(root.join("a"), b"same");
    put(root.join("b"), b"same");
    put(root.join("empty"), b"");
    put(root.join(".zfs/snapshot/old/a"), b"same");
    put(root.join(".snapshots/1/a"), b"same");
    std::os::unix::fs::symlink("a", root.join("link")).unwrap();
    std::os::unix::fs::symlink(".", root.join("loop")).unwrap();
    let found = scan_tree(root, &ScanOptions::default(), None);
    assert_eq!(found.groups.len(), 1);
    assert_eq!(found.groups.at(0).files.len(), 2);
    assert_eq!(found.skipped.count(Reason::Symlink), 2);
    assert_eq!(found.skipped.count(Reason::Empty), 1);
    assert_eq!(found.skipped.count(Reason::Snapshot), 2);
    let mut options = ScanOptions::default();
    options.walk.snapshots = true;
    let found = scan_tree(root, &options, None);
    assert_eq!(found.groups.at(0).files.len(), 4);
}

#[test]
fn overlapping_roots_count_once() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path().join("sub/a"), b"same");
    put(dir.path().join("b"), b"same");
    let roots = [dir.path().to_path_buf(), dir.path().join("sub")];
    let found =
        common::free(|control| assay_dups::scan(&roots, &ScanOptions::default(), None, control))
            .unwrap();
    assert_eq!(found.groups.len(), 1);
    assert_eq!(found.groups.at(0).files.len(), 2);
    assert_eq!(found.skipped.count(Reason::SeenAlready), 1);
}

#[test]
fn paths_longer_than_the_kernel_takes_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let part = "d".repeat(200);
    let mut at = rustix::fs::open(
        dir.path(),
        rustix::fs::OFlags::PATH,
        rustix::fs::Mode::empty(),
    )
    .unwrap();
    for _ in 0..30 {
        rustix::fs::mkdirat(&at, &part, rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        at = rustix::fs::openat(
            &at,
            &part,
            rustix::fs::OFlags::PATH,
            rustix::fs::Mode::empty(),
        )
        .unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let deep =
        rustix::fs::openat(&at, "deep", flags, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
    rustix::io::write(&deep, b"same").unwrap();
    put(dir.path().join("shallow"), b"same");
    let found = scan_tree(dir.path(), &ScanOptions::default(), None);
    assert_eq!(found.groups.len(), 1, "{:?}", found.skipped);
    assert!(found.files.path(found.groups.at(0).files[0]).len() > 4096);
}

#[test]
fn filters() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    for name in ["a.jpg", "b.jpg", "c.tmp", "sub/d.jpg", "sub/e.log"] {
        put(root.join(name), b"same content");
    }
    put(root.join("sub/.gitignore"), b"*.log\n");
    let names = |change: &dyn Fn(&mut ScanOptions)| {
        let mut options = ScanOptions::default();
        change(&mut options);
        let found = scan_tree(root, &options, None);
        let ids = found.groups.iter().flat_map(|group| group.files.to_vec());
        ids.map(|id| String::from_utf8(found.files.name(id).to_vec()).unwrap())
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(names(&|_| {}), "a.jpg b.jpg c.tmp d.jpg e.log");
    assert_eq!(
        names(&|o| o.walk.filter.globs = vec!["*.jpg".into()]),
        "a.jpg b.jpg d.jpg"
    );
    assert_eq!(
        names(&|o| o.walk.filter.globs = vec!["!sub/**".into()]),
        "a.jpg b.jpg c.tmp"
    );
    assert_eq!(
        names(&|o| o.walk.filter.ignore_files = true),
        "a.jpg b.jpg c.tmp d.jpg"
    );
    assert_eq!(names(&|o| o.walk.filter.min_size = 100), "");
    assert_eq!(names(&|o| o.walk.filter.owner = Some(4_000_000)), "");
    assert_eq!(
        names(&|o| o.walk.filter.older_than = Some(3_600_000_000_000)),
        ""
    );
}

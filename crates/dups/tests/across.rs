//! Tests exports of several machines, and the answers that are computed from them: against direct counting, after a
//! kill, with damaged files and with repeated files.
#![allow(clippy::disallowed_methods, missing_docs)]

mod common;

use assay_dups::across::collide::find_common_samples;
use assay_dups::across::export::{Exported, export};
use assay_dups::across::export_queries::{CommonFiles, ask, ask_merging};
use assay_dups::across::offer::{Offered, write_offer};
use assay_dups::across::requested_hashes::Wanted;
use assay_dups::across::{Teller, export_columns};
use assay_dups::hash::HashKind;
use assay_dups::{Error, Index, ScanOptions};
use common::{noise, put, scan_tree};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Options that hash every file, with or without a copy.
fn all(kind: HashKind) -> ScanOptions {
    ScanOptions {
        hash_all: true,
        hash: Some(kind),
        ..ScanOptions::default()
    }
}

fn teller(machine: &str, export: &str) -> Teller {
    Teller {
        machine: machine.into(),
        id: Some(format!("id of {machine}")),
        export: export.into(),
    }
}

/// Creates the files of a machine: files that all machines have, files that only this machine has, several files with
/// one content, and hard links.
fn files(root: &Path, machine: u64) {
    for number in 0..60 {
        put(
            root.join(format!("all/{number}")),
            &noise(number, 900 + number as usize),
        );
        put(
            root.join(format!("own/{number}")),
            &noise(1_000 * machine + number, 2_000 + number as usize),
        );
    }
    for number in 0..20 * machine {
        put(
            root.join(format!("copies/{number}")),
            &noise(number % 7, 70_000),
        );
    }
    let first = put(root.join("names/first"), &noise(77 + machine / 3, 5_000));
    std::fs::hard_link(&first, root.join("names/second")).unwrap();
}

fn scanned(dir: &Path, name: &str, kind: HashKind) -> Index {
    let mut index = Index::open(&dir.join(format!("{name}.db"))).unwrap();
    scan_tree(&dir.join(name), &all(kind), Some(&mut index));
    index
}

/// Inodes by content and machine, counted directly.
type Truth = HashMap<Vec<u8>, BTreeMap<String, BTreeSet<u64>>>;

fn truth(dir: &Path, machines: &[&str]) -> Truth {
    let mut truth = Truth::new();
    for machine in machines {
        let mut folders = vec![dir.join(machine)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let inode = path.metadata().unwrap().ino();
                let machines = truth.entry(std::fs::read(&path).unwrap()).or_default();
                machines.entry((*machine).into()).or_default().insert(inode);
            }
        }
    }
    truth
}

fn agrees(answer: &CommonFiles, truth: &Truth) {
    let (mut files, mut groups, mut redundant, mut shared, mut shared_bytes) = (0, 0, 0, 0, 0);
    for (content, machines) in truth {
        let size = content.len() as u64;
        let count: u64 = machines.values().map(|inodes| inodes.len() as u64).sum();
        files += count;
        groups += u64::from(count > 1);
        redundant += size * (count - 1);
        shared += u64::from(machines.len() > 1);
        shared_bytes += size * (machines.len() as u64 - 1);
    }
    assert_eq!(answer.files, files);
    assert_eq!(answer.contents, truth.len() as u64);
    assert_eq!((answer.groups, answer.redundant_bytes), (groups, redundant));
    assert_eq!(
        (answer.shared_groups, answer.shared_bytes),
        (shared, shared_bytes)
    );
    for machine in &answer.machines {
        let own = truth.iter().filter_map(|(content, machines)| {
            let inodes = machines.get(&machine.name)?;
            Some((
                content.len() as u64,
                inodes.len() as u64,
                machines.len() > 1,
            ))
        });
        let own: Vec<_> = own.collect();
        assert_eq!(machine.files, own.iter().map(|one| one.1).sum::<u64>());
        let shared = own.iter().filter(|one| one.2).map(|one| one.0);
        assert_eq!(machine.shared_bytes, shared.sum::<u64>());
        let copies = own.iter().map(|one| one.0 * (one.1 - 1));
        assert_eq!(machine.redundant_bytes, copies.sum::<u64>());
    }
    let gain = |(content, machines): (&Vec<u8>, &BTreeMap<String, BTreeSet<u64>>)| {
        let count: usize = machines.values().map(BTreeSet::len).sum();
        (content.len() * (count - 1)) as u64
    };
    let mut gains: Vec<u64> = truth.iter().map(gain).filter(|gain| *gain > 0).collect();
    gains.sort_unstable_by(|a, b| b.cmp(a));
    gains.truncate(answer.largest.len());
    let told: Vec<u64> = answer
        .largest
        .iter()
        .map(|one| one.redundant_bytes)
        .collect();
    assert_eq!(told, gains);
}

const MACHINES: [&str; 3] = ["web1", "_odd name", "db"];

/// Exports three machines with prefixes of one, two and three digits.
fn fleet(kind: HashKind) -> (tempfile::TempDir, PathBuf, Vec<Index>) {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("hashes");
    let mut indexes = Vec::new();
    for (number, name) in (1..).zip(MACHINES) {
        files(&dir.path().join(name), number);
        let index = scanned(dir.path(), name, kind);
        let done = export(&index, &to, number as u8, &teller(name, "first")).unwrap();
        assert_eq!(done[name].unhashed, 0);
        indexes.push(index);
    }
    (dir, to, indexes)
}

#[test]
fn the_answer_is_that_of_plain_counting() {
    for kind in [HashKind::Xxh3, HashKind::Blake3] {
        let (dir, to, _) = fleet(kind);
        for threads in [1, 3] {
            let answer = ask(std::slice::from_ref(&to), 25, threads).unwrap();
            assert_eq!(answer.hash, kind.name());
            assert_eq!(answer.problems, [""; 0]);
            assert_eq!(answer.repeated_rows, 0);
            assert_eq!(answer.largest.len(), 25);
            agrees(&answer, &truth(dir.path(), &MACHINES));
        }
    }
}

/// Separate indexes and one merged index give the same export, and neither contains a path.
#[test]
fn a_merged_index_exports_the_same_and_no_path_is_told() {
    let (dir, to, indexes) = fleet(HashKind::Xxh3);
    let mut merged = Index::open(&dir.path().join("merged.db")).unwrap();
    for (name, index) in MACHINES.iter().zip(&indexes) {
        merged.merge(name, index).unwrap();
    }
    let whole = dir.path().join("whole");
    export(&merged, &whole, 2, &teller("hub", "x")).unwrap();
    let one = ask(&[whole], 9, 1).unwrap();
    assert_eq!(one, ask(std::slice::from_ref(&to), 9, 1).unwrap());
    for folder in std::fs::read_dir(&to).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            for name in [&b"copies"[..], b"names", b"own"] {
                assert!(
                    !bytes.windows(name.len()).any(|one| one == name),
                    "{path:?}"
                );
            }
            assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
            // Spark ignores files with such names.
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            assert!(!name.starts_with(['_', '.']), "{name}");
        }
    }
}

#[test]
fn a_new_export_replaces_the_old_one() {
    let (dir, to, mut indexes) = fleet(HashKind::Xxh3);
    std::fs::remove_dir_all(dir.path().join("db/own")).unwrap();
    scan_tree(
        &dir.path().join("db"),
        &all(HashKind::Xxh3),
        Some(&mut indexes[2]),
    );
    export(&indexes[2], &to, 1, &teller("db", "second")).unwrap();
    let answer = ask(std::slice::from_ref(&to), 5, 2).unwrap();
    assert_eq!(answer.problems, [""; 0]);
    agrees(&answer, &truth(dir.path(), &MACHINES));
    // None of the machine's 4096 folders of three digits remains.
    let digits = |folder: std::io::Result<std::fs::DirEntry>| folder.unwrap().file_name().len();
    let left = std::fs::read_dir(&to).unwrap().map(digits);
    assert!(left.max() < Some("prefix=abc".len()));
}

#[test]
fn what_is_given_twice_counts_once() {
    let (dir, to, _) = fleet(HashKind::Xxh3);
    let once = ask(std::slice::from_ref(&to), 9, 1).unwrap();
    let twice = ask(&[to.clone(), to.clone()], 9, 1).unwrap();
    assert!(twice.repeated_rows > 200);
    assert_eq!(
        CommonFiles {
            repeated_rows: 0,
            ..twice
        },
        once
    );
    // A file under another name.
    let file = to.join("prefix=3/web1.parquet");
    std::fs::copy(&file, to.join("prefix=3/copy.parquet")).unwrap();
    let again = ask(std::slice::from_ref(&to), 9, 1).unwrap();
    assert!(again.repeated_rows > 0);
    agrees(&again, &truth(dir.path(), &MACHINES));
}

/// More files than can be merged at once: they are first merged into runs.
#[test]
fn more_machines_than_are_merged_at_once() {
    let dir = tempfile::tempdir().unwrap();
    files(&dir.path().join("one"), 1);
    let index = scanned(dir.path(), "one", HashKind::Xxh3);
    let to = dir.path().join("hashes");
    let alone = export(&index, &to, 1, &teller("m0", "x")).unwrap()["m0"].clone();
    for number in 1..30 {
        export(&index, &to, 1, &teller(&format!("m{number}"), "x")).unwrap();
    }
    // With runs of runs.
    let answer = ask_merging(std::slice::from_ref(&to), 1, 2, 3).unwrap();
    assert_eq!(answer, ask(std::slice::from_ref(&to), 1, 2).unwrap());
    assert_eq!(
        (answer.machines.len(), answer.files),
        (30, 30 * alone.files)
    );
    assert_eq!(answer.contents, alone.contents);
    assert_eq!(answer.shared_groups, alone.contents);
    assert_eq!(
        (answer.largest[0].machines, answer.largest[0].names.len()),
        (30, 8)
    );
}

#[test]
fn what_is_not_whole_is_said() {
    let (_dir, to, indexes) = fleet(HashKind::Xxh3);
    let ask = |to: &Path| ask(&[to.to_path_buf()], 3, 1);
    // Cut off while it was copied.
    let cut = to.join("prefix=5/web1.parquet");
    let whole = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let answer = ask(&to).unwrap();
    assert_eq!(answer.problems.len(), 2, "{:?}", answer.problems);
    let problems = answer.problems.join("\n");
    insta::assert_snapshot!(assay_testing::normalize_output(problems, &[(&to, "EXPORT")]), @r"
    left out: EXPORT/prefix=5/web1.parquet: this is no Parquet file, or its end is missing
    web1: 15 of 16 files are there; copy all of them
    ");
    // A part of an older export.
    let other = to.with_file_name("other");
    export(&indexes[0], &other, 1, &teller("web1", "second")).unwrap();
    std::fs::copy(other.join("prefix=5/web1.parquet"), &cut).unwrap();
    let answer = ask(&to).unwrap();
    assert_eq!(answer.problems.len(), 1, "{:?}", answer.problems);
    assert!(
        answer.problems[0].contains("two exports"),
        "{:?}",
        answer.problems
    );
    std::fs::write(&cut, &whole).unwrap();
    assert_eq!(ask(&to).unwrap().problems, [""; 0]);
    // Two machines with one name, and rows that belong in another file.
    let strange = Teller {
        id: Some("another".into()),
        ..teller("web1", "first")
    };
    export(&indexes[1], &other, 1, &strange).unwrap();
    let error = assay_dups::across::export_queries::ask(&[to.clone(), other], 3, 1).unwrap_err();
    assert!(error.to_string().contains("--machine"), "{error}");
    std::fs::rename(&cut, to.join("prefix=6/moved.parquet")).unwrap();
    let error = ask(&to).unwrap_err();
    assert!(
        error.to_string().contains("prefix=6/moved.parquet"),
        "{error}"
    );
    assert!(matches!(ask(&to.join("nothing")), Err(Error::Io { .. })));
}

#[test]
fn hashes_of_two_kinds_are_not_compared() {
    let (dir, to, _) = fleet(HashKind::Xxh3);
    files(&dir.path().join("other"), 1);
    let index = scanned(dir.path(), "other", HashKind::Blake3);
    export(&index, &to, 1, &teller("other", "x")).unwrap();
    let error = ask(&[to], 3, 1).unwrap_err();
    assert!(error.to_string().contains("--hash"), "{error}");
}

/// Files of a machine contain arbitrary numbers. The answer is wrong, but the program ends and nothing overflows.
#[test]
fn attack_numbers_that_overflow() {
    use assay_columns::{CellValue, TableWriter};
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("prefix=0");
    std::fs::create_dir(&folder).unwrap();
    let notes = |machine: &str| {
        let pairs = [
            ("assay", "dups"),
            ("version", "1"),
            ("machine", machine),
            ("id", ""),
            ("hash", "xxh3-128"),
            ("export", "x"),
            ("files", "4294967295"),
        ];
        pairs.map(|(name, value)| (name, value.to_owned()))
    };
    for machine in ["a", "b"] {
        let mut writer =
            TableWriter::new(Vec::new(), &export_columns(16), &notes(machine)).unwrap();
        for number in 0..9_u8 {
            let row = [
                CellValue::Text(machine),
                CellValue::Fixed(&[number; 16]),
                CellValue::Int(i64::MAX),
                CellValue::Int(i64::MAX),
            ];
            writer.row(&row).unwrap();
        }
        std::fs::write(
            folder.join(machine).with_extension("parquet"),
            writer.finish().unwrap(),
        )
        .unwrap();
    }
    let answer = ask(&[dir.path().to_path_buf()], 3, 1).unwrap();
    assert_eq!(answer.redundant_bytes, u64::MAX);
    assert_eq!(answer.problems.len(), 2);
    assay_testing::attacked("exports with numbers that overflow", 2, 2);
}

#[test]
fn a_second_export_at_the_same_time_is_refused() {
    let (_dir, to, indexes) = fleet(HashKind::Xxh3);
    let fd = std::fs::File::open(&to).unwrap();
    rustix::fs::flock(&fd, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = export(&indexes[0], &to, 1, &teller("web1", "second")).unwrap_err();
    assert!(error.to_string().contains("another assay"), "{error}");
    drop(fd);
    let done = export(&indexes[0], &to, 1, &teller("web1", "second")).unwrap();
    assert_ne!(done["web1"], Exported::default());
}

/// Scans so that only contents with copies on the same machine are hashed.
fn half_hashed(dir: &Path, name: &str) -> Index {
    let mut index = Index::open(&dir.join(format!("{name}.db"))).unwrap();
    scan_tree(&dir.join(name), &ScanOptions::default(), Some(&mut index));
    index
}

fn offered(index: &Index, to: &Path, teller: &Teller) -> Offered {
    let (done, bytes) =
        common::free(|control| write_offer(index, Vec::new(), teller, control)).unwrap();
    std::fs::write(to, bytes).unwrap();
    done
}

/// Tests the complete exchange. It finds the contents that several machines have, as if all files were hashed, and
/// hashes no other file.
#[test]
fn only_what_another_machine_has_is_hashed() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut indexes = BTreeMap::new();
    for (number, name) in (1..).zip(MACHINES) {
        files(&at(name), number);
        // Two files that differ outside of the sample.
        let mut large = noise(5, 300_000);
        large[70_000] = number as u8;
        put(at(name).join("large"), &large);
        // Another name of a content that only this machine has; its index has one name more.
        std::fs::hard_link(at(name).join("all/7"), at(name).join("again")).unwrap();
        indexes.insert(name, half_hashed(dir.path(), name));
    }
    let mut offers = Vec::new();
    for (name, index) in &indexes {
        let path = at(&format!("{name}.offer"));
        let done = offered(index, &path, &teller(name, "x"));
        assert_eq!(done.left_out, 0);
        assert!(done.rows < done.names);
        offers.push(path);
    }
    offers.push(offers[0].clone());
    let done = find_common_samples(&offers, &at("wanted")).unwrap();
    assert_eq!(done.len(), 3);
    let hub = at("hashes");
    for (one, (name, index)) in done.iter().zip(&mut indexes) {
        assert_eq!(one.machine, *name);
        let id = format!("id of {name}");
        let wanted = Wanted::read(&one.path, Some(&id)).unwrap();
        assert_eq!(wanted.len() as u64, one.rows);
        let options = ScanOptions {
            wanted: Some(std::sync::Arc::new(wanted)),
            ..ScanOptions::default()
        };
        let scan = scan_tree(&at(name), &options, Some(index));
        assert_eq!(scan.skipped.details.len(), 0);
        let hashed = |path: &str| {
            let path = at(name).join(path);
            let path = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
            scan.files
                .hash(assay_dups::report::find(&scan.files, path).unwrap())
                .is_some()
        };
        assert!(hashed("all/3") && hashed("all/7") && hashed("again") && hashed("large"));
        assert!(!hashed("own/3"));
        // The hashes are stored: another scan reads nothing.
        let again = scan_tree(&at(name), &ScanOptions::default(), Some(index));
        assert_eq!(again.cost, assay_dups::read::Cost::default());
        export(index, &hub, 1, &teller(name, "x")).unwrap();
    }
    let answer = ask(&[hub], 20, 2).unwrap();
    let truth = truth(dir.path(), &MACHINES);
    let shared = truth.iter().filter(|one| one.1.len() > 1);
    let bytes: usize = shared
        .clone()
        .map(|(content, on)| content.len() * (on.len() - 1))
        .sum();
    assert_eq!(
        (answer.shared_groups, answer.shared_bytes),
        (shared.count() as u64, bytes as u64)
    );
    // A table for another machine, or a table of another kind.
    let error = Wanted::read(&done[0].path, Some("another")).unwrap_err();
    assert!(error.to_string().contains("another machine"), "{error}");
    let error = Wanted::read(&offers[0], None).unwrap_err();
    assert!(error.to_string().contains("dups-wanted"), "{error}");
}

/// More offers than can be merged at once, with files that change between the two steps.
#[test]
fn many_offers_and_a_file_that_changed() {
    let dir = tempfile::tempdir().unwrap();
    files(&dir.path().join("one"), 1);
    let index = half_hashed(dir.path(), "one");
    let mut offers = Vec::new();
    for number in 0..140 {
        let path = dir.path().join(format!("{number}.offer"));
        if number < 2 {
            offered(&index, &path, &teller(&format!("m{number}"), "x"));
        } else {
            put(
                dir.path().join(format!("{number}/lone")),
                &noise(number, 33),
            );
            let mut small = Index::open(&dir.path().join(format!("{number}.db"))).unwrap();
            scan_tree(
                &dir.path().join(number.to_string()),
                &ScanOptions::default(),
                Some(&mut small),
            );
            offered(&small, &path, &teller(&format!("m{number}"), "x"));
        }
        offers.push(path);
    }
    let done = find_common_samples(&offers, &dir.path().join("wanted")).unwrap();
    assert_eq!(done.len(), 140);
    let rows: Vec<u64> = done
        .iter()
        .map(|one| one.rows)
        .filter(|rows| *rows > 0)
        .collect();
    assert_eq!((rows.len(), rows[0]), (2, rows[1]));
    put(dir.path().join("one/all/4"), b"changed");
    let again = offered(&index, &dir.path().join("again"), &teller("m0", "x"));
    assert_eq!(again.left_out, 1);
}

//! Kills `assay dups` while it scans, acts, undoes and follows other machines.

use crate::Place;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Repeated SIGKILL at random times of a real run: no content is lost, and no temporary name
/// remains.
#[test]
fn killed_while_acting() {
    for round in 0..12_u64 {
        let place = Place::new();
        let many = place.root().join("many");
        std::fs::create_dir(&many).unwrap();
        for number in 0..300 {
            for copy in ["a", "b"] {
                std::fs::write(
                    many.join(format!("{copy}{number}")),
                    format!("content {number}"),
                )
                .unwrap();
            }
        }
        place.text(&["scan", "many"], 0);
        let action = ["--hardlink", "--delete"][round as usize % 2];
        place.kill_after(4 * round + 8, &["act", action, "many", "--apply"]);
        place.text(&["undo", "--recover"], 0);
        let mut found = std::collections::BTreeMap::<Vec<u8>, u32>::new();
        for entry in std::fs::read_dir(&many).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().as_bytes();
            assert!(!name.starts_with(b".assay"), "round {round}: {path:?}");
            *found.entry(std::fs::read(&path).unwrap()).or_default() += 1;
        }
        assert_eq!(found.len(), 300, "round {round}");
        if action == "--hardlink" {
            assert!(found.values().all(|copies| *copies == 2), "round {round}");
        }
    }
}

/// Returns the names below a folder, grouped by file.
fn names_by_file(root: &Path) -> std::collections::BTreeSet<Vec<PathBuf>> {
    let mut files = std::collections::BTreeMap::<u64, Vec<PathBuf>>::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            match meta.is_dir() {
                true => folders.push(path),
                false => files.entry(meta.ino()).or_default().push(path),
            }
        }
    }
    let sorted = files.into_values().map(|mut names| {
        names.sort();
        names
    });
    sorted.collect()
}

/// Rotations of hard links (rsnapshot), with repeated SIGKILL during undo: finally the same names
/// are the same files.
#[test]
fn attack_killed_while_undoing() {
    let (mut tried, mut held) = (0, 0);
    for round in 0..10_u64 {
        let place = Place::new();
        let root = place.root().join("rotations");
        for number in 0..60 {
            for host in ["alpha", "beta"] {
                let name = |turn: u32| root.join(format!("daily.{turn}/{host}/f{number}"));
                std::fs::create_dir_all(name(0).parent().unwrap()).unwrap();
                std::fs::write(name(0), format!("content {number} ").repeat(2000)).unwrap();
                for turn in 1..4 {
                    std::fs::create_dir_all(name(turn).parent().unwrap()).unwrap();
                    std::fs::hard_link(name(0), name(turn)).unwrap();
                }
            }
        }
        let before = names_by_file(&root);
        assert_eq!(before.len(), 120);
        place.text(&["scan", "rotations"], 0);
        let action = ["--hardlink", "--delete"][round as usize % 2];
        let done = place.text(&["act", action, "rotations", "--apply"], 0);
        let run = done.rsplit("undo ").next().unwrap().trim();
        let run = run.trim_end_matches('`').to_owned();
        for turn in 0..3 {
            place.kill_after(9 + 7 * round + 3 * turn, &["undo", &run]);
            if turn == 1 {
                place.text(&["undo", "--recover"], 0);
            }
        }
        let undone = place.dups(&["undo", &run]);
        tried += 1;
        let whole = undone.status.code() == Some(0) && names_by_file(&root) == before;
        held += u64::from(whole);
        let errors = String::from_utf8_lossy(&undone.stderr);
        assert!(whole, "round {round} {action}: {errors}");
    }
    assay_testing::attacked("undo of duplicates, killed", tried, held);
}

/// SIGKILL during a scan: the index has its state before or after the scan, and the next scan is
/// correct.
#[test]
fn killed_while_scanning() {
    let place = Place::new();
    for number in 0..400 {
        let content = format!("content {}", number / 2);
        std::fs::write(place.root().join(format!("f{number}")), content).unwrap();
    }
    for round in 0..8_u64 {
        std::fs::write(place.root().join(format!("new{round}")), "content 7").unwrap();
        place.kill_after(5 * round, &["scan", ".", "--format", "nul"]);
        let text = place.text(&["scan", "."], 0);
        assert!(text.contains("202 groups"), "round {round}: {text}");
        let list = place.text(&["report", "--format", "csv"], 0);
        assert_eq!(list.lines().count(), 203, "round {round}: {list}");
    }
}

/// Hub and machines run as separate processes and are killed at any point: files with their final
/// name are complete, or reported as a mixture, and the next run repairs them.
#[test]
fn attack_hub_and_machines_killed_between_any_two_files() {
    let place = Place::new();
    let at = |name: &str| place.0.path().join(name).display().to_string();
    for number in 0..200_u32 {
        let content = format!("{number} ").repeat(20 + number as usize);
        std::fs::write(place.root().join(number.to_string()), content).unwrap();
    }
    let (hashes, wanted) = (at("hashes"), at("wanted"));
    for machine in ["one", "two"] {
        let (index, offer) = (
            at(&format!("{machine}.db")),
            at(&format!("{machine}.offer")),
        );
        place.text(&["scan", ".", "--index", &index], 0);
        place.text(
            &["offer", &offer, "--machine", machine, "--index", &index],
            0,
        );
        // Another file than that of the other machine.
        std::fs::write(place.root().join("lone"), machine.repeat(9)).unwrap();
    }
    let offers = [at("one.offer"), at("two.offer")];
    let collide = ["collide", &offers[0], &offers[1], "--to", &wanted];
    for round in 0..8 {
        place.kill_after(round, &collide);
    }
    let said = place.text(&collide, 0);
    assert_eq!(said.matches("samples to hash").count(), 2, "{said}");
    let export = |machine: &'static str| {
        let index = at(&format!("{machine}.db"));
        [
            "export",
            &hashes,
            "--digits=2",
            "--machine",
            machine,
            "--index",
            &index,
        ]
        .map(str::to_owned)
    };
    for machine in ["one", "two"] {
        let (index, table) = (
            at(&format!("{machine}.db")),
            format!("{wanted}/{machine}.parquet"),
        );
        place.text(&["refresh", "--index", &index, "--wanted", &table], 0);
        let export = export(machine);
        place.text(&export.each_ref().map(String::as_str), 0);
    }
    let ask = ["across", &hashes, "--json"];
    let whole = place.text(&ask, 0);
    let answer: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(answer["problems"], serde_json::json!([]));
    assert!(answer["shared_groups"].as_u64() > Some(200), "{whole}");
    let (mut tried, mut held) = (0, 0);
    for round in 0..12 {
        let export = export("one");
        place.kill_after(4 * round, &export.each_ref().map(String::as_str));
        let ran = place.dups(&ask);
        tried += 1;
        held += u64::from(match ran.status.code() {
            Some(0) => ran.stdout == whole.as_bytes(),
            Some(3) => String::from_utf8_lossy(&ran.stderr).contains("one: "),
            _ => false,
        });
    }
    assay_testing::attacked("exports killed half way", tried, held);
    place.text(&export("one").each_ref().map(String::as_str), 0);
    assert_eq!(place.text(&ask, 0), whole);
    for folder in std::fs::read_dir(&hashes).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let name = file.unwrap().file_name();
            assert!(!name.as_bytes().starts_with(b"."), "{name:?} is left");
        }
    }
}

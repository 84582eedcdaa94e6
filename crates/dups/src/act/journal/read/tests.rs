//! Reads damaged journals and checks that every loss is reported.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

use super::*;
use crate::act::journal::{Journal, RemovedFile};
use crate::act::{ActStep, Action, Subject};
use std::path::{Path, PathBuf};

fn subject(name: &str) -> Subject {
    Subject {
        path: name.as_bytes().to_vec(),
        device: 7,
        ino: 8,
        size: 9,
        mtime: 10,
        ctime: 11,
        mode: 0o644,
        uid: 0,
        gid: 0,
        root: Arc::default(),
        mount: 0,
        links: 1,
    }
}

fn step(name: &str) -> ActStep {
    ActStep {
        action: Action::Delete,
        keep: subject("/a"),
        remove: subject(name),
        gain: 9,
        origin: None,
    }
}

/// A complete journal of three steps.
fn written(dir: &Path) -> PathBuf {
    let mut journal = Journal::begin(&dir.join("index")).unwrap();
    let steps = ["/b", "/c", "/d"].map(step);
    let intents = steps.iter().map(|step| (step, &b"aside"[..], None));
    assert_eq!(journal.intend(intents).unwrap(), 0);
    let found = || RemovedFile {
        content: serde_json::from_value("00".repeat(32).into()).unwrap(),
        attributes: serde_json::from_str(r#"{"xattrs":[],"flags":0}"#).unwrap(),
        across: false,
    };
    journal
        .note((0..3).map(|number| (number, found())))
        .unwrap();
    let done = (0..3).map(|number| (number, StepState::Done));
    journal.conclude(done).unwrap();
    journal.end(0).unwrap();
    journal.path().to_owned()
}

/// Returns whether a damaged journal is read like the original. Also true if its damage or its missing end is reported.
fn holds(good: &Loaded, bytes: &[u8]) -> bool {
    let found = read(bytes);
    found.is_unfinished() || found.entries == good.entries
}

#[test]
fn attack_every_byte_of_a_journal_of_duplicates() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(written(dir.path())).unwrap();
    let good = read(&bytes);
    assert!(!good.is_unfinished() && good.damaged.is_empty());
    assert_eq!(good.entries.len(), 3);
    let (mut tried, mut held) = (0, 0);
    let mut attack = |what: &str, at: usize, bytes: &[u8]| {
        tried += 1;
        match holds(&good, bytes) {
            true => held += 1,
            false => eprintln!("{what} at byte {at} is not seen"),
        }
    };
    for at in 0..bytes.len() {
        attack("the end", at, &bytes[..at]);
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            attack("a flipped bit", at, &flipped);
        }
        let sector = at..(at + 512).min(bytes.len());
        let mut zeroed = bytes.clone();
        zeroed[sector.clone()].fill(0);
        attack("a sector of zeros", at, &zeroed);
        let mut missing = bytes.clone();
        missing.drain(sector);
        attack("a missing sector", at, &missing);
    }
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    for one in 0..lines.len() {
        for other in 0..=lines.len() {
            let mut moved = lines.clone();
            let line = moved.remove(one);
            attack("a missing line", one, &moved.concat());
            moved.insert(other.min(moved.len()), line);
            let same = moved == lines;
            if !same {
                attack("a moved line", one, &moved.concat());
            }
        }
    }
    assay_testing::attacked("journals of duplicates, damaged", tried, held);
}

/// A crash during a write damages nothing: the journal continues after the last complete line.
#[test]
fn a_torn_line_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path());
    let bytes = std::fs::read(&path).unwrap();
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    for at in [
        0,
        1,
        5,
        second - 2,
        second - 1,
        second,
        second + 1,
        second + 40,
    ] {
        for zeros in [0, 300] {
            let mut torn = bytes[..at].to_vec();
            torn.resize(at + zeros, 0);
            std::fs::write(&path, &torn).unwrap();
            let before = Journal::load(&path).unwrap();
            assert_eq!(before.damaged, [], "{at}");
            assert!(before.is_unfinished());
            let whole = usize::from(at >= second - 1);
            assert_eq!(before.entries.len(), whole, "{at}");
            let mut journal = Journal::reopen(&path).unwrap();
            journal.conclude([(0, StepState::Untouched)]).unwrap();
            journal.end(0).unwrap();
            let after = Journal::load(&path).unwrap();
            assert_eq!(after.damaged, [], "{at}");
            assert!(!after.is_unfinished());
            assert_eq!(after.entries.len(), whole);
        }
    }
}

/// Damage is reported once but stays in the list.
#[test]
fn damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"path\":\"/c\"", "\"path\":\"/x\"")).unwrap();
    let undone = crate::act::undo::recover(&path).unwrap();
    assert_eq!(undone.refused.len(), 1, "{undone:?}");
    let after = Journal::load(&path).unwrap();
    assert!(!after.is_unfinished());
    assert_eq!(after.damaged.len(), 1);
}

/// Journals of assay 0.1 have no numbers or checksums and are continued without them.
#[test]
fn an_old_journal_is_read_and_goes_on() {
    let old = |name: &str, number: u64| {
        let line = Line::Intent {
            number,
            step: Box::new(step(name)),
            aside: b"aside".to_vec(),
            target: None,
        };
        serde_json::to_string(&line).unwrap() + "\n"
    };
    let dir = tempfile::tempdir().unwrap();
    let path = written(dir.path());
    let torn = old("/b", 0) + &old("/c", 1)[..40];
    std::fs::write(&path, &torn).unwrap();
    let before = Journal::load(&path).unwrap();
    assert!(before.is_unfinished() && before.damaged.is_empty());
    Journal::reopen(&path)
        .unwrap()
        .conclude([(0, StepState::Done)])
        .unwrap();
    let after = Journal::load(&path).unwrap();
    assert!(!after.is_unfinished() && after.damaged.is_empty());
    assert_eq!(after.entries[&0].state, StepState::Done);
    std::fs::write(
        &path,
        old("/b", 0).replace("intent", "intend") + &old("/c", 1),
    )
    .unwrap();
    assert_eq!(Journal::load(&path).unwrap().damaged.len(), 1);
}

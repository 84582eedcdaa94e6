//! Tests that a store created by assay 0.1 remains usable: it is opened, migrated, read and written.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

mod common;

use assay_model::Machine;
use assay_model::run::{RunId, RunState};
use assay_model::trial::{TrialId, TrialState};
use assay_store::{Store, StoreError};
use std::path::{Path, PathBuf};

/// Copies the store of assay 0.1.
fn old(dir: &Path) -> PathBuf {
    let packed = include_bytes!("fixtures/store-0.1.db.zst");
    let path = dir.join("assay.db");
    std::fs::write(&path, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    path
}

fn here(digit: char) -> Machine {
    Machine {
        id: digit.to_string().repeat(32),
        name: Some("box".to_owned()),
    }
}

#[test]
fn everything_in_it_is_still_there() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&old(dir.path())).unwrap();
    let rows = store.runs().unwrap();
    let seen = rows
        .iter()
        .map(|row| (row.id.0, row.state, row.samples, row.planned));
    let seen: Vec<_> = seen.rev().collect();
    let complete = RunState::Complete;
    assert_eq!(
        seen,
        [
            (1, complete, 5, 5),
            (2, complete, 5, 5),
            (3, complete, 3, 3),
            (4, RunState::Interrupted, 2, 12),
            (5, RunState::Running, 2, 12),
            (6, RunState::Failed, 4, 12),
            (7, complete, 1, 1),
            (8, complete, 10, 10),
        ]
    );
    for row in &rows {
        let (run, samples) = (store.run(row.id).unwrap(), store.samples(row.id).unwrap());
        assert_eq!(run.uid, row.uid);
        assert_eq!(run.plan.name, row.plan);
        assert_eq!(run.plan.order.len() as u64, row.planned);
        assert_eq!(samples.len() as u64, row.samples);
        assert_eq!(store.resolve(&row.uid[..8]).unwrap(), row.id);
        let targets: Vec<_> = run.targets.iter().map(|one| one.name.clone()).collect();
        assert_eq!(targets, row.targets);
    }
    assert!(store.run(RunId(8)).unwrap().ladder.is_some());
    let trials = store.trials().unwrap();
    let states: Vec<_> = trials
        .iter()
        .map(|one| (one.id.0, one.state, one.plan.aa))
        .collect();
    let complete = TrialState::Complete;
    assert_eq!(
        states,
        [
            (3, complete, true),
            (2, TrialState::Stopped, false),
            (1, complete, false)
        ]
    );
    let slots = |id| store.slots(TrialId(id)).unwrap().len();
    assert_eq!([slots(1), slots(2), slots(3)], [12, 4, 8]);
    let studies = store.studies().unwrap();
    let seen: Vec<_> = studies
        .iter()
        .map(|(id, one)| (id.0, one.complete))
        .collect();
    assert_eq!(seen, [(11, false), (1, true)]);
    assert_eq!(store.resolve_study("mine").unwrap(), studies[0].0);
}

/// Version 0.1 did not record the machine, so no machine is assumed.
#[test]
fn what_it_measured_belongs_to_no_known_machine() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&old(dir.path())).unwrap().on(Some(here('a')));
    let mut new = common::run("00000000000000000000000000000001");
    store.create_run(&mut new).unwrap();
    assert_eq!(new.id, RunId(9));
    let rows = store.runs().unwrap();
    assert_eq!(rows[0].machine, Some(here('a')));
    assert!(rows[1..].iter().all(|row| row.machine.is_none()));
    // Writing to an old store does not assign its records to this machine.
    store.update_run(&store.run(RunId(4)).unwrap()).unwrap();
    assert_eq!(store.machine_of_run(RunId(4)).unwrap(), None);
    assert_eq!(store.machine_of_trial(TrialId(2)).unwrap(), None);
    let (id, mut study) = store.studies().unwrap().remove(0);
    study.complete = true;
    assert_eq!(store.put_study(&study).unwrap(), id);
    assert_eq!(store.machine_of_study(id).unwrap(), None);
}

#[test]
fn an_interrupted_run_of_it_goes_on_and_is_found_whole_after_opening_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    let mut store = Store::open(&path).unwrap();
    let (run, samples) = (RunId(4), store.samples(RunId(4)).unwrap());
    let mut next = samples[0].clone();
    next.slot = 2;
    store.add_sample(run, &next).unwrap();
    let ended = jiff::Timestamp::from_second(1_800_000_000).unwrap();
    store.finish(run, RunState::Complete, ended).unwrap();
    drop(store);
    let store = Store::open(&path).unwrap();
    assert_eq!(store.run(run).unwrap().state, RunState::Complete);
    let wanted = [samples, vec![next]].concat();
    assert_eq!(store.samples(run).unwrap(), wanted);
}

/// Several threads open an old store at the same time. One of them migrates it, and the others wait.
#[test]
fn many_open_it_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = old(dir.path());
    let counts: Vec<usize> = std::thread::scope(|scope| {
        let open = || Store::open(&path).unwrap().runs().unwrap().len();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(counts, [8; 8]);
}

/// The migration needs disk space. Without free space, the store keeps its old state and can be opened later.
#[test]
fn a_full_disk_leaves_it_as_it_was() {
    if !rustix::process::geteuid().is_root() {
        assay_testing::skipped("root", "needs root to mount a small file system");
        return;
    }
    // First too little for the index of the write-ahead log, then enough for the index but not for the log.
    for pages in [2, 10] {
        let dir = tempfile::tempdir().unwrap();
        let whole = std::fs::metadata(old(dir.path())).unwrap().len();
        let small = dir.path().join("small");
        std::fs::create_dir(&small).unwrap();
        let run = |name: &str, args: &[&str]| {
            let mut command = std::process::Command::new(name);
            let ran = command.args(args).arg(&small).status();
            ran.is_ok_and(|status| status.success())
        };
        let size = format!("size={}", (whole / 4096 + pages) * 4096);
        if !run("mount", &["-t", "tmpfs", "-o", &size, "assay-test"]) {
            assay_testing::skipped("mount", "a tmpfs cannot be mounted here");
            return;
        }
        let path = old(&small);
        let said = Store::open(&path);
        let grown = run("mount", &["-o", "remount,size=16m"]);
        let later = Store::open(&path).and_then(|store| store.runs());
        assert!(run("umount", &[]));
        let said = said.expect_err("there was no space");
        assert!(matches!(said, StoreError::Full { .. }), "{said}: {said:?}");
        assert!(grown);
        assert_eq!(later.unwrap().len(), 8);
    }
}

/// A flipped bit either causes an error or changes nothing. No sample is returned with other contents.
#[test]
fn attack_a_flipped_bit_changes_no_sample_unseen() {
    let dir = tempfile::tempdir().unwrap();
    let old = Store::open(&old(dir.path())).unwrap();
    let path = dir.path().join("new.db");
    let mut new = Store::open(&path).unwrap();
    let mut good = Vec::new();
    for id in 1..=8 {
        let (run, samples) = (old.run(RunId(id)).unwrap(), old.samples(RunId(id)).unwrap());
        new.import_run(&run, &samples, None).unwrap();
        good.push(samples);
    }
    drop(new);
    let whole = std::fs::read(&path).unwrap();
    let steps = 60 * assay_testing::attack_factor();
    let (mut tried, mut held) = (0, 0);
    for step in 0..steps {
        let mut bytes = whole.clone();
        let at = (whole.len() as u64 * step / steps) as usize;
        bytes[at] ^= 1 << (step % 8);
        let _ = std::fs::remove_file(dir.path().join("new.db-wal"));
        std::fs::write(&path, &bytes).unwrap();
        tried += 1;
        let read = Store::open(&path).and_then(|store| {
            let ids: Vec<RunId> = store.runs()?.iter().map(|row| row.id).collect();
            Ok(ids.into_iter().all(|id| match store.samples(id) {
                // Every part that can be read equals a stored part.
                Ok(samples) => match good.get((id.0 - 1) as usize) {
                    Some(good) => samples.iter().all(|one| good.contains(one)),
                    None => false,
                },
                Err(_) => true,
            }))
        });
        match read {
            Ok(true) | Err(_) => held += 1,
            Ok(false) => eprintln!("bit {} of byte {at} changed a sample unseen", step % 8),
        }
    }
    assay_testing::attacked("flipped bits of a store", tried, held);
}

#[test]
fn the_name_of_a_machine_follows_it_and_is_kept_where_only_its_id_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.db");
    let mut store = Store::open(&path).unwrap().on(Some(here('a')));
    for uid in ["aaaa0001", "aaaa0002"] {
        store.create_run(&mut common::run(uid)).unwrap();
    }
    let renamed = Machine {
        name: Some("web".to_owned()),
        ..here('a')
    };
    let mut store = Store::open(&path).unwrap().on(Some(renamed.clone()));
    store.create_run(&mut common::run("aaaa0003")).unwrap();
    let nameless = Machine {
        name: None,
        ..here('a')
    };
    let other = Machine {
        name: None,
        ..here('b')
    };
    let one = common::run("aaaa0004");
    let text = assay_store::to_json(&one, &[], Some(&nameless)).unwrap();
    let export = assay_store::from_json(&text).unwrap();
    assert_eq!(export.machine(), Some(nameless));
    let machine = export.machine();
    store
        .import_run(&export.run, &[], machine.as_ref())
        .unwrap();
    store
        .import_run(&common::run("aaaa0005"), &[], Some(&other))
        .unwrap();
    let machines: Vec<_> = store
        .runs()
        .unwrap()
        .into_iter()
        .map(|row| row.machine)
        .collect();
    let web = Some(renamed);
    assert_eq!(
        machines,
        [Some(other), web.clone(), web.clone(), web.clone(), web]
    );
}

#[test]
fn an_export_names_no_host_and_a_wrong_machine_in_it_is_refused() {
    let one = common::run("aaaa0001");
    let text = assay_store::to_json(&one, &[], Some(&here('a'))).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["machine"], here('a').id.as_str());
    for bad in ["", "box", "\u{1b}[31m", "<script>"] {
        let mut value = value.clone();
        value["machine"] = bad.into();
        let said = assay_store::from_json(&value.to_string()).unwrap_err();
        assert!(matches!(said, StoreError::Export(_)), "{said}");
        assert!(!said.to_string().contains('\x1b'));
    }
    // Exports of version 0.1 do not have this field.
    let mut value = value;
    value.as_object_mut().unwrap().remove("machine");
    let export = assay_store::from_json(&value.to_string()).unwrap();
    assert_eq!(export.machine(), None);
}

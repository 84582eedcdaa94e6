//! A store in a real PostgreSQL: the same records, several at once, a server that goes away.
#![allow(clippy::disallowed_methods, reason = "tests make files and processes")]

mod common;

use assay_model::run::RunState;
use assay_model::trial::{Side, Slot};
use assay_model::{Machine, Trial};
use assay_rigs::postgres::Postgres;
use assay_store::{Merged, Store, StoreError, merge};
use std::path::{Path, PathBuf};

fn machine(digit: char, name: &str) -> Machine {
    Machine {
        id: digit.to_string().repeat(32),
        name: Some(name.to_owned()),
    }
}

fn slot(pair: u32, side: Side) -> Slot {
    serde_json::from_value(serde_json::json!({
        "pair": pair, "side": side, "read_back": "a",
        "sample": common::sample(pair * 2, 100.0),
    }))
    .unwrap()
}

/// Fills a store with a run, a trial and a study of two machines.
fn fill(path: &Path, prefix: char) -> Store {
    let uid = |n: u8| format!("{prefix}{n}").repeat(16);
    let mut store = Store::open(path).unwrap().on(Some(machine('a', "box")));
    let mut run = common::run(&uid(1));
    store.create_run(&mut run).unwrap();
    for at in [2, 0, 1, 1] {
        store
            .add_sample(run.id, &common::sample(at, f64::from(at)))
            .unwrap();
    }
    let ended = jiff::Timestamp::from_second(1_800_000_060).unwrap();
    store.finish(run.id, RunState::Complete, ended).unwrap();
    let mut store = store.on(Some(machine('b', "other")));
    let mut trial = common::trial(&uid(2));
    store.create_trial(&mut trial).unwrap();
    for side in [Side::Changed, Side::Now] {
        store.add_slot(trial.id, &slot(0, side)).unwrap();
    }
    store.put_study(&common::study(&uid(3), "cache")).unwrap();
    store
}

/// Everything that is in a store, with machines, without its numbers.
fn all(store: &Store) -> String {
    let mut text = String::new();
    for row in store.runs().unwrap().iter().rev() {
        let mut run = store.run(row.id).unwrap();
        run.id = assay_model::RunId(0);
        let more = (
            store.samples(row.id).unwrap(),
            store.machine_of_run(row.id).unwrap(),
        );
        text += &format!("{run:?} {more:?} {} {}\n", row.samples, row.planned);
    }
    for trial in store.trials().unwrap().iter().rev() {
        let id = trial.id;
        let trial = Trial {
            id: assay_model::trial::TrialId(0),
            ..trial.clone()
        };
        let more = (
            store.slots(id).unwrap(),
            store.machine_of_trial(id).unwrap(),
        );
        text += &format!("{trial:?} {more:?}\n");
    }
    for (id, study) in store.studies().unwrap().iter().rev() {
        text += &format!("{study:?} {:?}\n", store.machine_of_study(*id).unwrap());
    }
    text
}

#[test]
fn it_holds_what_a_file_holds() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let url = server.url("postgres");
    assert!(
        Store::open_existing(&url).unwrap().is_none(),
        "nothing is made by looking"
    );
    let there = fill(&url, '1');
    let here = fill(&dir.path().join("s.db"), '1');
    assert_eq!(all(&there), all(&here));
    drop(there);
    let mut again = Store::open_existing(&url).unwrap().unwrap();
    assert_eq!(all(&again), all(&here));
    // By the names people use, and away again.
    let id = again.resolve("last").unwrap();
    assert_eq!(again.resolve("1111").unwrap(), id);
    again.delete_run(id).unwrap();
    assert!(matches!(again.run(id), Err(StoreError::Missing { .. })));
    assert!(matches!(
        again.add_sample(id, &common::sample(0, 1.0)),
        Err(StoreError::Missing { .. })
    ));
}

#[test]
fn stores_become_one_and_twice_adds_nothing() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let url = server.url("postgres");
    let one = fill(&dir.path().join("one.db"), '1');
    let two = fill(&dir.path().join("two.db"), '2');
    let mut shared = Store::open(&url).unwrap();
    let new = Merged {
        new: 3,
        ..Merged::default()
    };
    let known = Merged {
        known: 3,
        ..Merged::default()
    };
    assert_eq!(merge(&one, &mut shared, &mut |_, _| true).unwrap(), new);
    assert_eq!(merge(&one, &mut shared, &mut |_, _| true).unwrap(), known);
    assert_eq!(merge(&two, &mut shared, &mut |_, _| true).unwrap(), new);
    // And back: what it holds of both.
    let mut back = Store::open(&dir.path().join("back.db")).unwrap();
    merge(&shared, &mut back, &mut |_, _| true).unwrap();
    assert_eq!(all(&back), all(&shared));
    // One that was copied in the middle grows.
    let mut half = Store::open(&dir.path().join("half.db")).unwrap();
    let uid = "33".repeat(16);
    let mut run = common::run(&uid);
    half.create_run(&mut run).unwrap();
    half.add_sample(run.id, &common::sample(0, 1.0)).unwrap();
    merge(&half, &mut shared, &mut |_, _| true).unwrap();
    half.add_sample(run.id, &common::sample(1, 1.0)).unwrap();
    let grown = Merged {
        grown: 1,
        ..Merged::default()
    };
    assert_eq!(merge(&half, &mut shared, &mut |_, _| true).unwrap(), grown);
    let id = shared.resolve(&uid).unwrap();
    assert_eq!(shared.samples(id).unwrap().len(), 2);
    // Stopped by the user: what was copied stays.
    let mut part = Store::open(&dir.path().join("part.db")).unwrap();
    merge(&shared, &mut part, &mut |done, _| done < 2).unwrap();
    assert_eq!(part.runs().unwrap().len(), 2);
}

#[test]
fn many_at_once_make_it_once_and_fill_it_whole() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let url = server.url("postgres");
    std::thread::scope(|threads| {
        for hub in ['1', '2', '3', '4', '5', '6'] {
            let url = url.clone();
            threads.spawn(move || {
                let store = fill(&url, hub);
                // The same run from two hubs is one.
                let mut other = Store::open(&url).unwrap();
                let uid = "ee".repeat(16);
                other
                    .import_run(&common::run(&uid), &[common::sample(0, 1.0)], None)
                    .unwrap();
                drop(store);
            });
        }
    });
    let store = Store::open(&url).unwrap();
    assert_eq!(store.runs().unwrap().len(), 7);
    assert_eq!(store.trials().unwrap().len(), 6);
    assert_eq!(
        server.sql("postgres", "SELECT count(*) FROM assay.machine"),
        "2"
    );
    assert_eq!(
        server.sql(
            "postgres",
            "SELECT count(*), max(version) FROM assay.version"
        ),
        "1|1"
    );
}

#[test]
fn a_server_that_is_started_anew_costs_nothing() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let url = server.url("postgres");
    let mut store = Store::open(&url).unwrap();
    let mut run = common::run(&"77".repeat(16));
    store.create_run(&mut run).unwrap();
    // In the middle: the writer waits until it is back.
    let writer = std::thread::spawn(move || {
        for at in 0..200 {
            store.add_sample(run.id, &common::sample(at, 1.0)).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        (store, run.id)
    });
    std::thread::sleep(std::time::Duration::from_millis(200));
    server.down();
    std::thread::sleep(std::time::Duration::from_millis(500));
    server.up().unwrap();
    let (store, id) = writer.join().unwrap();
    let slots: Vec<u32> = store
        .samples(id)
        .unwrap()
        .iter()
        .map(|sample| sample.slot)
        .collect();
    assert_eq!(slots, (0..200).collect::<Vec<u32>>());
}

#[test]
fn what_it_refuses_says_why_and_never_the_password() {
    let Some(mut server) = Postgres::start() else {
        return;
    };
    let with = |url: PathBuf, user: &str, more: &str| {
        let text = url.display().to_string();
        PathBuf::from(text.replace("assay@", &format!("{user}:s3cret@")) + more)
    };
    let refused = |url: &Path| {
        let error = Store::open(url).map(|_| ()).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(!text.contains("s3cret"), "{text}");
        error
    };
    let url = server.url("postgres");
    let error = refused(&with(server.url("nowhere"), "assay", ""));
    assert!(error.to_string().contains("createdb"), "{error}");
    // A user who may read nothing of it.
    server.sql("postgres", "CREATE ROLE guest LOGIN");
    let error = refused(&with(url.clone(), "guest", ""));
    assert!(error.to_string().contains("CREATE"), "{error}");
    // A standby, or one that was set so.
    let read_only = "&options=-c%20default_transaction_read_only%3Don";
    let error = refused(&with(url.clone(), "assay", read_only));
    assert!(error.to_string().contains("takes writes"), "{error}");
    // A newer assay's is left as it is.
    drop(Store::open(&url).unwrap());
    server.sql("postgres", "UPDATE assay.version SET version = 99");
    assert!(matches!(
        refused(&with(url.clone(), "assay", "")),
        StoreError::Newer { found: 99, .. }
    ));
    server.down();
    let error = refused(&with(url, "assay", ""));
    assert!(matches!(error, StoreError::Postgres { .. }), "{error:?}");
}

//! Tests removing old observations and runs, in a file and in PostgreSQL.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

mod common;

use assay_model::Machine;
use assay_model::run::RunState;
use assay_store::{Observer, PrunableKind, PruneRule, Store, StoreError};
use assay_testing::servers::postgres::Postgres;
use jiff::{SignedDuration, Timestamp};

fn day(number: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_hours(24 * number)
}

fn machine(digit: &str) -> Machine {
    Machine {
        id: digit.repeat(32),
        name: Some(format!("box{digit}")),
    }
}

/// Fills a store with ten days of observations of two machines and with ten runs. The newest run is still running.
fn fill(mut store: Store) -> Store {
    for number in 0..10 {
        for (digit, by) in [
            ("a", Observer::Why),
            ("a", Observer::Net),
            ("b", Observer::Why),
        ] {
            let mut one = common::observation(&format!("{number}{digit}{}", by.name()));
            one.by = by;
            (one.started, one.ended) = (day(number), day(number));
            one.document = serde_json::json!({ "text": random_text(20_000, number) });
            store
                .import_observation(&one, Some(&machine(digit)))
                .unwrap();
        }
        let mut run = common::run(&format!("c{number}").repeat(16));
        run.started = day(number);
        run.ended = Some(day(number));
        run.state = RunState::Complete;
        if number < 2 {
            run.state = RunState::Running;
        }
        let samples = [common::sample(0, 1.0), common::sample(1, 2.0)];
        store
            .import_run(&run, &samples, Some(&machine("a")))
            .unwrap();
    }
    store.put_study(&common::study("dddd", "cache")).unwrap();
    store
        .create_trial(&mut common::trial(&"ee".repeat(16)))
        .unwrap();
    store
}

/// Returns a text that does not compress.
fn random_text(length: usize, seed: i64) -> String {
    let mut state = u64::try_from(seed).unwrap() + 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    };
    (0..length).map(|_| next()).collect()
}

fn check_pruning(store: Store) {
    let mut store = fill(store);
    let rule = |days, keep| PruneRule {
        before: day(days),
        keep,
    };
    let kind = PrunableKind::Observations;
    // A rule removes by age, but not the newest of a verb on a machine.
    let old = store.list_prunable(kind, rule(7, 2)).unwrap();
    assert_eq!(old.len(), 3 * 7);
    assert!(old.iter().all(|one| one.started < day(7)));
    assert!(old.is_sorted_by_key(|one| one.started));
    assert!(
        old.iter()
            .all(|one| one.bytes > 5_000 && one.bytes < 20_000)
    );
    let all_but = store.list_prunable(kind, rule(100, 2)).unwrap();
    assert_eq!(all_but.len(), 3 * 8);
    assert!(store.list_prunable(kind, rule(-1, 0)).unwrap().is_empty());
    assert_eq!(store.prune(kind, &old).unwrap(), 21);
    assert_eq!(
        store.prune(kind, &old).unwrap(),
        0,
        "another process was faster"
    );
    let left = store.observations(100).unwrap();
    assert_eq!(left.len(), 9);
    assert!(left.iter().all(|row| row.started >= day(7)));
    for row in &left {
        store.observation(row.id).unwrap();
    }
    // Two runs have not ended, and one is the newest.
    let runs = store
        .list_prunable(PrunableKind::Runs, rule(100, 1))
        .unwrap();
    assert_eq!(runs.len(), 7);
    let gone = assay_model::RunId(runs[0].id);
    assert!(runs[0].bytes > store.samples(gone).unwrap().len() as u64);
    assert_eq!(store.prune(PrunableKind::Runs, &runs).unwrap(), 7);
    assert!(matches!(store.run(gone), Err(StoreError::Missing { .. })));
    assert!(store.samples(gone).unwrap().is_empty());
    assert_eq!(store.runs().unwrap().len(), 3);
    assert_eq!(store.trials().unwrap().len(), 1);
    assert_eq!(store.studies().unwrap().len(), 1);
}

#[test]
fn old_records_go_from_a_file_which_becomes_smaller() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    check_pruning(Store::open(&path).unwrap());
    let mut store = Store::open(&path).unwrap();
    let length = || std::fs::metadata(&path).unwrap().len();
    let before = length();
    let smaller = store.compact().unwrap().unwrap();
    assert!(smaller > 100_000, "{smaller}");
    assert!(length() <= before - smaller, "{before} {}", length());
    assert_eq!(store.compact().unwrap(), Some(0), "there is nothing more");
    assert_eq!(store.observations(100).unwrap().len(), 9);
    // The number of a removed record is not used again.
    let newest = store.observations(1).unwrap()[0].id;
    let next = store.add_observation(&common::observation("ffff")).unwrap();
    assert!(next > newest);
}

#[test]
fn a_file_that_somebody_reads_is_compacted_later() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.db");
    let mut store = fill(Store::open(&path).unwrap());
    let rule = PruneRule {
        before: day(100),
        keep: 1,
    };
    let old = store
        .list_prunable(PrunableKind::Observations, rule)
        .unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM observation")
        .unwrap();
    store.prune(PrunableKind::Observations, &old).unwrap();
    store.compact().unwrap();
    let seen: i64 = reader
        .query_row("SELECT count(*) FROM observation", [], |row| row.get(0))
        .unwrap();
    assert_eq!(seen, 30, "a reader sees its snapshot");
    reader.execute_batch("COMMIT").unwrap();
    assert_eq!(store.observations(100).unwrap().len(), 3);
}

#[test]
fn old_records_go_from_postgresql() {
    let Some(server) = Postgres::start() else {
        return;
    };
    let store = Store::open(&server.url("postgres")).unwrap();
    check_pruning(store);
    let mut store = Store::open(&server.url("postgres")).unwrap();
    assert_eq!(store.compact().unwrap(), None);
}

//! Tests that study runs and observations are stored completely, and are found by their usual names.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

mod common;

use assay_model::study::Observation;
use assay_store::{ObservationId, Observer, Store, StoreError, StudyId};

#[test]
fn what_was_observed_is_read_back_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("s.db")).unwrap();
    let mut one = common::study("aaaa1111", "cache");
    let id = store.put_study(&one).unwrap();
    one.observations.push(Observation {
        configuration: "a".to_owned(),
        figure: "f".to_owned(),
        round: 1,
        value: 0.1 + 0.2,
        doubts: vec!["too-short".to_owned()],
        void: true,
    });
    one.complete = true;
    assert_eq!(store.put_study(&one).unwrap(), id);
    assert_eq!(store.study(id).unwrap(), one);
    assert_eq!(store.studies().unwrap(), [(id, one)]);
}

#[test]
fn a_run_is_found_by_number_uid_age_and_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("s.db")).unwrap();
    insta::assert_snapshot!(store
            .resolve_study("last")
            .unwrap_err()
            .to_string(), @"there is no study `last`; none was carried out yet: `assay study`");
    for (uid, name) in [
        ("aaaa1111", "cache"),
        ("bbbb2222", "optane"),
        ("cccc3333", "cache"),
    ] {
        store.put_study(&common::study(uid, name)).unwrap();
    }
    for (asked, id) in [
        ("1", 1),
        ("last", 3),
        ("last~1", 2),
        ("bbbb", 2),
        ("cache", 3),
    ] {
        assert_eq!(store.resolve_study(asked).unwrap(), StudyId(id), "{asked}");
    }
    for asked in ["9", "nothing", "last~3", "\u{1b}[31m"] {
        let error = store.resolve_study(asked).unwrap_err().to_string();
        assert!(
            error.contains("--list") && !error.contains('\u{1b}'),
            "{error}"
        );
    }
}

#[test]
fn an_observation_is_read_back_and_listed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("s.db")).unwrap();
    let one = common::observation("aaaa1111");
    let id = store.add_observation(&one).unwrap();
    assert_eq!(store.observation(id).unwrap(), one);
    assert_eq!(store.resolve_observation("aaaa").unwrap(), id);
    let rows = store.observations(10).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0].subject, &rows[0].summary),
        (&one.subject, &one.summary)
    );
    assert!(!store.import_observation(&one, None).unwrap());
    assert!(store.observations(0).unwrap().is_empty());
    assert!(store.resolve_observation("last~1").is_err());
}

#[test]
fn last_counts_the_observations_of_a_verb_alone() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("s.db")).unwrap();
    let by_turns = [Observer::Why, Observer::Net, Observer::Why, Observer::Wifi];
    let mut add = |(number, by): (usize, &Observer)| {
        let mut one = common::observation(&format!("aaaa{number}"));
        one.by = *by;
        store.add_observation(&one).unwrap()
    };
    let ids: Vec<ObservationId> = by_turns.iter().enumerate().map(&mut add).collect();
    let of = |by, asked: &str| store.resolve_observation_of(by, asked).ok();
    assert_eq!(of(Observer::Why, "last"), Some(ids[2]));
    assert_eq!(of(Observer::Why, "last~1"), Some(ids[0]));
    assert_eq!(of(Observer::Net, "last"), Some(ids[1]));
    for (by, asked) in [(Observer::Why, "last~2"), (Observer::Net, "last~1")] {
        assert_eq!(of(by, asked), None, "{asked}");
    }
    // A number means one record in all verbs; the error lists those of the verb.
    assert_eq!(of(Observer::Why, "2"), Some(ids[1]));
    let error = store.resolve_observation_of(Observer::Net, "last~1");
    let StoreError::Missing { known, .. } = error.unwrap_err() else {
        panic!("another error");
    };
    assert!(known.contains('2') && !known.contains('1'), "{known}");
}

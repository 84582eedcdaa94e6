//! Runs of studies and observations: stored completely, and found by the usual names.
#![allow(
    clippy::disallowed_methods,
    reason = "tests work in directories of their own"
)]

mod common;

use assay_model::study::Observation;
use assay_store::{Store, StudyId};

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

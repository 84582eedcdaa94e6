//! Tests that trials are stored like runs: completely, with their slots, and found by their usual names.

mod common;

use assay_model::trial::{Side, Slot, TrialId, TrialState};
use assay_store::{Store, StoreError};

fn slot(pair: u32, side: Side, at: u32) -> Slot {
    Slot {
        pair,
        side,
        read_back: "128".to_owned(),
        sample: common::sample(at, 1000.0),
        doubts: vec![],
    }
}

#[test]
fn a_trial_comes_back_as_it_was_and_its_slots_in_the_order_of_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("assay.db");
    let mut store = Store::open(&path).unwrap();
    let mut one = common::trial("aaaa0001");
    store.create_trial(&mut one).unwrap();
    let slots = [
        slot(1, Side::Changed, 0),
        slot(1, Side::Now, 1),
        slot(2, Side::Now, 2),
        slot(2, Side::Changed, 3),
    ];
    for slot in slots.iter().rev() {
        store.add_slot(one.id, slot).unwrap();
    }
    one.state = TrialState::Complete;
    one.ended = Some(one.started);
    one.remarks.push("said later".to_owned());
    store.update_trial(&one).unwrap();
    drop(store);

    let store = Store::open_existing(&path).unwrap().unwrap();
    assert_eq!(store.trial(one.id).unwrap(), one);
    assert_eq!(store.slots(one.id).unwrap(), slots);
    assert_eq!(store.trials().unwrap(), [one.clone()]);
    assert_eq!(store.resolve_trial("last").unwrap(), one.id);
    assert_eq!(store.resolve_trial("aaaa").unwrap(), one.id);
}

#[test]
fn a_slot_measured_again_takes_the_place_of_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("assay.db")).unwrap();
    let mut one = common::trial("aaaa0001");
    store.create_trial(&mut one).unwrap();
    store.add_slot(one.id, &slot(1, Side::Now, 0)).unwrap();
    let again = slot(1, Side::Now, 7);
    store.add_slot(one.id, &again).unwrap();
    assert_eq!(store.slots(one.id).unwrap(), [again]);
}

#[test]
fn what_is_not_there_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&dir.path().join("assay.db")).unwrap();
    let none = store.resolve_trial("last").unwrap_err();
    assert!(matches!(none, StoreError::Missing { .. }), "{none}");
    insta::assert_snapshot!(none, @"there is no trial `last`; nothing was tried yet: `assay advice`");
    let orphan = store.add_slot(TrialId(9), &slot(1, Side::Now, 0));
    assert!(matches!(orphan, Err(StoreError::Missing { .. })));
    let gone = store.update_trial(&common::trial("aaaa0002"));
    assert!(matches!(gone, Err(StoreError::Missing { .. })));
}

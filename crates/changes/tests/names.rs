//! Tests that a file with two names is one setting.
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at the real machine behind the crate's back"
)]

mod common;

use assay_changes::{ChangeError, Foreign, Journal, Switch};
use assay_model::change::{ConfigLanguage, Setting};
use common::{Deadly, inside, sh};
use std::fs;
use std::path::Path;

fn workers(file: &Path) -> Setting {
    Setting::Config {
        file: file.to_str().unwrap().into(),
        language: ConfigLanguage::KeyValue,
        section: Vec::new(),
        key: "workers".into(),
        validate: Vec::new(),
        reload: Vec::new(),
    }
}

/// Two assay processes with different state directories, and a directory that is mounted twice.
#[test]
fn attack_one_file_by_two_names() {
    if !inside("attack_one_file_by_two_names") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let [etc, bound] = ["etc", "bound"].map(|name| place.path().join(name));
    for dir in [&etc, &bound] {
        fs::create_dir(dir).unwrap();
    }
    sh(&[
        "mount",
        "--bind",
        etc.to_str().unwrap(),
        bound.to_str().unwrap(),
    ]);
    let (here, there) = (etc.join("service.conf"), bound.join("service.conf"));
    fs::write(&here, "workers = 2\n").unwrap();
    let [ours, theirs] =
        ["ours", "theirs"].map(|name| Journal::open(&place.path().join(name)).unwrap());
    let host = Deadly::never().with_locks(place.path());
    let session = ours.begin("trial 1", "service").unwrap();
    let switch = Switch::open(&session, &host, &workers(&here)).unwrap();
    switch.set(Some("8")).unwrap();

    let other = theirs.begin("trial 2", "service").unwrap();
    let refused = Switch::open(&other, &host, &workers(&there)).err().unwrap();
    let busy = matches!(refused, ChangeError::Busy { .. });
    assert!(busy, "{refused}");

    // Killed: the changed value is not taken for the original under any name.
    std::mem::forget(switch);
    drop(session);
    let refused = Switch::open(&other, &host, &workers(&there)).err().unwrap();
    let pending = matches!(&refused, ChangeError::Pending { place: Some(_), .. });
    assert!(pending, "{refused}");
    assert_eq!(theirs.elsewhere(&host).unwrap().len(), 1, "told once");

    ours.recover(&host, Foreign::Leave).unwrap();
    assert_eq!(fs::read(&there).unwrap(), b"workers = 2\n");
    let switch = Switch::open(&other, &host, &workers(&there)).unwrap();
    assert_eq!(switch.set(Some("4")).unwrap(), "4");
    drop(switch);
    other.close(&host).unwrap();
    assert_eq!(fs::read(&here).unwrap(), b"workers = 2\n");
    assert_eq!(theirs.elsewhere(&host).unwrap(), []);
    sh(&["umount", bound.to_str().unwrap()]);
    assay_testing::attacked("one configuration file by two names", 2, 2);
}

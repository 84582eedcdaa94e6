//! Tests `assay pool` as a user runs it, on real trials of a store of 0.1 and on simulated bundles.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use assay_model::Machine;
use assay_model::trial::{Trial, TrialState};
use assay_pool::bundle::{Bundle, FORMAT, Pair, TrialEnd};
use assay_pool::{OwnerKey, read};
use assay_store::Store;
use assay_testing::attacked;
use common::schemas::{holds, json};
use common::{Home, Ran};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Private text in every field of a trial with words.
const PLANTED: &str = "SECRET-db7.example.org-10.9.8.7-S3Z9NX0K-alice";

/// Creates a home with real trials of a store of 0.1, assigned to a current page and with planted
/// private text.
fn home() -> Home {
    let home = Home::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../store/tests/fixtures");
    let packed = fs::read(fixtures.join("store-0.1.db.zst")).unwrap();
    let old = home.dir.path().join("old.db");
    fs::write(&old, zstd::decode_all(&packed[..]).unwrap()).unwrap();
    let old = Store::open(&old).unwrap();
    let machine = Machine {
        id: "ab".repeat(16),
        name: Some(PLANTED.to_owned()),
    };
    let store = Store::open(&home.dir.path().join("store.db")).unwrap();
    let mut store = store.on(Some(machine));
    let trials = old.trials().unwrap();
    assert!(!trials.is_empty());
    for (number, trial) in trials.iter().enumerate() {
        let mut trial = planted(trial);
        if number == 0 {
            trial.state = TrialState::Stopped;
        }
        let slots = old.slots(trials[number].id).unwrap();
        store.create_trial(&mut trial).unwrap();
        for mut slot in slots {
            slot.read_back = PLANTED.to_owned();
            slot.sample.target = PLANTED.to_owned();
            store.add_slot(trial.id, &slot).unwrap();
        }
    }
    home
}

/// Returns the trial as one of `noatime`, with private text in all facts, the target and the
/// remarks.
fn planted(trial: &Trial) -> Trial {
    let mut value = serde_json::to_value(trial).unwrap();
    for part in ["facts", "target"] {
        plant(&mut value[part]);
    }
    let mut planted: Trial = serde_json::from_value(value).unwrap();
    let catalogue = assay_advice::Catalogue::builtin().unwrap();
    let page = catalogue.get("noatime").unwrap();
    let plan = &mut planted.plan;
    plan.advice = page.id.clone();
    plan.title = page.title.clone();
    plan.predicts = page.predicts.clone();
    plan.target = format!("/srv/{PLANTED}");
    plan.parameters
        .insert("path".to_owned(), PLANTED.to_owned());
    planted.remarks.push(PLANTED.to_owned());
    planted.facts.known(
        "kernel.release",
        format!("6.1.0-{PLANTED}"),
        assay_model::FactKind::Runtime,
        "/proc",
    );
    planted
}

/// Replaces every text below `known`, `name` and the like by the private text.
fn plant(value: &mut Value) {
    match value {
        Value::Object(all) => {
            for (key, one) in all.iter_mut() {
                let words = ["known", "name", "fs_type", "mount_point", "mount_source"];
                match one {
                    Value::String(text) if words.contains(&key.as_str()) => {
                        *text = PLANTED.to_owned()
                    }
                    other => plant(other),
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(plant),
        _ => {}
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn pool(home: &Home, args: &[&str]) -> Ran {
    home.assay(&[&["pool"], args].concat())
}

#[test]
fn attack_no_word_of_a_machine_is_exported() {
    let home = home();
    let to = home.dir.path().join("mine.pool");
    let ran = pool(&home, &["export", "--to", text(&to), "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let bytes = fs::read(&to).unwrap();
    // The shown bytes are exactly the written ones.
    assert_eq!(ran.stdout.as_bytes(), bytes);
    let parts: Vec<&str> = PLANTED.split('-').collect();
    let machine = "ab".repeat(16);
    for part in parts.iter().copied().chain([PLANTED, machine.as_str()]) {
        assert!(!ran.stdout.contains(part), "{part}");
    }
    let uids = Store::open(&home.dir.path().join("store.db"))
        .unwrap()
        .trials()
        .unwrap();
    for trial in &uids {
        assert!(!ran.stdout.contains(&trial.uid));
    }
    attacked(
        "planted words in what a pool is given",
        parts.len() as u64 + 2,
        parts.len() as u64 + 2,
    );
    // All started trials are included, also stopped ones.
    let bundle = read(&bytes).unwrap();
    let told: Vec<_> = bundle.machines.iter().flat_map(|one| &one.trials).collect();
    assert_eq!(told.len(), uids.len());
    assert!(told.iter().any(|trial| trial.ended == TrialEnd::Stopped));
    assert!(told.iter().any(|trial| trial.effects().count() > 2));
    assert!(
        told.iter()
            .all(|trial| trial.kernel.as_deref() == Some("6.1"))
    );
    assert!(!bundle.simulated);
}

/// A store with a damaged trial: it is reported, and the others are exported.
#[test]
fn attack_a_damaged_trial_keeps_no_other_back() {
    let home = home();
    let whole = pool(&home, &["export"]);
    let count = |ran: &Ran| {
        let bundle = read(ran.stdout.as_bytes()).unwrap();
        bundle
            .machines
            .iter()
            .map(|one| one.trials.len())
            .sum::<usize>()
    };
    let mut store = Store::open(&home.dir.path().join("store.db")).unwrap();
    let mut damaged = store.trials().unwrap().remove(0);
    damaged.plan.first.pop();
    store.update_trial(&damaged).unwrap();
    drop(store);
    let rest = pool(&home, &["export"]);
    assert_eq!(rest.code, Some(0), "{}", rest.stderr);
    assert_eq!(count(&rest) + 1, count(&whole));
    let named = format!("trial {} is not in it", damaged.id);
    assert!(rest.stderr.contains(&named), "{}", rest.stderr);
    attacked("trials that the store holds half of", 1, 1);
}

#[test]
fn export_shows_and_writes_nothing_unasked() {
    let home = home();
    let shown = pool(&home, &["export"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(read(shown.stdout.as_bytes()).is_ok());
    assert_eq!(
        pool(&home, &["export"]).stdout,
        shown.stdout,
        "the same key"
    );
    let to = home.dir.path().join("mine.pool");
    let refused = pool(&home, &["export", "--to", text(&to)]);
    assert_eq!(refused.code, Some(2));
    assert!(!to.exists());
    let key = home.state().join("pool/key");
    assert_eq!(
        fs::metadata(&key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    // Other users could sign as this user.
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(pool(&home, &["export"]).code, Some(2));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    // A truncated key is not replaced silently.
    fs::write(&key, "12").unwrap();
    let cut = pool(&home, &["export"]);
    assert_eq!(cut.code, Some(2));
    assert!(cut.stderr.contains("pool/key"), "{}", cut.stderr);
    let empty = Home::new();
    assert_eq!(pool(&empty, &["export"]).code, Some(2));
    assert!(!empty.state().join("pool").exists());
}

/// Creates simulated bundles from a real one: other owners, shifted effects.
fn simulated(home: &Home, owners: u8) -> Vec<String> {
    let real = read(pool(home, &["export"]).stdout.as_bytes()).unwrap();
    let mut files = Vec::new();
    for owner in 1..=owners {
        let key = OwnerKey::of([owner; 32]).unwrap();
        let mut bundle = Bundle {
            format: FORMAT.to_owned(),
            owner: key.owner(),
            simulated: true,
            ..real.clone()
        };
        bundle.machines.truncate(1);
        bundle.machines[0].trials.truncate(1);
        let trial = &mut bundle.machines[0].trials[0];
        trial.plan.seed = u64::from(owner);
        trial.plan.both_same = false;
        trial.pairs = (0..12_i32)
            .map(|number| Pair::Effect(0.01 * f64::from(owner) + 0.002 * f64::from(number % 5)))
            .take(trial.plan.max_pairs as usize)
            .collect();
        let file = home.dir.path().join(format!("{owner}.pool"));
        fs::write(&file, key.write(&bundle).unwrap()).unwrap();
        files.push(text(&file).to_owned());
    }
    files
}

#[test]
fn what_others_gave_is_told_beside_the_advice() {
    let home = home();
    let files = simulated(&home, 6);
    let four: Vec<&str> = files[..4].iter().map(String::as_str).collect();
    let added = pool(&home, &[&["add"], &four[..]].concat());
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    let few = json(&pool(&home, &["show", "noatime", "--json"]).stdout);
    assert_eq!(few["pooled"][0]["owners"], 4);
    assert_eq!(few["pooled"][0]["effect"], Value::Null, "below five owners");
    for file in &files {
        assert_eq!(pool(&home, &["add", file]).code, Some(0));
    }
    let shown = pool(&home, &["show", "--json"]).stdout;
    holds(
        "pool",
        &shown,
        &["/pooled/0/effect/prediction", "/pooled/0/funnel"],
    );
    let shown = json(&shown);
    assert_eq!(shown["pooled"][0]["owners"], 6);
    assert_eq!(shown["pooled"][0]["simulated"], true);
    assert_eq!(
        shown["pooled"][0]["funnel"]["started"], 6,
        "a trial counts once"
    );
    let advice = home.assay(&["advice", "noatime"]);
    assert_eq!(advice.code, Some(0), "{}", advice.stderr);
    assert!(advice.stdout.contains("SIMULATED"), "{}", advice.stdout);
    assert!(advice.stdout.contains("Elsewhere"));
    assert!(advice.stdout.lines().all(|line| line.chars().count() <= 80));
    let advice = home.assay(&["advice", "noatime", "--json"]).stdout;
    holds("advice", &advice, &["/advice/0/elsewhere/0/effect"]);
    let plain = pool(&home, &["show", "noatime"]);
    assert!(
        plain.stdout.lines().all(|line| line.chars().count() <= 80),
        "{}",
        plain.stdout
    );

    let owner = OwnerKey::of([6; 32]).unwrap().owner();
    assert_eq!(
        pool(&home, &["remove", "ab"]).code,
        Some(2),
        "too few digits"
    );
    assert_eq!(pool(&home, &["remove", &"0".repeat(64)]).code, Some(2));
    assert_eq!(pool(&home, &["remove", &owner[..12]]).code, Some(0));
    let after = json(&pool(&home, &["show", "noatime", "--json"]).stdout);
    assert_eq!(after["pooled"][0]["owners"], 5);
}

#[test]
fn attack_what_is_added_is_checked_each_time() {
    let home = home();
    let files = simulated(&home, 2);
    let mut bytes = fs::read(&files[0]).unwrap();
    let place = bytes.len() / 2;
    bytes[place] ^= 1;
    let bad = home.dir.path().join("bad.pool");
    fs::write(&bad, &bytes).unwrap();
    let kept = home.dir.path().join("store.db.pool");
    for file in [
        text(&bad),
        "/dev/zero",
        "/dev/null",
        text(home.dir.path()),
        "/not/there",
    ] {
        let ran = pool(&home, &["add", file]);
        assert!(matches!(ran.code, Some(2 | 3)), "{file}: {}", ran.stderr);
    }
    assert!(!kept.exists());
    assert_eq!(pool(&home, &["add", &files[0]]).code, Some(0));
    // A killed assay left a partial file, and the disk flipped a bit of a bundle.
    fs::write(kept.join(".part"), "half").unwrap();
    assert_eq!(pool(&home, &["add", &files[1]]).code, Some(0));
    let names = || {
        let entries = fs::read_dir(&kept).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names
            .filter(|name| name.ends_with(".pool"))
            .collect::<Vec<_>>()
    };
    assert_eq!(names().len(), 2);
    assert!(!kept.join(".part").exists());
    let lost = kept.join(names().remove(0));
    fs::write(&lost, &bytes).unwrap();
    let shown = pool(&home, &["show", "--json"]);
    assert_eq!(shown.code, Some(0));
    assert!(shown.stderr.contains("left out"), "{}", shown.stderr);
    assert_eq!(json(&shown.stdout)["pooled"][0]["owners"], 1);
    // Two processes add the same bundle: it is stored once.
    let adds: Vec<_> = (0..4)
        .map(|_| home.command(&["pool", "add", &files[1]]).spawn().unwrap())
        .collect();
    for mut add in adds {
        assert!(add.wait().unwrap().success());
    }
    assert!(names().len() <= 2);
    attacked(
        "bundles that are changed, endless or half written, added to a pool",
        8,
        8,
    );
}

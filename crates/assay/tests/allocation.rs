//! Runs the studies of allocation in their smallest forms: real pools in a guest, real btrfs on loop devices.
#![allow(clippy::disallowed_methods, reason = "tests drive the real program")]

mod common;

use common::{Home, guests, root};
use serde_json::Value;

/// Runs a study with a smaller quick form. Returns a function that gives the values of a figure.
fn study(name: &str, smaller: &[(&str, &str)]) -> impl Fn(&str, &str) -> Vec<f64> {
    let home = Home::new();
    let file = format!("{}/../../studies/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let mut text = std::fs::read_to_string(file).unwrap();
    for (from, to) in smaller {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let file = home.dir.path().join("small.toml");
    std::fs::write(&file, text).unwrap();
    let target = home.target();
    let words = [
        "study",
        file.to_str().unwrap(),
        target.path().to_str().unwrap(),
        "--quiet",
        "--json",
    ];
    let ran = home.assay(&words);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let left: Vec<_> = std::fs::read_dir(target.path()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    move |configuration, figure| {
        let all = observations(&found);
        let ours = all
            .iter()
            .filter(|one| one["configuration"] == configuration && one["figure"] == figure);
        ours.map(|one| one["value"].as_f64().unwrap()).collect()
    }
}

fn observations(found: &Value) -> &Vec<Value> {
    let run = found.get("run").unwrap_or(found);
    run["observations"]
        .as_array()
        .unwrap_or_else(|| panic!("{found:#}"))
}

#[test]
fn writes_follow_free_space() {
    let Some(_one) = guests::image_for_long() else {
        return;
    };
    let value = study(
        "write-distribution",
        &[
            ("rounds = 3", "rounds = 1"),
            ("\"one-to-two\", \"one-to-four\"", "\"one-to-four\""),
            (", \"slow\", \"slow-before-0.7\", \"added\"", ""),
            ("write = \"96M\"", "write = \"32M\""),
        ],
    );
    let share = value("one-to-four", "share");
    assert_eq!(share.len(), 1);
    assert!((60.0..95.0).contains(&share[0]), "{share:?}");
    let planned = value("one-to-four", "planned");
    assert_eq!(planned.len(), 1);
    assert!((60.0..95.0).contains(&planned[0]), "{planned:?}");
}

#[test]
fn a_clone_that_was_promoted_outlives_its_origin() {
    let Some(_one) = guests::image_for_long() else {
        return;
    };
    let value = study(
        "clone-divergence",
        &[
            (
                "rounds = 1",
                "rounds = 1\nconfigurations = [\"diverged\", \"promoted\", \"freed\"]",
            ),
            ("data = \"32M\"", "data = \"16M\""),
        ],
    );
    let together = value("diverged", "together")[0];
    assert!((2.9..3.1).contains(&together), "{together}");
    assert_eq!(value("diverged", "snapshot-refused"), [1.0]);
    // The planner's prediction of a promotion equals the measurement.
    let off = value("promoted", "used-clone")[0] - value("promoted", "planned-clone")[0];
    assert!(off.abs() < 0.01, "{off}");
    assert_eq!(value("freed", "clone-there"), [1.0]);
    assert!(value("freed", "together")[0] < 1.05);
}

#[test]
fn unequal_disks_hold_what_the_planner_says() {
    if !root() {
        return;
    }
    let Some(_one) = guests::image_for_long() else {
        return;
    };
    let value = study(
        "mutt-drives",
        &[(
            "\"raid1\", \"raid1-three\", \"raid1c3\", \"raid10\", \"raid5\", \"dies\", \"grows\"",
            "\"raid1\", \"dies\", \"zfs-raidz1\"",
        )],
    );
    let (stored, planned) = (value("raid1", "stored")[0], value("raid1", "planned")[0]);
    assert!((stored / planned - 1.0).abs() < 0.02, "{stored} {planned}");
    for (figure, what) in [("intact", "before"), ("mended", "after it was replaced")] {
        let found = value("dies", figure);
        assert!(
            !found.is_empty() && found.iter().all(|one| *one == 1.0),
            "{what}: {found:?}"
        );
    }
    let raidz = value("zfs-raidz1", "stored")[0];
    assert!((15.0..31.0).contains(&raidz), "{raidz}");
}

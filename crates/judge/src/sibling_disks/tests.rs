//! Tests with simulated disks: equal disks are not reported, a slow disk is found, and an undecidable case is reported
//! as undecided.

use super::*;
use assay_model::siblings::Siblings;
use model::{EQUAL, Model, ends, watch};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;

/// Model of the simulated disks, shared with `bench/disks/run`.
#[path = "../../../../bench/disks/model.rs"]
mod model;

#[test]
fn equal_disks_are_left_in_peace() {
    // A thousand watches each; `bench/disks/run` simulates more. With a spread of 1.5, a third of
    // all windows deviates by more than a factor of four either way; with `inherits` 0.9 a state
    // lasts for ten windows, with 0.97 for half of the watch.
    for (disks, spread, inherits) in [
        (2, 0.3, 0.0),
        (2, 1.5, 0.0),
        (3, 0.5, 0.0),
        (8, 1.5, 0.0),
        (2, 0.5, 0.9),
        (3, 0.3, 0.9),
        (8, 0.5, 0.9),
        (3, 1.5, 0.5),
        (3, 1.0, 0.97),
    ] {
        let model = Model {
            disks,
            spread,
            inherits,
            ..EQUAL
        };
        let ends = ends(model, 1000, 1);
        assert!(ends.accused <= 2.0 * FALSE_ALARM, "{model:?}: {ends:?}");
    }
    // A state of ten seconds, and as much noise beside it.
    let model = Model {
        disks: 2,
        spread: 0.7,
        inherits: 0.9,
        own: 0.7,
        ..EQUAL
    };
    let ends = ends(model, 2000, 1);
    assert!(ends.accused <= 2.0 * FALSE_ALARM, "{ends:?}");
}

#[test]
fn a_slow_disk_is_found_and_no_other() {
    // In the last two cases a state lasts for two windows and for five windows.
    for (disks, slow, spread, inherits) in [
        (2, 3.0, 0.3, 0.0),
        (3, 3.0, 0.3, 0.0),
        (8, 3.0, 0.4, 0.0),
        (2, 5.0, 0.5, 0.0),
        (2, 5.0, 0.15, 0.5),
        (2, 5.0, 0.1, 0.8),
    ] {
        let model = Model {
            disks,
            slow,
            spread,
            inherits,
            ..EQUAL
        };
        let ends = ends(model, 100, 2);
        assert!(ends.found > 0.8, "{model:?}: {ends:?}");
        assert!(
            ends.accused - ends.found <= FALSE_ALARM,
            "{model:?}: {ends:?}"
        );
    }
    // A disk that takes 1.5 times as long does not matter, however certain the difference is.
    let model = Model {
        slow: 1.5,
        spread: 0.05,
        ..EQUAL
    };
    assert!(ends(model, 500, 3).accused <= FALSE_ALARM);
}

#[test]
fn a_slow_disk_is_not_cleared() {
    // With lasting states a slow disk is found or the result is undecided; equal disks are still cleared if
    // their noise is small.
    for (spread, inherits) in [(0.5, 0.9), (1.0, 0.97), (1.5, 0.0)] {
        for disks in [2, 3, 8] {
            let model = Model {
                disks,
                spread,
                inherits,
                slow: 3.0,
                ..EQUAL
            };
            let ends = ends(model, 100, 7);
            assert!(ends.cleared <= MISSED, "{model:?}: {ends:?}");
        }
    }
    assert!(ends(EQUAL, 100, 8).cleared > 0.9);
}

#[test]
fn a_mirror_that_is_slow_in_every_window_is_accused() {
    // The disk is four to seven times slower in each window, in lasting states. Neighbouring ratios are
    // correlated, but no window contradicts the result.
    let mut windows = Vec::new();
    for at in 0..30 {
        let ms = |disk: u64| if disk == 0 { 40 } else { 160 + 12 * (at / 3) };
        let delta = |disk: u64| DeviceDelta {
            name: format!("vd{disk}"),
            writes: 20,
            write_ms: ms(disk),
            ..DeviceDelta::default()
        };
        windows.push(vec![delta(0), delta(1)]);
    }
    let siblings = Siblings {
        name: "tank mirror-0".to_owned(),
        disks: vec!["vd0".to_owned(), "vd1".to_owned()],
    };
    let found = compare_siblings(&[Watched { siblings, windows }]);
    assert!(
        matches!(found[0].finding, SlowDisk::Slow { at: 1, .. }),
        "{found:?}"
    );
}

/// Returns a recording of the two disks of a mirror. The first lines of the file describe how it was made.
fn recorded() -> Watched {
    let text = include_str!("../../fixtures/disks/mirror-one-throttled.txt");
    let window = |line: &str| -> Vec<DeviceDelta> {
        let counts: Vec<u64> = line
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        let delta = |name: &str, at: usize| DeviceDelta {
            name: name.to_owned(),
            writes: counts[at],
            write_ms: counts[at + 1],
            ..DeviceDelta::default()
        };
        vec![delta("vdb", 0), delta("vdc", 2)]
    };
    Watched {
        siblings: Siblings {
            name: "study mirror-0".to_owned(),
            disks: vec!["vdb".to_owned(), "vdc".to_owned()],
        },
        windows: text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(window)
            .collect(),
    }
}

#[test]
fn a_throttled_half_of_a_mirror_is_found_in_a_minute() {
    let watched = recorded();
    assert_eq!(watched.windows.len(), 60);
    let found = compare_siblings(&[watched]);
    assert!(
        matches!(found[0].finding, SlowDisk::Slow { at: 0, .. }),
        "{found:?}"
    );
}

#[test]
fn a_large_difference_that_changes_from_window_to_window_is_found() {
    // Forty times slower on average, from 2 to 1,000 times, like a throttled disk of a raidz.
    let model = Model {
        windows: 40,
        slow: 40.0,
        spread: 1.0,
        ms: 4.0,
        ..EQUAL
    };
    let ends = ends(model, 100, 12);
    assert!(ends.found > 0.9, "{ends:?}");
}

#[test]
fn disks_that_take_turns_are_compared_with_those_that_work() {
    // A mirror of three disks of which two work at a time.
    let model = Model {
        active: 2,
        slow: 5.0,
        spread: 0.3,
        ..EQUAL
    };
    let slow = ends(model, 100, 9);
    assert!(slow.found > 0.8, "{slow:?}");
    let equal = ends(Model { slow: 1.0, ..model }, 1000, 10);
    assert!(equal.accused <= FALSE_ALARM, "{equal:?}");
    // A disk without requests must not be cleared.
    let mut idle = watch(EQUAL, &mut ChaCha8Rng::seed_from_u64(11));
    for window in &mut idle.windows {
        window.truncate(2);
    }
    let found = compare_siblings(&[idle]);
    assert_eq!(found[0].disks[2].windows, 0);
    assert!(
        matches!(found[0].finding, SlowDisk::CannotTell { at: 2 }),
        "{found:?}"
    );
}

#[test]
fn little_work_accuses_nobody() {
    let model = Model {
        windows: 5,
        slow: 10.0,
        ..EQUAL
    };
    let found = compare_siblings(&[watch(model, &mut ChaCha8Rng::seed_from_u64(4))]);
    assert!(matches!(found[0].finding, SlowDisk::TooLittle { needed } if needed > 5));
    // Disks of 20 µs and 60 µs: the kernel counts milliseconds, which cannot distinguish them.
    let model = Model {
        ms: 0.02,
        slow: 3.0,
        requests: 8,
        spread: 0.1,
        ..EQUAL
    };
    assert!(ends(model, 200, 5).accused <= FALSE_ALARM);
}

#[test]
fn windows_without_work_for_two_do_not_count() {
    let mut watched = watch(EQUAL, &mut ChaCha8Rng::seed_from_u64(6));
    // With one of three disks idle or missing, the other two are compared. With two idle, nothing is compared.
    watched.windows[0][1].writes = 0;
    watched.windows[1].remove(2);
    watched.windows[2][1].writes = 0;
    watched.windows[2][2].writes = 0;
    let found = compare_siblings(&[watched.clone()]);
    assert_eq!((found.len(), found[0].windows), (1, 59));
    let windows: Vec<u32> = found[0].disks.iter().map(|disk| disk.windows).collect();
    assert_eq!(windows, [59, 58, 58]);
    for window in &mut watched.windows {
        window.clear();
    }
    assert!(compare_siblings(&[watched.clone()]).is_empty());
    watched.siblings.disks.truncate(1);
    assert!(compare_siblings(&[watched]).is_empty());
}

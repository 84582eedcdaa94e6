//! Simulated disks: equal ones are left in peace, a slow one is found.

use super::*;
use assay_model::siblings::Siblings;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// Uniform over 0..1.
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (u, v) = (uniform(random).max(1e-12), uniform(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// How simulated disks behave.
#[derive(Clone, Copy)]
struct Model {
    disks: usize,
    windows: usize,
    /// Requests of a window, at most.
    requests: u64,
    /// Standard deviation of the logarithm of a window's latency.
    spread: f64,
    /// Share of it that a window inherits from the one before.
    inherits: f64,
    /// How many times slower the first disk is.
    slow: f64,
    /// Milliseconds of a request.
    ms: f64,
}

const EQUAL: Model = Model {
    disks: 3,
    windows: 60,
    requests: 40,
    spread: 0.5,
    inherits: 0.0,
    slow: 1.0,
    ms: 8.0,
};

fn watch(model: Model, random: &mut ChaCha8Rng) -> Watched {
    let names: Vec<String> = (0..model.disks).map(|at| format!("vd{at}")).collect();
    let mut state = vec![0.0; model.disks];
    let mut windows = Vec::new();
    for _ in 0..model.windows {
        let load = 4 + random.next_u64() % model.requests;
        let window = names.iter().zip(&mut state).enumerate();
        let window = window.map(|(at, (name, state))| {
            let fresh = (1.0 - model.inherits * model.inherits).sqrt();
            *state = *state * model.inherits + normal(random) * fresh;
            let slow = if at == 0 { model.slow } else { 1.0 };
            let ms = load as f64 * model.ms * slow * (*state * model.spread).exp();
            DeviceDelta {
                name: name.clone(),
                writes: load,
                write_ms: ms as u64,
                ..DeviceDelta::default()
            }
        });
        windows.push(window.collect());
    }
    Watched {
        siblings: Siblings {
            name: "tank".to_owned(),
            disks: names,
        },
        windows,
    }
}

/// Share of watches that accuse a disk, and share of those that accuse the first one.
fn accused(model: Model, watches: u32, seed: u64) -> (f64, f64) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut any, mut first) = (0, 0);
    for _ in 0..watches {
        for found in judge(&[watch(model, &mut random)]) {
            if let SlowDisk::Slow { at, .. } = found.finding {
                any += 1;
                first += u32::from(at == 0);
            }
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(watches);
    (share(any), share(first))
}

#[test]
fn equal_disks_are_left_in_peace() {
    // 27,000 watches in all. A spread of 1.5 means that a third of all windows are off more than
    // fourfold either way; `inherits` 0.9 means that such a state lasts for ten windows, 0.97 for
    // half of the watch.
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
        let (any, _) = accused(model, 3000, 1);
        assert!(any <= FALSE_ALARM, "{disks} {spread} {inherits}: {any}");
    }
}

#[test]
fn a_slow_disk_is_found_and_no_other() {
    for disks in [2, 3, 8] {
        let model = Model {
            disks,
            slow: 4.0,
            ..EQUAL
        };
        let (any, first) = accused(model, 500, 2);
        assert!(first > 0.99, "{disks}: {first}");
        assert!(any - first <= FALSE_ALARM, "{disks}: {any}");
    }
    // Half as slow again matters to nobody, however sure it is.
    let model = Model {
        slow: 1.5,
        spread: 0.05,
        ..EQUAL
    };
    assert!(accused(model, 500, 3).0 <= FALSE_ALARM);
}

#[test]
fn little_work_accuses_nobody() {
    let model = Model {
        windows: 5,
        slow: 10.0,
        ..EQUAL
    };
    let found = judge(&[watch(model, &mut ChaCha8Rng::seed_from_u64(4))]);
    assert!(matches!(found[0].finding, SlowDisk::TooLittle { needed } if needed > 5));
    // A disk of 20 µs and one of 60 µs: the kernel's milliseconds cannot tell them apart.
    let model = Model {
        ms: 0.02,
        slow: 3.0,
        requests: 8,
        spread: 0.1,
        ..EQUAL
    };
    assert!(accused(model, 200, 5).0 <= FALSE_ALARM);
}

#[test]
fn windows_without_work_for_all_do_not_count() {
    let mut watched = watch(EQUAL, &mut ChaCha8Rng::seed_from_u64(6));
    watched.windows[0][1].writes = 0;
    watched.windows[1].remove(2);
    let found = judge(&[watched.clone()]);
    assert_eq!((found.len(), found[0].windows), (1, 58));
    for window in &mut watched.windows {
        window.clear();
    }
    assert!(judge(&[watched.clone()]).is_empty());
    watched.siblings.disks.truncate(1);
    assert!(judge(&[watched]).is_empty());
}

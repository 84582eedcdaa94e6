//! Simulated disks that share work. Shared with the tests of the rule.

use super::compare_siblings;
use assay_model::sample::DeviceDelta;
use assay_model::siblings::{Siblings, SlowDisk, Watched};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// How simulated disks behave.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    /// Disks of the group.
    pub disks: usize,
    /// Windows of the watch.
    pub windows: usize,
    /// Requests of a window, at most.
    pub requests: u64,
    /// Standard deviation of the logarithm of a window's latency.
    pub spread: f64,
    /// Correlation of a window's state with the one before.
    pub inherits: f64,
    /// Standard deviation of what each window has of its own beside such a state.
    pub own: f64,
    /// How many times slower the first disk is.
    pub slow: f64,
    /// Milliseconds of a request.
    pub ms: f64,
    /// Disks that work in each window, drawn anew; 0 for all.
    pub active: usize,
    /// One window in a hundred begins ten in which a disk is eight times slower: it cleans up.
    pub cleans: bool,
}

/// Three equal disks watched for a minute.
pub const EQUAL: Model = Model {
    disks: 3,
    windows: 60,
    requests: 40,
    spread: 0.5,
    inherits: 0.0,
    own: 0.0,
    slow: 1.0,
    ms: 8.0,
    active: 0,
    cleans: false,
};

/// Shares of watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ends {
    /// A disk was accused.
    pub accused: f64,
    /// It was the first one, which is the slow one where there is one.
    pub found: f64,
    /// All were cleared.
    pub cleared: f64,
}

/// Uniform over 0..1.
fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (u, v) = (uniform(random).max(1e-12), uniform(random));
    (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// A disk of a simulation: its state, and the windows for which it still cleans up.
#[derive(Clone, Copy)]
struct State {
    level: f64,
    cleans: u32,
}

/// One watch.
pub fn watch(model: Model, random: &mut ChaCha8Rng) -> Watched {
    let names: Vec<String> = (0..model.disks).map(|at| format!("vd{at}")).collect();
    // The first window is no calmer than the others.
    let start = |random: &mut ChaCha8Rng| State {
        level: normal(random),
        cleans: 0,
    };
    let mut states: Vec<State> = (0..model.disks).map(|_| start(random)).collect();
    let fresh = (1.0 - model.inherits * model.inherits).sqrt();
    let mut windows = Vec::new();
    for _ in 0..model.windows {
        let load = 4 + random.next_u64() % model.requests;
        let mut order: Vec<(u64, usize)> =
            (0..model.disks).map(|at| (random.next_u64(), at)).collect();
        order.sort_unstable();
        let works = |at: usize| {
            let rank = order.iter().position(|one| one.1 == at).unwrap_or_default();
            model.active == 0 || rank < model.active
        };
        let mut window = Vec::new();
        for (at, state) in states.iter_mut().enumerate() {
            if model.cleans && state.cleans == 0 && uniform(random) < 0.01 {
                state.cleans = 10;
            }
            let cleaning = if state.cleans > 0 { 8.0 } else { 1.0 };
            state.cleans = state.cleans.saturating_sub(1);
            let slow = if at == 0 { model.slow } else { 1.0 };
            let level = state.level * model.spread + normal(random) * model.own;
            let latency = model.ms * slow * cleaning * level.exp();
            state.level = state.level * model.inherits + normal(random) * fresh;
            let writes = if works(at) { load } else { 0 };
            window.push(DeviceDelta {
                name: names[at].clone(),
                writes,
                write_ms: (writes as f64 * latency) as u64,
                ..DeviceDelta::default()
            });
        }
        windows.push(window);
    }
    Watched {
        siblings: Siblings {
            name: "tank".to_owned(),
            disks: names,
        },
        windows,
    }
}

/// How so many watches end.
pub fn ends(model: Model, watches: u32, seed: u64) -> Ends {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut ends = Ends::default();
    let one = 1.0 / f64::from(watches);
    for _ in 0..watches {
        for found in compare_siblings(&[watch(model, &mut random)]) {
            match found.finding {
                SlowDisk::Slow { at, .. } => {
                    ends.accused += one;
                    ends.found += if at == 0 { one } else { 0.0 };
                }
                SlowDisk::Alike => ends.cleared += one,
                SlowDisk::CannotTell { .. } | SlowDisk::TooLittle { .. } => {}
            }
        }
    }
    ends
}

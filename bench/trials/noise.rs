//! Noise to try the rule on: made, and recorded. Shared with the tests of the rule.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::TAU;

const DIRECT: &str = include_str!("../../crates/judge/fixtures/noise/direct_qd16.jsonl");
const FSYNC: &str = include_str!("../../crates/judge/fixtures/noise/buffered_fsync.jsonl");
/// Recorded slots that stay together when the record is drawn from: what hangs together in time
/// must still do so.
const BLOCK: usize = 10;

/// Noise of the slots of a trial.
#[derive(Clone, Debug)]
pub enum Noise {
    /// Independent, log-normal, with this coefficient of variation.
    Even(f64),
    /// 5 % of variation; over the trial the machine slows down by 30 %; one slot in 20 takes two to
    /// five times as long.
    DriftAndOutliers,
    /// Blocks of a record, in logarithms, drawn with replacement (circular block bootstrap).
    Recorded(Vec<f64>),
}

/// The records: 4 KiB random writes on a shared virtual machine.
pub fn direct() -> Noise {
    recorded(DIRECT)
}

/// The same with an fsync after each; it collapses in the middle.
pub fn fsync() -> Noise {
    recorded(FSYNC)
}

fn recorded(lines: &str) -> Noise {
    let iops = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        record["iops"].as_f64()
    };
    Noise::Recorded(lines.lines().filter_map(iops).map(f64::ln).collect())
}

impl Noise {
    /// ln of what each slot measures, in order.
    fn slots(&self, random: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
        match self {
            Self::Even(variation) => {
                let sd = variation.powi(2).ln_1p().sqrt();
                (0..n).map(|_| sd * normal(random)).collect()
            }
            Self::DriftAndOutliers => (0..n)
                .map(|at| {
                    let drift = 0.7f64.ln() * at as f64 / n as f64;
                    let slow = match random.random::<f64>() < 0.05 {
                        true => -(2.0 + 3.0 * random.random::<f64>()).ln(),
                        false => 0.0,
                    };
                    drift + slow + 0.05 * normal(random)
                })
                .collect(),
            Self::Recorded(record) => {
                let mut slots = Vec::with_capacity(n + BLOCK);
                while slots.len() < n {
                    let from = random.random_range(0..record.len());
                    slots.extend((from..from + BLOCK).map(|at| record[at % record.len()]));
                }
                slots.truncate(n);
                slots
            }
        }
    }

    /// ln of what A and B of so many pairs measure, each in an order by a coin, when the change has
    /// this effect (log ratio).
    pub fn work(&self, random: &mut ChaCha8Rng, n: usize, effect: f64) -> Vec<[f64; 2]> {
        let slots = self.slots(random, 2 * n);
        slots
            .chunks_exact(2)
            .map(|pair| match random.random::<bool>() {
                true => [pair[1], effect + pair[0]],
                false => [pair[0], effect + pair[1]],
            })
            .collect()
    }

    /// The log ratios of such pairs.
    #[cfg_attr(not(test), allow(dead_code, reason = "the tests of the rule use it"))]
    pub fn pairs(&self, random: &mut ChaCha8Rng, n: usize, effect: f64) -> Vec<f64> {
        let work = self.work(random, n, effect);
        work.iter().map(|[a, b]| b - a).collect()
    }
}

/// A standard normal number (Box and Muller 1958).
pub fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (TAU * random.random::<f64>()).cos()
}

//! How often the intervals of a pool hold what they promise, over simulated fleets, and a simulated set of
//! bundles to look at. See `bench/fleet/pool`.
#![allow(clippy::disallowed_methods, reason = "a benchmark writes its table")]

#[path = "../book.rs"]
mod book;

use assay_pool::OwnerKey;
use assay_pool::bundle::{Bundle, BundleMachine, BundlePlan, BundleTrial, FORMAT, Pair, TrialEnd};
use assay_pool::stats::{MeasuredEffect, estimate};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF as _, Normal, StudentsT};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const PAGE: &str = "docs/src/pool.md";

/// A normal number.
fn normal(random: &mut ChaCha8Rng) -> f64 {
    let (a, b): (f64, f64) = (random.random(), random.random());
    (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// How a fleet is made.
struct Shape {
    owners: usize,
    machines_of_each: usize,
    /// Standard deviation of the log ratio between owners, and between machines of one.
    between_owners: f64,
    between_machines: f64,
}

const MEAN: f64 = 0.04;

/// The pairs of a machine: 10 to 60 with a noise of 1 to 20 %, which its variance is estimated from.
fn pairs(random: &mut ChaCha8Rng, truth: f64) -> Vec<f64> {
    let noise = 0.01 * 20_f64.powf(random.random());
    let count = random.random_range(10..=60);
    (0..count).map(|_| truth + noise * normal(random)).collect()
}

fn measured(owner: usize, pairs: &[f64]) -> MeasuredEffect {
    let count = pairs.len() as f64;
    let effect = pairs.iter().sum::<f64>() / count;
    let squares: f64 = pairs.iter().map(|pair| (pair - effect).powi(2)).sum();
    MeasuredEffect {
        owner,
        effect,
        variance: squares / (count - 1.0) / count,
    }
}

fn fleet(shape: &Shape, random: &mut ChaCha8Rng) -> Vec<MeasuredEffect> {
    let mut all = Vec::new();
    for owner in 0..shape.owners {
        let centre = MEAN + shape.between_owners * normal(random);
        for _ in 0..shape.machines_of_each {
            let truth = centre + shape.between_machines * normal(random);
            all.push(measured(owner, &pairs(random, truth)));
        }
    }
    all
}

/// DerSimonian and Laird 1986 with the normal distribution, and the interval for a new machine by Higgins,
/// Thompson and Spiegelhalter 2009 (t, machines − 2) on it: what most programs do. All machines are
/// taken for independent.
fn dersimonian_laird(data: &[MeasuredEffect]) -> ([f64; 2], [f64; 2]) {
    let mean_at = |between: f64| {
        let weights = data.iter().map(|one| (one.variance + between).recip());
        let total: f64 = weights.clone().sum();
        let sum: f64 = weights
            .zip(data)
            .map(|(weight, one)| weight * one.effect)
            .sum();
        (sum / total, total)
    };
    let (fixed, total) = mean_at(0.0);
    let spread = data
        .iter()
        .map(|one| (one.effect - fixed).powi(2) / one.variance);
    let squares: f64 = data.iter().map(|one| one.variance.powi(-2)).sum();
    let freedom = data.len() as f64 - 1.0;
    let between = ((spread.sum::<f64>() - freedom) / (total - squares / total)).max(0.0);
    let (mean, total) = mean_at(between);
    let error = total.recip();
    let z = Normal::standard().inverse_cdf(0.975) * error.sqrt();
    let student = StudentsT::new(0.0, 1.0, freedom - 1.0).expect("three machines");
    let reach = student.inverse_cdf(0.975) * (error + between).sqrt();
    ([mean - z, mean + z], [mean - reach, mean + reach])
}

fn within([low, high]: [f64; 2], value: f64) -> usize {
    usize::from(low <= value && value <= high)
}

/// Owners, machines of each, share of the variance that is between owners.
const SIZES: [(usize, usize, f64); 5] = [
    (5, 1, 1.0),
    (20, 1, 1.0),
    (200, 1, 1.0),
    (5, 4, 0.5),
    (20, 10, 0.5),
];
/// Standard deviation of the log ratio between machines of different owners.
const BETWEEN: [f64; 4] = [0.0, 0.01, 0.03, 0.2];

/// `fleets` of each kind, a fifth of that where there are many machines of many owners: they take longest.
fn cover(fleets: usize) -> String {
    let mut table = String::from(
        "| owners × machines | fleets | between machines | mean: pool | mean: DerSimonian–Laird | prediction: pool | prediction: DerSimonian–Laird |\n\
         |---|---|---|---|---|---|---|\n",
    );
    // Each row has a seed of its own, so that rows can be made side by side.
    let rows: Vec<String> = std::thread::scope(|scope| {
        let rows: Vec<_> = (0..SIZES.len() * BETWEEN.len())
            .map(|number| scope.spawn(move || row(number, fleets)))
            .collect();
        let ended = rows.into_iter().map(|row| row.join().expect("a row"));
        ended.collect()
    });
    table.extend(rows);
    table
}

fn row(number: usize, fleets: usize) -> String {
    let (owners, machines_of_each, share) = SIZES[number / BETWEEN.len()];
    let between = BETWEEN[number % BETWEEN.len()];
    let fleets = match (owners, machines_of_each) {
        (20, 10) => fleets.div_ceil(5),
        _ => fleets,
    };
    let shape = Shape {
        owners,
        machines_of_each,
        between_owners: between * f64::sqrt(share),
        between_machines: between * f64::sqrt(1.0 - share),
    };
    let mut random = ChaCha8Rng::seed_from_u64(19 + number as u64);
    let mut hits = [0; 4];
    for _ in 0..fleets {
        let data = fleet(&shape, &mut random);
        let new = MEAN + between * normal(&mut random);
        let ours = estimate(&data).expect("five owners");
        let (mean, prediction) = dersimonian_laird(&data);
        hits[0] += within(ours.mean, MEAN);
        hits[1] += within(mean, MEAN);
        hits[2] += within(ours.prediction.interval(), new);
        hits[3] += within(prediction, new);
    }
    let share = |hits: usize| format!("{:.1} %", 100.0 * hits as f64 / fleets as f64);
    let between = match between > 0.0 {
        true => format!("{:.0} %", 100.0 * between),
        false => "none".to_owned(),
    };
    let mut line = String::new();
    let _ = writeln!(
        line,
        "| {owners} × {machines_of_each} | {fleets} | {between} | {} | {} | {} | {} |",
        share(hits[0]),
        share(hits[1]),
        share(hits[2]),
        share(hits[3]),
    );
    eprint!("{line}");
    line
}

/// Bundles of simulated owners about `noatime`, that say so.
fn bundles(dir: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let shape = Shape {
        owners: 12,
        machines_of_each: 3,
        between_owners: 0.02,
        between_machines: 0.02,
    };
    std::fs::create_dir_all(dir)?;
    for owner in 0..shape.owners {
        let key = OwnerKey::of(random.random())?;
        let centre = MEAN + shape.between_owners * normal(&mut random);
        let machines = (0..shape.machines_of_each)
            .map(|number| {
                let truth = centre + shape.between_machines * normal(&mut random);
                machine(&key, number, &pairs(&mut random, truth), &mut random)
            })
            .collect();
        let bundle = Bundle {
            format: FORMAT.to_owned(),
            owner: key.owner(),
            simulated: true,
            assay: env!("CARGO_PKG_VERSION").to_owned(),
            machines,
        };
        std::fs::write(format!("{dir}/{owner}.pool"), key.write(&bundle)?)?;
    }
    Ok(())
}

fn machine(key: &OwnerKey, number: usize, pairs: &[f64], random: &mut ChaCha8Rng) -> BundleMachine {
    let id = key.name("machine", &number.to_string());
    let cut = random.random_bool(0.2);
    let measured = match cut {
        true => &pairs[..pairs.len() / 3],
        false => pairs,
    };
    let trial = BundleTrial {
        id: key.name("trial", &id),
        plan: BundlePlan {
            advice: "noatime".to_owned(),
            page: None,
            parameters: BTreeMap::new(),
            change: "mount-option".to_owned(),
            both_same: false,
            metric: "iops".parse().expect("a figure"),
            margin: 0.03,
            alpha: 0.05,
            slot_ms: 3000,
            washout_ms: 1000,
            max_pairs: 60,
            seed: random.random(),
            coins: (0..60)
                .map(|_| if random.random() { 'A' } else { 'B' })
                .collect(),
        },
        assay: "simulated".to_owned(),
        kernel: None,
        fio: None,
        moderators: BTreeMap::new(),
        pairs: measured.iter().map(|pair| Pair::Effect(*pair)).collect(),
        ended: if cut {
            TrialEnd::Stopped
        } else {
            TrialEnd::Done
        },
        verdict: assay_model::trial::Verdict::Undecided,
    };
    BundleMachine {
        id,
        trials: vec![trial],
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["bundles", dir] => bundles(dir),
        [] | ["cover"] => {
            print!("{}", cover(1000));
            Ok(())
        }
        ["cover", fleets] => {
            print!("{}", cover(fleets.parse()?));
            Ok(())
        }
        ["book"] => Ok(book::put(PAGE, "coverage", cover(1000).trim_end())?),
        _ => Err("usage: bench/fleet/pool [cover [FLEETS] | book | bundles DIR]".into()),
    }
}

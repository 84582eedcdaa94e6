//! Histories whose future is known. Shared with the tests of the planner.

use assay_planner::capacity::{UsagePoint, compute_outlook};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// How used space goes: 1,000,000 at first, as much again over the history on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A line, with 3 % of scatter about it.
    Line,
    /// Five imports in the length of a history, at chance moments and of chance (exponential) size.
    Steps,
    /// A constant rate: 2.7-fold in the length of a history, with 2 % of scatter.
    Growth,
    /// A random walk with a drift.
    Walk,
    /// A line that becomes three times as steep in the second half of the history.
    Bend,
    /// A line with two seasons in the length of a history.
    Seasons,
}

/// All of them, with their names.
pub const KINDS: [(&str, Kind); 6] = [
    ("line with scatter", Kind::Line),
    ("steps", Kind::Steps),
    ("growth by a rate", Kind::Growth),
    ("random walk", Kind::Walk),
    ("a bend", Kind::Bend),
    ("seasons", Kind::Seasons),
];

fn normal(random: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.random::<f64>()).cos()
}

/// A history of `n` days and twice as much of its future, and the level that is expected after a share
/// of the history's length.
fn values(kind: Kind, n: usize, random: &mut ChaCha8Rng) -> (Vec<f64>, impl Fn(f64) -> f64) {
    const BEGIN: f64 = 1e6;
    let slope = BEGIN / n as f64;
    let bend = n as f64 * (0.5 + 0.4 * random.random::<f64>());
    let (mut steps, mut walk) = (0.0, BEGIN);
    let value = |at: usize| {
        let x = at as f64;
        let scatter = normal(random);
        if random.random::<f64>() < 5.0 / n as f64 {
            steps -= BEGIN / 5.0 * (1.0 - random.random::<f64>()).ln();
        }
        walk = (walk + slope + 0.8 * BEGIN / (n as f64).sqrt() * scatter).max(1.0);
        match kind {
            Kind::Line => BEGIN + slope * x + 0.03 * BEGIN * scatter,
            Kind::Steps => BEGIN + steps,
            Kind::Growth => BEGIN * (x / n as f64 + 0.02 * scatter).exp(),
            Kind::Walk => walk,
            Kind::Bend => BEGIN + slope * (x + 2.0 * (x - bend).max(0.0)),
            Kind::Seasons => {
                BEGIN + slope * x + 0.1 * BEGIN * (x / n as f64 * 2.0 * std::f64::consts::TAU).sin()
            }
        }
    };
    let values: Vec<f64> = (0..3 * n).map(value).collect();
    let now = values[n - 1];
    let level = move |part: f64| match kind {
        Kind::Growth => BEGIN * (1.0 + part).exp(),
        Kind::Bend => now + 3.0 * BEGIN * part,
        _ => now + BEGIN * part,
    };
    (values, level)
}

/// What came of a kind of history.
#[derive(Clone, Copy, Debug, Default)]
pub struct Held {
    /// Dates said.
    pub said: u32,
    /// Those that held: the level was reached between the earliest and the latest.
    pub held: u32,
    /// Those without a latest date.
    pub open: u32,
    /// What the histories themselves said of how often it would hold.
    pub walked: (u32, u32),
}

impl Held {
    /// Percent that held.
    pub fn percent(self) -> f64 {
        f64::from(self.held) * 100.0 / f64::from(self.said.max(1))
    }
}

/// Asks `count` histories of `n` days for the dates of three levels.
pub fn ask(kind: Kind, n: usize, count: u64, seed: u64) -> Held {
    let mut found = Held::default();
    for number in 0..count {
        let mut random =
            ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(number));
        let (values, level) = values(kind, n, &mut random);
        let points: Vec<UsagePoint> = values[..n]
            .iter()
            .enumerate()
            .map(|(day, used)| UsagePoint {
                time: day as i64 * 86_400,
                used: *used as u64,
            })
            .collect();
        let Ok(outlook) = compute_outlook(&points) else {
            continue;
        };
        let coverage = outlook.trend.coverage;
        found.walked.0 += coverage.held as u32;
        found.walked.1 += coverage.tried as u32;
        for part in [0.25, 0.5, 1.0] {
            let level = level(part);
            if values[n - 1] >= level {
                continue;
            }
            let said = outlook.forecast(level as u64, 1.0);
            let days =
                |time: Option<i64>| time.map_or(f64::INFINITY, |time| time as f64 / 86_400.0);
            let came = (n..3 * n).find(|day| values[*day] >= level);
            found.said += 1;
            found.open += u32::from(said.latest.is_none());
            let held = match came {
                // Reached at some time of that day.
                Some(day) => {
                    let day = day as f64;
                    days(said.earliest) <= day && day - 1.0 <= days(said.latest)
                }
                None => days(said.latest) > (3 * n - 1) as f64,
            };
            found.held += u32::from(held);
        }
    }
    found
}

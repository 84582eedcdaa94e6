//! Simulates possible futures of a time series, from the changes in its own history.
//!
//! A straight line through the history is a poor forecast: imports come in steps, growth accelerates, and a random walk
//! does not return to a line. Therefore many futures are simulated. Each starts at the last value and adds changes that
//! occurred in the history:
//!
//! - Changes are drawn in blocks of random length, which keeps seasons and slow phases together.
//! - Each future draws from a resampled history, because a short history does not determine the growth exactly (double
//!   block bootstrap; Künsch, Annals of Statistics 17, 1989). In every second resampled history the largest change
//!   occurs once more, because rare steps are few in any history.
//! - Half of the futures draw from the whole history, a quarter from its last half, and a quarter from its last
//!   quarter, because growth changes.
//! - Changes are either bytes or fractions of the current value. The kind that would have predicted the history better
//!   gets the larger proportion.
//!
//! Afterwards the forecast is tested on the history. At a dozen points, a forecast is made from the earlier values
//! only, and the later values are compared with it. If fewer than 95 % of the later values are inside the interval, the
//! futures are widened until 95 % are inside. `bench/plan` measures how often forecasts hold.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// Result of testing the forecast on the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Coverage {
    /// Number of tested dates at which the value was inside the forecast interval.
    pub held: usize,
    /// Number of dates that were tested.
    pub tried: usize,
}

/// Factors by which the changes may be widened. Factors below 1 are used only if most changes are reversed by the next
/// change. In this case the value varies around a line and is not a random walk.
const SPREADS: [f64; 8] = [0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
const FUTURES: usize = 400;
const WALKED: usize = 200;
/// Minimum number of tested dates for which a fraction is meaningful.
const FEWEST: usize = 6;
/// Length of a forecast, as a multiple of the history's length.
const AHEAD: usize = 10;
/// Fraction of the futures that is cut off at each end of an interval. With this fraction and one additional step, a
/// nominal 95 % interval holds in 95 % of cases (`bench/plan`).
const TAIL: f64 = 0.0125;

/// Simulated futures in equal time steps.
pub struct Futures {
    now: f64,
    all: Vec<Vec<f64>>,
    /// Factor by which the changes were widened.
    pub spread: f64,
    /// Result of the test on the history, with this factor.
    pub coverage: Coverage,
}

/// Number of steps until a level is reached, as interval and median. A number is infinite if the level is never
/// reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passage {
    pub earliest: f64,
    pub middle: f64,
    pub latest: f64,
}

impl Futures {
    /// Simulates the futures of a history. `values` contains at least four values at equal time steps.
    pub fn of(values: &[f64]) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut found = (1.0, Coverage { held: 0, tried: 0 });
        for spread in SPREADS {
            if spread < 1.0 && !changes_mostly_reverse(values) {
                continue;
            }
            let seen = walk(values, spread, &mut random);
            found = (spread, seen);
            let enough = match spread < 1.0 {
                true => seen.tried > FEWEST && seen.held == seen.tried,
                false => seen.tried < FEWEST || seen.held as f64 >= 0.95 * seen.tried as f64,
            };
            if enough {
                break;
            }
        }
        let ahead = AHEAD * (values.len() - 1);
        Self {
            now: values.last().copied().unwrap_or_default(),
            all: draw_futures(values, ahead, FUTURES, found.0, &mut random),
            spread: found.0,
            coverage: found.1,
        }
    }

    /// Returns the number of steps until `level` is reached.
    pub fn passage(&self, level: f64) -> Passage {
        times_to_level(self.now, &self.all, level)
    }

    /// Returns the change after `steps` steps: lower end of the interval, median, upper end.
    pub fn change(&self, steps: usize) -> [f64; 3] {
        let mut at: Vec<f64> = self
            .all
            .iter()
            .filter_map(|one| one.get(steps.max(1) - 1))
            .copied()
            .collect();
        at.sort_by(f64::total_cmp);
        [TAIL, 0.5, 1.0 - TAIL].map(|share| quantile_of(&at, share) - self.now)
    }
}

fn compute_changes(values: &[f64], shares: bool) -> Vec<f64> {
    let change = |pair: &[f64]| match shares {
        true => (pair[1] / pair[0]).ln(),
        false => pair[1] - pair[0],
    };
    values.windows(2).map(change).collect()
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns whether most changes are reversed by the next change.
fn changes_mostly_reverse(values: &[f64]) -> bool {
    let changes = compute_changes(values, false);
    let mean = mean_of(&changes);
    let square: f64 = changes.iter().map(|one| (one - mean).powi(2)).sum();
    let next: f64 = changes
        .windows(2)
        .map(|two| (two[0] - mean) * (two[1] - mean))
        .sum();
    next < -0.35 * square
}

/// Returns the fraction of futures that use relative changes. The fraction is high if a constant growth rate would have
/// predicted later values better than a line, both from the first value.
fn part_of_shares(values: &[f64]) -> f64 {
    if values.iter().any(|value| *value <= 0.0) {
        return 0.0;
    }
    let n = values.len() - 1;
    let (mut line, mut rate, mut tried) = (0.0, 0.0, 0);
    for k in (n / 3).max(2)..n {
        let ahead = ((n - k) / 2).max(1).min(k);
        let (first, now, then) = (values[0], values[k], values[k + ahead]);
        let part = ahead as f64 / k as f64;
        line += (now + (now - first) * part - then).powi(2);
        rate += (now * (now / first).powf(part) - then).powi(2);
        tried += 1;
    }
    match tried >= 2 && line + rate > 0.0 {
        true => line / (line + rate),
        false => 0.5,
    }
}

fn draw_futures(
    values: &[f64],
    ahead: usize,
    count: usize,
    spread: f64,
    random: &mut ChaCha8Rng,
) -> Vec<Vec<f64>> {
    let n = values.len() - 1;
    let shares = part_of_shares(values);
    let kinds = [false, true].map(|kind| match kind && shares == 0.0 {
        true => Vec::new(),
        false => compute_changes(values, kind),
    });
    let one = |at: usize| {
        let is_share = (at as f64 + 0.5) / (count as f64) < shares;
        let all = &kinds[usize::from(is_share)];
        let centre = mean_of(all);
        let from = match random.random::<f64>() {
            pick if pick < 0.5 => 0,
            pick if pick < 0.75 => n / 2,
            _ => n - n / 4,
        };
        let drawn = resample_history(&all[from.min(n.saturating_sub(3))..], random);
        let mut future = Vec::with_capacity(ahead);
        let mut now = values[n];
        'path: loop {
            let from = random.random_range(0..drawn.changes.len());
            for step in 0..drawn.block {
                if future.len() >= ahead {
                    break 'path;
                }
                let change = drawn.changes[(from + step) % drawn.changes.len()];
                let change = centre + spread * (change - centre);
                now = match is_share {
                    true => (now * change.clamp(-5.0, 5.0).exp()).min(1e30),
                    false => (now + change).max(0.0),
                };
                future.push(now);
            }
        }
        future
    };
    (0..count).map(one).collect()
}

/// A resampled history, and the length of the blocks that are drawn from it.
struct Drawn {
    changes: Vec<f64>,
    block: usize,
}

fn resample_history(changes: &[f64], random: &mut ChaCha8Rng) -> Drawn {
    let n = changes.len();
    let mean = mean_of(changes);
    // A sample varies less around its own mean than around the true mean.
    let wider = (n as f64 / (n as f64 - 1.0).max(1.0)).sqrt();
    let block = 1 + (random.random::<f64>() * (n as f64 / 3.0)) as usize;
    let mut drawn = Vec::with_capacity(n + block);
    while drawn.len() < n {
        let from = random.random_range(0..n);
        drawn.extend((from..from + block).map(|at| mean + wider * (changes[at % n] - mean)));
    }
    drawn.truncate(n);
    if random.random::<bool>() {
        let mut sorted = changes.to_vec();
        sorted.sort_by(f64::total_cmp);
        let off = |change: &f64| (change - sorted[n / 2]).abs();
        let largest = changes.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
        let at = random.random_range(0..n);
        drawn[at] = largest.copied().unwrap_or_default();
    }
    Drawn {
        changes: drawn,
        block,
    }
}

/// Returns the number of steps until a future reaches the level; infinite if the future never reaches it.
pub fn time_to_level(now: f64, future: &[f64], level: f64) -> f64 {
    if now >= level {
        return 0.0;
    }
    let Some(at) = future.iter().position(|value| *value >= level) else {
        return f64::INFINITY;
    };
    let before = if at == 0 { now } else { future[at - 1] };
    at as f64 + (level - before) / (future[at] - before).max(f64::MIN_POSITIVE)
}

fn quantile_of(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share) as usize;
    sorted
        .get(at)
        .or(sorted.last())
        .copied()
        .unwrap_or_default()
}

fn times_to_level(now: f64, futures: &[Vec<f64>], level: f64) -> Passage {
    let mut steps: Vec<f64> = futures
        .iter()
        .map(|one| time_to_level(now, one, level))
        .collect();
    steps.sort_by(f64::total_cmp);
    Passage {
        earliest: (quantile_of(&steps, TAIL) - 1.0).max(0.0),
        middle: quantile_of(&steps, 0.5),
        latest: quantile_of(&steps, 1.0 - TAIL) + 1.0,
    }
}

/// Tests the forecast at a dozen points of the history. Tests the levels that are expected after one third and after
/// two thirds of the remaining time.
fn walk(values: &[f64], spread: f64, random: &mut ChaCha8Rng) -> Coverage {
    let n = values.len() - 1;
    let first = (n * 2 / 5).max(3);
    let mut seen = Coverage { held: 0, tried: 0 };
    for k in (first..n.saturating_sub(1)).step_by((n.saturating_sub(first) / 12).max(1)) {
        let left = n - k;
        let all = draw_futures(&values[..=k], left, WALKED, spread, random);
        for part in [0.35, 0.7] {
            let at = ((left as f64 * part) as usize).max(1) - 1;
            let mut there: Vec<f64> = all.iter().map(|one| one[at]).collect();
            there.sort_by(f64::total_cmp);
            let level = quantile_of(&there, 0.5);
            if level <= values[k] {
                continue;
            }
            let came = time_to_level(values[k], &values[k + 1..], level);
            let said = times_to_level(values[k], &all, level);
            seen.tried += 1;
            // A level that the history does not reach by its end was reached later or never.
            let held = match came.is_finite() {
                true => said.earliest <= came && came <= said.latest,
                false => said.latest > left as f64 - 1.0,
            };
            seen.held += usize::from(held);
        }
    }
    seen
}

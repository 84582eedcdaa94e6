//! A slow disk found by its latency against its siblings.
//!
//! Disks of one vdev or array get the same work at the same time, so each is the others' control:
//! what changes for all of them (more load, a busier machine) changes no comparison. In every window
//! a disk's mean time per request is held against the median of its siblings. A disk is slow when
//!
//! * it was the slowest of its `k` siblings in more windows than equal disks would let it be: if
//!   they are equal, each is the slowest in one window of `k`, so the number is binomial; and
//! * its time was, in the median window, at least [`MATTERS`] times that of its siblings.
//!
//! The chance that any of equal disks is accused in one watch stays below [`FALSE_ALARM`]: the
//! binomial tail is multiplied by the number of disks and ways that are looked at (Bonferroni).
//! Windows that follow each other are not independent: a disk that cleans up is slow for seconds.
//! So they count for fewer, by the correlation of each window's ratio with the next one's
//! (`n (1 − ρ) / (1 + ρ)` for a first-order process), with ρ taken [`DOUBT`] standard errors higher
//! than it seems, because a short series shows less than there is (its bias is `(1 + 4ρ) / n`;
//! Marriott and Pope, Biometrika 41, 1954). That the rate holds is simulated in the tests.

use assay_model::Nanos;
use assay_model::sample::DeviceDelta;
use assay_model::siblings::{Comparison, DiskLatency, SlowDisk, Watched, Way};
use statrs::distribution::{Binomial, DiscreteCDF as _};

/// A disk that takes twice as long halves what its vdev can do; less is the difference between
/// models and positions on the platter.
pub const MATTERS: f64 = 2.0;
/// Chance that a watch of equal disks accuses one.
pub const FALSE_ALARM: f64 = 0.001;
/// Standard errors by which the correlation of windows is taken to be higher than it seems.
const DOUBT: f64 = 1.5;
/// Requests of each disk without which a window says nothing about them.
const LEAST: u64 = 4;

/// Compares the disks of all groups, reads and writes apart. Groups of one disk have no siblings
/// and are left out, and so is a way in which nothing was done.
#[must_use]
pub fn judge(watched: &[Watched]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for group in watched {
        for way in [Way::Read, Way::Write] {
            let names = &group.siblings.disks;
            let rows = rows(group, way);
            let worked = group
                .windows
                .iter()
                .flatten()
                .any(|disk| counts(disk, way).0 > 0);
            if names.len() >= 2 && worked {
                found.push((group, way, rows));
            }
        }
    }
    let tests: usize = found
        .iter()
        .map(|(group, ..)| group.siblings.disks.len())
        .sum();
    found
        .into_iter()
        .map(|(group, way, rows)| compare(group, way, &rows, tests as f64))
        .collect()
}

/// Requests and milliseconds.
fn counts(disk: &DeviceDelta, way: Way) -> (u64, u64) {
    match way {
        Way::Read => (disk.reads, disk.read_ms),
        Way::Write => (disk.writes, disk.write_ms),
    }
}

/// The windows that count: requests and milliseconds of every disk, in the order of the group.
fn rows(group: &Watched, way: Way) -> Vec<Vec<(u64, u64)>> {
    let row = |window: &Vec<DeviceDelta>| {
        let of = |name: &String| {
            let disk = window.iter().find(|disk| disk.name == *name)?;
            Some(counts(disk, way)).filter(|(requests, _)| *requests >= LEAST)
        };
        group.siblings.disks.iter().map(of).collect()
    };
    group.windows.iter().filter_map(row).collect()
}

/// Milliseconds a request. The kernel counts whole milliseconds, so half a one is added: a disk of
/// 20 µs is not infinitely faster than one of 60 µs.
fn time((requests, ms): (u64, u64)) -> f64 {
    (ms as f64 + 0.5) / requests.max(1) as f64
}

fn compare(group: &Watched, way: Way, rows: &[Vec<(u64, u64)>], tests: f64) -> Comparison {
    let names = &group.siblings.disks;
    let times: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| row.iter().map(|counts| time(*counts)).collect())
        .collect();
    let mut disks = Vec::new();
    let mut chances = Vec::new();
    for at in 0..names.len() {
        let ratios: Vec<f64> = times
            .iter()
            .map(|row| row[at] / median(others(row, at)))
            .collect();
        let (requests, ms) = rows.iter().fold((0, 0), |sum: (u64, u64), row| {
            (sum.0 + row[at].0, sum.1 + row[at].1)
        });
        let slowest = times
            .iter()
            .filter(|row| others(row, at).iter().all(|other| *other < row[at]));
        let slowest = slowest.count();
        chances.push(chance(&ratios, slowest, names.len(), tests));
        disks.push(DiskLatency {
            disk: names[at].clone(),
            requests,
            mean: Nanos((ms as f64 * 1e6 / requests.max(1) as f64) as u64),
            ratio: median(ratios),
            slowest_in: slowest as u32,
        });
    }
    Comparison {
        siblings: group.siblings.name.clone(),
        way,
        windows: rows.len() as u32,
        finding: finding(&disks, &chances, rows.len(), tests),
        disks,
    }
}

fn finding(disks: &[DiskLatency], chances: &[f64], windows: usize, tests: f64) -> SlowDisk {
    // What a disk needs that is the slowest in every window.
    let runs = (FALSE_ALARM / tests).ln() / (1.0 / disks.len() as f64).ln();
    let needed = (1..).find(|n| independent(0.0, *n) as f64 >= runs);
    let needed = needed.unwrap_or(usize::MAX);
    if windows < needed {
        return SlowDisk::TooLittle {
            needed: needed as u32,
        };
    }
    let worst = disks
        .iter()
        .zip(chances)
        .enumerate()
        .max_by(|(_, a), (_, b)| a.0.ratio.total_cmp(&b.0.ratio));
    match worst {
        Some((at, (disk, chance))) if disk.ratio >= MATTERS && *chance <= FALSE_ALARM => {
            SlowDisk::Slow {
                at,
                chance: *chance,
            }
        }
        _ => SlowDisk::Alike,
    }
}

/// Chance that any of `tests` equal disks is the slowest of `siblings` in so many windows.
fn chance(ratios: &[f64], slowest: usize, siblings: usize, tests: f64) -> f64 {
    let all = independent(correlation(ratios), ratios.len());
    let slowest = (slowest * all) as u64 / ratios.len().max(1) as u64;
    let tail = match (Binomial::new(1.0 / siblings as f64, all as u64), slowest) {
        (_, 0) | (Err(_), _) => 1.0,
        // sf(x) is P(X > x).
        (Ok(equal), slowest) => equal.sf(slowest - 1),
    };
    (tail * tests).min(1.0)
}

/// Correlation of the logarithm of each ratio with the next one.
fn correlation(ratios: &[f64]) -> f64 {
    let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len().max(1) as f64;
    let off: Vec<f64> = logs.iter().map(|log| log - mean).collect();
    let square: f64 = off.iter().map(|off| off * off).sum();
    let next: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    match square > 0.0 {
        true => next / square,
        false => 0.0,
    }
}

/// How many independent windows `windows` with such a correlation are worth.
fn independent(correlation: f64, windows: usize) -> usize {
    let n = windows.max(1) as f64;
    let bias = (1.0 + 4.0 * correlation.max(0.0)) / n;
    let least = (correlation + bias + DOUBT / n.sqrt()).clamp(0.0, 0.99);
    (n * (1.0 - least) / (1.0 + least)) as usize
}

fn others(row: &[f64], at: usize) -> Vec<f64> {
    let all = row.iter().enumerate();
    all.filter(|(other, _)| *other != at)
        .map(|(_, time)| *time)
        .collect()
}

/// The mean of the two middle ones when their number is even; 1 when there is none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 1.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests;

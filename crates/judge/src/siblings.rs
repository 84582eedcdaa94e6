//! A slow disk found by its latency against its siblings.
//!
//! Disks of one vdev or array get the same work at the same time, so each is the others' control:
//! what changes for all of them (more load, a busier machine) changes no comparison. In every window
//! a disk's mean time per request is held against the median of those of its siblings that worked in
//! it too, in logarithms. Of equal disks that logarithm is as often positive as negative. A disk is
//! slow when
//!
//! * its mean over the windows is above zero beyond chance (`persistent`: windows hang together), or it
//!   was the slowest in more windows than equal disks would let it be, windows counting for fewer by the
//!   correlation of their ratios (`often`): the first sees a steady difference where ratios hang together,
//!   the second a large one that changes from window to window; and
//! * its time was, in the median window, at least [`MATTERS`] times that of its siblings.
//!
//! The chance that any of equal disks is accused in one watch stays below [`FALSE_ALARM`]: it is
//! multiplied by the number of disks and ways that are looked at and by the two rules (Bonferroni). A group is cleared
//! only when the same reckoning shows each of its disks to be less than [`MATTERS`] times slower, and
//! otherwise nothing can be told. How often each happens is simulated in `bench/disks`.

mod often;
mod persistent;

use assay_model::Nanos;
use assay_model::sample::DeviceDelta;
use assay_model::siblings::{Comparison, DiskLatency, SlowDisk, Watched, Way};
use persistent::Series;

/// A disk that takes twice as long halves what its vdev can do; less is the difference between
/// models and positions on the platter.
pub const MATTERS: f64 = 2.0;
/// Chance that a watch of equal disks accuses one.
pub const FALSE_ALARM: f64 = 0.001;
/// From here on it also counts how often a disk was the slowest. Smaller differences are those of states
/// that last beside noise, which that count does not see.
const LARGE: f64 = 8.0;
/// Chance that a disk which takes [`MATTERS`] times as long is cleared.
pub const MISSED: f64 = 0.05;
/// Requests of a disk without which a window says nothing about it.
const LEAST: u64 = 4;
/// Windows without which nothing is said of a disk; the reckoning is checked from here on.
const NEEDED: u32 = 10;

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

/// A window: requests and milliseconds of each disk that worked in it, in the order of the group.
type Row = Vec<Option<(u64, u64)>>;

/// All windows. One in which fewer than two worked compares nothing and is empty.
fn rows(group: &Watched, way: Way) -> Vec<Row> {
    let row = |window: &Vec<DeviceDelta>| {
        let of = |name: &String| {
            let disk = window.iter().find(|disk| disk.name == *name)?;
            Some(counts(disk, way)).filter(|(requests, _)| *requests >= LEAST)
        };
        let row: Row = group.siblings.disks.iter().map(of).collect();
        match row.iter().flatten().count() {
            0 | 1 => vec![None; row.len()],
            _ => row,
        }
    };
    group.windows.iter().map(row).collect()
}

/// Milliseconds a request. The kernel counts whole milliseconds, so half a one is added: a disk of
/// 20 µs is not infinitely faster than one of 60 µs.
fn time((requests, ms): (u64, u64)) -> f64 {
    (ms as f64 + 0.5) / requests.max(1) as f64
}

fn compare(group: &Watched, way: Way, rows: &[Row], tests: f64) -> Comparison {
    let names = &group.siblings.disks;
    let logs: Vec<Vec<Option<f64>>> = rows
        .iter()
        .map(|row| row.iter().map(|one| Some(time((*one)?).ln())).collect())
        .collect();
    let mut disks = Vec::new();
    let mut chances = Vec::new();
    for at in 0..names.len() {
        let ratio = |row: &Vec<Option<f64>>| Some(row[at]? - median(others(row, at)));
        let points: Vec<(usize, f64)> = logs
            .iter()
            .enumerate()
            .filter_map(|(window, row)| Some((window, ratio(row)?)))
            .collect();
        let worked = rows.iter().filter_map(|row| row[at]);
        let (requests, ms) = worked.fold((0, 0), |sum: (u64, u64), one| {
            (sum.0 + one.0, sum.1 + one.1)
        });
        let series = Series::new(&points, rows.len());
        let known = points.len() >= NEEDED as usize;
        let bounds = known.then(|| series.interval(MISSED));
        let slowest = logs.iter().filter(|row| {
            let others = others(row, at);
            row[at].is_some_and(|own| others.iter().all(|other| *other < own))
        });
        let slowest = slowest.count();
        chances.push(match known {
            true => {
                let ratios: Vec<f64> = points.iter().map(|point| point.1).collect();
                let fewest = logs
                    .iter()
                    .filter(|row| row[at].is_some())
                    .map(|row| row.iter().flatten().count());
                let often = match median(ratios.clone()).exp() >= LARGE {
                    true => often::chance(&ratios, slowest, fewest.min().unwrap_or(2)),
                    false => 1.0,
                };
                (series.chance_above(0.0).min(often) * 2.0 * tests).min(1.0)
            }
            false => 1.0,
        });
        disks.push(DiskLatency {
            disk: names[at].clone(),
            windows: points.len() as u32,
            requests,
            mean: Nanos((ms as f64 * 1e6 / requests.max(1) as f64) as u64),
            ratio: median(points.iter().map(|point| point.1).collect()).exp(),
            at_least: bounds.map(|bounds| bounds.0.exp()),
            at_most: bounds
                .map(|bounds| bounds.1.exp())
                .filter(|most| most.is_finite()),
        });
    }
    let compared = |row: &&Row| row.iter().any(Option::is_some);
    Comparison {
        siblings: group.siblings.name.clone(),
        way,
        windows: rows.iter().filter(compared).count() as u32,
        finding: finding(&disks, &chances),
        disks,
    }
}

fn finding(disks: &[DiskLatency], chances: &[f64]) -> SlowDisk {
    if disks.iter().all(|disk| disk.windows < NEEDED) {
        return SlowDisk::TooLittle { needed: NEEDED };
    }
    let accused = disks
        .iter()
        .zip(chances)
        .enumerate()
        .filter(|(_, (disk, chance))| disk.ratio >= MATTERS && **chance <= FALSE_ALARM)
        .max_by(|(_, a), (_, b)| a.0.ratio.total_cmp(&b.0.ratio));
    if let Some((at, (_, chance))) = accused {
        return SlowDisk::Slow {
            at,
            chance: *chance,
        };
    }
    let most = |disk: &DiskLatency| disk.at_most.unwrap_or(f64::INFINITY);
    let open = disks.iter().enumerate();
    let open = open.filter(|(_, disk)| most(disk) >= MATTERS);
    match open.max_by(|(_, a), (_, b)| most(a).total_cmp(&most(b))) {
        Some((at, _)) => SlowDisk::CannotTell { at },
        None => SlowDisk::Alike,
    }
}

fn others(row: &[Option<f64>], at: usize) -> Vec<f64> {
    let all = row.iter().enumerate().filter(|(other, _)| *other != at);
    all.filter_map(|(_, time)| *time).collect()
}

/// The mean of the two middle ones when their number is even; 0 when there is none.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests;

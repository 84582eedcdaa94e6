//! Finds a slow disk by comparing its latency with that of its sibling disks.
//!
//! Disks of one vdev or array get the same work at the same time, so each disk is a control for its siblings. A change
//! that affects all disks (more load, a busier machine) does not affect the comparison. In every window, a disk's mean
//! time per request is divided by the median of the siblings that worked in the same window. For equal disks, the
//! logarithm of this ratio is equally often positive and negative. A disk is slow if
//!
//! * the mean logarithm over the windows is above zero beyond chance (`persistent_slowness`, which allows for
//!   correlated windows), or the disk was the slowest in more windows than chance explains, where correlated windows
//!   count less (`often_slowest`): the first test detects a steady difference, the second a large difference that
//!   varies from window to window; and
//! * in the median window its time was at least [`MATTERS`] times that of its siblings.
//!
//! The probability that any of equal disks is reported in one watch stays below [`FALSE_ALARM`], with a Bonferroni
//! correction for the disks, the directions and the two tests. A group is cleared only if the same tests show that each
//! disk is less than [`MATTERS`] times slower; otherwise the result is undecided. `bench/disks` simulates how often
//! each result happens.

mod often_slowest;
mod persistent_slowness;

use assay_model::Nanos;
use assay_model::sample::DeviceDelta;
use assay_model::siblings::{Comparison, DiskLatency, IoDirection, SlowDisk, Watched};
use persistent_slowness::CorrelatedSeries;

/// Smallest factor that counts as slow. A disk that takes twice as long halves the rate of its
/// vdev; smaller factors occur between models and positions on the platter.
pub const MATTERS: f64 = 2.0;
/// Maximum probability that one watch of equal disks reports any of them as slow.
pub const FALSE_ALARM: f64 = 0.001;
/// Factor from which the test on the slowest disk (`often_slowest`) also applies. Smaller differences may come from
/// lasting states with noise, which that test does not model.
const LARGE: f64 = 8.0;
/// Maximum probability of missing a slow disk, that is a disk that takes [`MATTERS`] times as long as its siblings.
pub const MISSED: f64 = 0.05;
/// Minimum number of requests that a disk must complete in a window for the window to count.
const LEAST: u64 = 4;
/// Minimum number of windows for a result. The simulations cover the tests from this number on.
const NEEDED: u32 = 10;

/// Compares the disks of all groups, separately for reads and writes. Leaves out groups of one disk, which have no
/// siblings, and directions without any request.
#[must_use]
pub fn compare_siblings(watched: &[Watched]) -> Vec<Comparison> {
    let mut found = Vec::new();
    for group in watched {
        for way in [IoDirection::Read, IoDirection::Write] {
            let names = &group.siblings.disks;
            let rows = collect_windows(group, way);
            let worked = group
                .windows
                .iter()
                .flatten()
                .any(|disk| read_counts(disk, way).0 > 0);
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
        .map(|(group, way, rows)| compare_group(group, way, &rows, tests as f64))
        .collect()
}

/// Returns the number of requests of a disk, and their total time in milliseconds.
fn read_counts(disk: &DeviceDelta, way: IoDirection) -> (u64, u64) {
    match way {
        IoDirection::Read => (disk.reads, disk.read_ms),
        IoDirection::Write => (disk.writes, disk.write_ms),
    }
}

/// A window: requests and milliseconds of each disk that worked in it, in the order of the group.
type DiskWindow = Vec<Option<(u64, u64)>>;

/// Collects all windows. A window in which fewer than two disks worked is empty.
fn collect_windows(group: &Watched, way: IoDirection) -> Vec<DiskWindow> {
    let row = |window: &Vec<DeviceDelta>| {
        let of = |name: &String| {
            let disk = window.iter().find(|disk| disk.name == *name)?;
            Some(read_counts(disk, way)).filter(|(requests, _)| *requests >= LEAST)
        };
        let row: DiskWindow = group.siblings.disks.iter().map(of).collect();
        match row.iter().flatten().count() {
            0 | 1 => vec![None; row.len()],
            _ => row,
        }
    };
    group.windows.iter().map(row).collect()
}

/// Computes milliseconds per request. Half a millisecond is added, because the kernel counts whole milliseconds:
/// otherwise a disk with 20 µs could seem infinitely faster than one with 60 µs.
fn compute_latency((requests, ms): (u64, u64)) -> f64 {
    (ms as f64 + 0.5) / requests.max(1) as f64
}

fn compare_group(group: &Watched, way: IoDirection, rows: &[DiskWindow], tests: f64) -> Comparison {
    let names = &group.siblings.disks;
    let logs: Vec<Vec<Option<f64>>> = rows
        .iter()
        .map(|row| {
            row.iter()
                .map(|one| Some(compute_latency((*one)?).ln()))
                .collect()
        })
        .collect();
    let mut disks = Vec::new();
    let mut chances = Vec::new();
    for at in 0..names.len() {
        let ratio = |row: &Vec<Option<f64>>| {
            Some(row[at]? - compute_median(collect_other_latencies(row, at)))
        };
        let points: Vec<(usize, f64)> = logs
            .iter()
            .enumerate()
            .filter_map(|(window, row)| Some((window, ratio(row)?)))
            .collect();
        let worked = rows.iter().filter_map(|row| row[at]);
        let (requests, ms) = worked.fold((0, 0), |sum: (u64, u64), one| {
            (sum.0 + one.0, sum.1 + one.1)
        });
        let series = CorrelatedSeries::new(&points, rows.len());
        let known = points.len() >= NEEDED as usize;
        let bounds = known.then(|| series.mean_interval(MISSED));
        let slowest = logs.iter().filter(|row| {
            let others = collect_other_latencies(row, at);
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
                let often = match compute_median(ratios.clone()).exp() >= LARGE {
                    true => often_slowest::compute_chance_of_slowest(
                        &ratios,
                        slowest,
                        fewest.min().unwrap_or(2),
                    ),
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
            ratio: compute_median(points.iter().map(|point| point.1).collect()).exp(),
            at_least: bounds.map(|bounds| bounds.0.exp()),
            at_most: bounds
                .map(|bounds| bounds.1.exp())
                .filter(|most| most.is_finite()),
        });
    }
    let compared = |row: &&DiskWindow| row.iter().any(Option::is_some);
    Comparison {
        siblings: group.siblings.name.clone(),
        way,
        windows: rows.iter().filter(compared).count() as u32,
        finding: build_finding(&disks, &chances),
        disks,
    }
}

fn build_finding(disks: &[DiskLatency], chances: &[f64]) -> SlowDisk {
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

fn collect_other_latencies(row: &[Option<f64>], at: usize) -> Vec<f64> {
    let all = row.iter().enumerate().filter(|(other, _)| *other != at);
    all.filter_map(|(_, time)| *time).collect()
}

/// Computes the median; 0 without values.
fn compute_median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests;

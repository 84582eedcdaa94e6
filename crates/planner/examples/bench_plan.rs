//! Prints the time that the planner takes for some questions, and the time of a simple method. `bench/plan/run` calls
//! this program.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use assay_planner::btrfs::{Profile, simulate_filesystem};
use assay_planner::clones::{Graph, parse_zfs_get, report};
use assay_planner::durability::{Assumptions, DiskGroup, HOURS_A_YEAR, simulate_arrays};
use assay_planner::layout::{Context, Disk, search};
use std::fmt::Write as _;
use std::hint::black_box;
use std::num::NonZero;
use std::time::Instant;

fn seconds<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64()
}

fn row(what: &str, ours: f64, limit: f64, naive: Option<(&str, f64)>) {
    let naive = match naive {
        Some((how, naive)) => format!("{how}: {naive:.3} s, {:.0} times as long", naive / ours),
        None => String::new(),
    };
    println!("{what:<44} {ours:>7.3} s   (under {limit} s)   {naive}");
}

/// Returns a sequence of pseudorandom numbers below `below` that is the same in every run.
fn numbers(below: u64) -> impl FnMut() -> u64 {
    let mut state = 88_172_645_463_325_252u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    }
}

fn disks(count: usize) -> Vec<Disk> {
    let mut next = numbers(20);
    (0..count)
        .map(|_| Disk {
            size: (1 + next()) * 1_000_000_000_000,
            price: None,
        })
        .collect()
}

/// Simulates every chunk in the simple way: sorts the devices again each time and stores every chunk.
fn naive_raid1(sizes: &[u64]) -> u64 {
    let mut free = sizes.to_vec();
    let mut chunks = Vec::new();
    loop {
        free.sort_by(|a, b| b.cmp(a));
        let size = free[1].min(1 << 30);
        if size < 1 << 20 {
            return chunks.iter().sum();
        }
        free[0] -= size;
        free[1] -= size;
        chunks.push(size);
    }
}

/// Simulates every hour in the simple way.
fn naive_years(disks: u64, survives: u64, afr: f64, repair_hours: f64, years: u64) -> u64 {
    let mut next = numbers(1 << 53);
    let mut chance = move || next() as f64 / (1u64 << 53) as f64;
    let fails = -(-afr).ln_1p() / HOURS_A_YEAR;
    let mut lost = 0;
    for _ in 0..years {
        let mut failed = 0;
        for _ in 0..HOURS_A_YEAR as u64 {
            if chance() < fails * (disks - failed) as f64 {
                failed += 1;
            }
            if failed > 0 && chance() < failed as f64 / repair_hours {
                failed -= 1;
            }
            if failed > survives {
                lost += 1;
                break;
            }
        }
    }
    lost
}

fn recording(datasets: usize, snapshots: usize) -> String {
    let mut text = String::new();
    for d in 0..datasets {
        let _ = writeln!(
            text,
            "p/d{d}\tused\t1000\t-\np/d{d}\treferenced\t9000\t-\np/d{d}\twritten\t10\t-"
        );
        if d > 0 {
            let _ = writeln!(text, "p/d{d}\torigin\tp/d{}@s{}\t-", d / 2, d % snapshots);
        }
        for s in 0..snapshots {
            let _ = writeln!(
                text,
                "p/d{d}@s{s}\tused\t10\t-\np/d{d}@s{s}\treferenced\t9000\t-\np/d{d}@s{s}\twritten\t20\t-"
            );
        }
    }
    text
}

/// Finds the dataset of each of the first `some` snapshots in the simple way, by searching all names.
fn naive_clones(text: &str, some: usize) -> usize {
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    names.dedup();
    let snapshots = names.iter().rev().filter_map(|name| name.split_once('@'));
    snapshots
        .take(some)
        .filter(|(dataset, _)| names.iter().any(|name| name == dataset))
        .count()
}

fn main() {
    let context = Context::default();
    let few = disks(24);
    row(
        "all layouts of 24 unequal disks",
        seconds(|| search(&few, &[], &context)),
        1.0,
        None,
    );
    let many = disks(200);
    row(
        "all layouts of 200 unequal disks",
        seconds(|| search(&many, &[], &context)),
        5.0,
        None,
    );
    let most: Vec<Disk> = (0..1024u64)
        .map(|i| Disk {
            size: 1_000_000_000_000 + i * 18_769_531_250,
            price: None,
        })
        .collect();
    row(
        "all layouts of 1,024 unequal disks",
        seconds(|| search(&most, &[], &context)),
        10.0,
        None,
    );
    let sizes: Vec<u64> = many.iter().map(|disk| disk.size).collect();
    row(
        "btrfs raid1 over 200 disks",
        seconds(|| simulate_filesystem(&sizes, Profile::Raid1, Profile::Raid1)),
        5.0,
        Some(("every chunk", seconds(|| naive_raid1(&sizes)))),
    );
    let text = recording(1000, 100);
    row(
        "100,000 snapshots, 999 clones: read and report",
        seconds(|| {
            Graph::new(parse_zfs_get("bench", &text).unwrap()).map(|graph| report(&graph, None))
        }),
        1.0,
        Some((
            "walking through all names, from 1,000",
            seconds(|| naive_clones(&text, 1_000)) * 100.0,
        )),
    );
    let group = DiskGroup {
        disks: 8,
        survives: 2,
        rebuild_reads: 0.0,
    };
    let threads = NonZero::new(2).unwrap_or(NonZero::<usize>::MIN);
    let years = 1_000_000;
    let naive = seconds(|| naive_years(8, 2, 0.015, 48.0, 2_000)) * years as f64 / 2_000.0;
    row(
        "1,000,000 array-years of 8 disks, 2 threads",
        seconds(|| simulate_arrays(group, &Assumptions::default(), years, 1, threads)),
        2.0,
        Some(("hour by hour, from 2,000 years", naive)),
    );
}

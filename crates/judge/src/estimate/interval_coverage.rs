//! Measures how often the 95 % interval contains the true value, with recorded noise. The test prints the table in
//! `docs/src/statistics.md`: `cargo test -p assay-judge coverage -- --nocapture`.

use super::*;
use crate::sample_figures::sum_workers;
use assay_model::sample::{Latency, Operation, Operations, Worker};
use assay_model::{Bytes, Histogram, Nanos};
use rand::{RngExt as _, SeedableRng as _};
use std::fmt::Write as _;

/// Recorded rounds as (name in the table, lines of JSON).
const RECORDS: [(&str, &str); 2] = [
    (
        "direct, depth 16",
        include_str!("../../fixtures/noise/direct_qd16.jsonl"),
    ),
    (
        "buffered, fsync",
        include_str!("../../fixtures/noise/buffered_fsync.jsonl"),
    ),
];
const DRAWS: usize = 250;
const BOOK: &str = include_str!("../../../../docs/src/statistics.md");

/// Parses a recorded round. Its latencies interpolate the recorded percentiles linearly on the log
/// scale; latencies beyond p99.9 do not affect a p99.
fn parse_round(line: &str) -> FiguresByDirection {
    let record: serde_json::Value = serde_json::from_str(line).unwrap();
    let get = |key: &str| record[key].as_f64().unwrap();
    let knots = [
        (0.0, get("p50") / 2.0),
        (0.5, get("p50")),
        (0.99, get("p99")),
        (0.999, get("p999").max(get("p99"))),
        (1.0, get("p999").max(get("p99")) * 1.5),
    ];
    let ios = (get("iops") * 2.0).round();
    let mut histogram = Histogram::default();
    for pair in knots.windows(2) {
        const STEPS: u32 = 40;
        let ((p0, v0), (p1, v1)) = (pair[0], pair[1]);
        for step in 0..STEPS {
            let part = (f64::from(step) + 0.5) / f64::from(STEPS);
            let value = (v0.ln() + (v1.ln() - v0.ln()) * part).exp();
            // fio's bins: 64 for each power of two.
            let bin = 2f64.powf(((value.log2() * 64.0).floor() + 0.5) / 64.0);
            let count = (ios * (p1 - p0) / f64::from(STEPS)).round();
            histogram.record(bin as u64, count as u64);
        }
    }
    let write = Operations {
        bytes: Bytes(ios as u64 * 4096),
        count: ios as u64,
        runtime: Nanos(2_000_000_000),
        per_s: get("iops"),
        bytes_per_s: get("iops") * 4096.0,
        clat: Latency {
            n: histogram.count(),
            mean: histogram.mean().unwrap(),
            histogram,
            ..Latency::default()
        },
        ..Operations::default()
    };
    let job = Worker::default().with(Operation::Write, write);
    let mut all = sum_workers(&[job]);
    all.retain(|direction, _| *direction == Direction::All);
    all
}

/// Computes how often (0 to 1) the interval of a draw contains the value of all recorded rounds pooled. A draw is a
/// selection of rounds.
fn measure_coverage(rounds: &[FiguresByDirection], draws: &[Vec<usize>], metric: Metric) -> f64 {
    let all: Vec<&FiguresByDirection> = rounds.iter().collect();
    let truth = pool_metrics(&all)[&metric].value;
    let holds = |draw: &&Vec<usize>| {
        let drawn: Vec<&FiguresByDirection> = draw.iter().map(|&i| &rounds[i]).collect();
        let interval = pool_metrics(&drawn)[&metric].to_estimate().interval;
        interval.is_some_and(|interval| interval.low <= truth && truth <= interval.high)
    };
    draws.iter().filter(holds).count() as f64 / draws.len() as f64
}

fn render_coverage_table() -> String {
    let mut out = String::from(
        "| recorded rounds | drawn | metric | 3 rounds | 5 rounds | 10 rounds |\n|---|---|---|---|---|---|\n",
    );
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    for (name, lines) in RECORDS {
        let rounds: Vec<FiguresByDirection> = lines.lines().map(parse_round).collect();
        let total = rounds.len();
        for how in ["one by one", "in a row"] {
            let mut draws = |n: usize| -> Vec<Vec<usize>> {
                match how {
                    "in a row" => (0..total)
                        .map(|at| (at..at + n).map(|i| i % total).collect())
                        .collect(),
                    _ => (0..DRAWS)
                        .map(|_| (0..n).map(|_| random.random_range(0..total)).collect())
                        .collect(),
                }
            };
            let draws = [3, 5, 10].map(&mut draws);
            for quantity in [Quantity::Iops, Quantity::P99] {
                let metric = Metric::all(quantity);
                write!(out, "| {name} | {how} | {metric} |").unwrap();
                for draws in &draws {
                    let share = measure_coverage(&rounds, draws, metric);
                    write!(out, " {:.0} % |", share * 100.0).unwrap();
                }
                out.push('\n');
            }
        }
    }
    out
}

#[test]
fn the_book_states_the_coverage_that_is_measured() {
    let table = render_coverage_table();
    println!("{table}");
    assert!(
        BOOK.contains(&table),
        "docs/src/statistics.md states something else than:\n{table}"
    );
}

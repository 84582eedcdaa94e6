//! How often a change of a figure is told where there is none, and how many runs it takes where there is one:
//! `assay changed` beside E-divisive as Otava has it, over the same simulated series. See `bench/fleet/shifts/run`.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its arguments and writes the book"
)]

#[path = "../../book.rs"]
mod book;
mod edivisive;
#[path = "../../trials/noise.rs"]
#[allow(dead_code, reason = "trials need more of it")]
mod noise;
#[path = "../../trials/parallel.rs"]
mod parallel;

use assay_judge::shift::{LEVEL, RunFigure, find_shifts};
use noise::{Noise, normal};
use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use std::fmt::Write as _;
use std::io;

const BOOK: &str = "docs/src/statistics.md";
/// Series of a row: a share of 1 % is then known to 0.2 points.
const SERIES: usize = 2000;
/// Runs of a series, and the run with which it changes.
const RUNS: usize = 50;
const CHANGES: usize = 20;
/// Slots of a run.
const SLOTS: usize = 5;

/// How the runs of a series scatter.
enum Scatter {
    /// Runs of a few slots each from anywhere in a record, or made.
    Apart(Noise),
    /// 5 % of normal noise, and one run in ten takes half as long again or more.
    Slow,
    /// 5 %, each run begins where the one before was: a correlation of so much.
    Together(f64),
}

impl Scatter {
    fn runs(&self, random: &mut ChaCha8Rng) -> Vec<f64> {
        let even = |random: &mut ChaCha8Rng| 0.05 * normal(random);
        match self {
            Self::Apart(Noise::Recorded(slots)) => (0..RUNS)
                .map(|_| {
                    let from = random.random_range(0..slots.len());
                    let run = (from..from + SLOTS).map(|at| slots[at % slots.len()].exp());
                    (run.sum::<f64>() / SLOTS as f64).ln()
                })
                .collect(),
            Self::Apart(Noise::Even(variation)) => {
                (0..RUNS).map(|_| variation * normal(random)).collect()
            }
            Self::Apart(Noise::DriftAndOutliers) | Self::Slow => (0..RUNS)
                .map(|_| {
                    let slow = match random.random::<f64>() < 0.1 {
                        true => (1.5 + 2.0 * random.random::<f64>()).ln(),
                        false => 0.0,
                    };
                    even(random) - slow
                })
                .collect(),
            Self::Together(inherited) => {
                let mut level = even(random);
                let fresh = (1.0 - inherited * inherited).sqrt();
                (0..RUNS)
                    .map(|_| {
                        let now = level;
                        level = inherited * level + fresh * even(random);
                        now
                    })
                    .collect()
            }
        }
    }
}

/// What became of a series that was looked at after each run.
#[derive(Clone, Copy)]
struct Seen {
    /// A change was told before there was one.
    early: bool,
    /// Runs after the change until it was told, the first of them counted.
    after: Option<usize>,
    /// The run that was named, and whether the interval holds the truth.
    located: Option<(bool, bool)>,
}

fn ours(logs: &[f64], random: &mut ChaCha8Rng, effect: f64) -> Seen {
    let points: Vec<RunFigure> = logs
        .iter()
        .map(|&log| RunFigure {
            log,
            tie: random.random(),
        })
        .collect();
    // What is told of a series does not depend on how often it was looked at.
    let told = find_shifts(&points, LEVEL);
    let first = told.first();
    let noticed = first.map(|shift| shift.noticed);
    // As it is told on the day on which it is noticed.
    let located = noticed.filter(|at| *at >= CHANGES).and_then(|at| {
        let then = find_shifts(&points[..=at], LEVEL);
        let shift = then.first()?;
        let holds = shift
            .interval
            .is_some_and(|range| range.low.ln() <= effect && effect <= range.high.ln());
        Some((shift.at.abs_diff(CHANGES) <= 1, holds))
    });
    Seen {
        early: noticed.is_some_and(|at| at < CHANGES),
        after: noticed
            .filter(|at| *at >= CHANGES)
            .map(|at| at + 1 - CHANGES),
        located,
    }
}

fn otava(logs: &[f64]) -> Seen {
    let noticed = (2..logs.len()).find(|&at| !edivisive::changes(&logs[..=at]).is_empty());
    Seen {
        early: noticed.is_some_and(|at| at < CHANGES),
        after: noticed
            .filter(|at| *at >= CHANGES)
            .map(|at| at + 1 - CHANGES),
        located: None,
    }
}

fn row(name: &str, scatter: &Scatter, effect: f64, series: usize) -> String {
    let cell = format!("{name} {effect}");
    let seen = parallel::repeat(&cell, series, |_, random| {
        let mut logs = scatter.runs(random);
        for log in &mut logs[CHANGES..] {
            *log += effect;
        }
        [otava(&logs), ours(&logs, random, effect)]
    });
    let share = |hits: usize, of: usize| match of {
        0 => "–".to_owned(),
        _ => format!("{:.1} %", 100.0 * hits as f64 / of as f64),
    };
    let side = |which: usize| {
        let all: Vec<Seen> = seen.iter().map(|both| both[which]).collect();
        let mut after: Vec<usize> = all.iter().filter_map(|seen| seen.after).collect();
        after.sort_unstable();
        let early = all.iter().filter(|seen| seen.early).count();
        if effect == 0.0 {
            return [
                share(early + after.len(), series),
                String::new(),
                String::new(),
            ];
        }
        let middle = after
            .get(after.len() / 2)
            .map_or("–".to_owned(), ToString::to_string);
        let soon = after.iter().filter(|runs| **runs <= 10).count();
        [share(early, series), share(soon, series), middle]
    };
    let located: Vec<(bool, bool)> = seen.iter().filter_map(|both| both[1].located).collect();
    let right = located.iter().filter(|one| one.0).count();
    let holds = located.iter().filter(|one| one.1).count();
    let [ours, otava] = [side(1), side(0)];
    let change = match effect {
        0.0 => "none".to_owned(),
        _ => format!("{:+.0} %", 100.0 * effect.exp_m1()),
    };
    let (right, holds) = match effect {
        0.0 => (String::new(), String::new()),
        _ => (share(right, located.len()), share(holds, located.len())),
    };
    let cells = [
        &ours[0], &ours[1], &ours[2], &right, &holds, &otava[0], &otava[1], &otava[2],
    ];
    let mut line = format!("| {name} | {change} |");
    for cell in cells {
        let _ = write!(line, " {cell} |");
    }
    line.push('\n');
    eprint!("{line}");
    line
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let into_book = arguments.iter().any(|argument| argument == "--book");
    let asked = arguments.iter().find_map(|n| n.parse().ok());
    let series = asked.unwrap_or(SERIES);
    let scatters = [
        ("even, 5 %", Scatter::Apart(Noise::Even(0.05))),
        ("one run in ten is slow", Scatter::Slow),
        ("recorded, direct writes", Scatter::Apart(noise::direct())),
        ("recorded, fsync", Scatter::Apart(noise::fsync())),
        ("correlated, 0.3", Scatter::Together(0.3)),
        ("correlated, 0.7", Scatter::Together(0.7)),
    ];
    let mut table = format!(
        "{series} series a row, {RUNS} runs each, tested after every run. A change begins with run {}.\n\n\
         | noise | change | assay: false reports | reported within 10 runs | runs until the report (median) | change placed within ± 1 run | interval holds | E-divisive: false reports | within 10 runs | runs |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        CHANGES + 1
    );
    for (name, scatter) in &scatters {
        for effect in [0.0, 0.95f64.ln(), 0.85f64.ln(), 0.7f64.ln()] {
            table += &row(name, scatter, effect, series);
        }
    }
    match into_book {
        true => book::put(BOOK, "shifts", &table),
        false => {
            print!("{table}");
            Ok(())
        }
    }
}

//! Simulates watches of disks whose truth is known and prints how they end, as Markdown.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its arguments and writes the book"
)]

#[path = "../book.rs"]
mod book;
mod model;

use assay_judge::sibling_disks::compare_siblings;
use model::{EQUAL, Model, ends};
use std::fmt::Write as _;
use std::{io, thread};

/// Watches of a cell of equal disks: a share of 0.1 % is then known to 0.03 points.
const EQUALS: u32 = 10_000;
/// Watches of a cell with a slow disk: a share is known to 1.6 points at worst.
const SLOWS: u32 = 1000;
const BOOK: &str = "docs/src/disks.md";

/// Scatter, and how long a state lasts: standard deviation of the logarithm and correlation.
const NOISES: [(f64, f64); 9] = [
    (0.3, 0.0),
    (0.5, 0.0),
    (1.5, 0.0),
    (0.3, 0.8),
    (0.5, 0.8),
    (0.3, 0.9),
    (0.5, 0.9),
    (0.3, 0.97),
    (1.0, 0.97),
];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let into_book = arguments.iter().any(|argument| argument == "--book");
    let factor = arguments.iter().find_map(|n| n.parse::<f64>().ok());
    let factor = factor.unwrap_or(1.0);
    let table = table(factor);
    print!("{table}");
    match into_book {
        true => book::put(BOOK, "disks", &table),
        false => Ok(()),
    }
}

fn table(factor: f64) -> String {
    let mut text = String::from(
        "| disks | scatter | lasting | equal: accused, cleared | 3× slower: found, cleared | 5×: found, cleared |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut rows: Vec<(String, Model)> = Vec::new();
    for disks in [2, 3, 8] {
        for (spread, inherits) in NOISES {
            let model = Model {
                disks,
                spread,
                inherits,
                ..EQUAL
            };
            rows.push((disks.to_string(), model));
        }
    }
    for (disks, active, name) in [(3, 2, "3, two at work"), (8, 2, "8, two at work")] {
        let model = Model {
            disks,
            active,
            ..EQUAL
        };
        rows.push((name.to_owned(), model));
    }
    for (spread, inherits, own) in [
        (0.3, 0.8, 0.5),
        (0.3, 0.9, 0.5),
        (0.7, 0.9, 0.7),
        (0.7, 0.97, 0.7),
    ] {
        let model = Model {
            disks: 2,
            spread,
            inherits,
            own,
            ..EQUAL
        };
        rows.push((format!("2, and {own} of its own"), model));
    }
    for (spread, inherits) in [(0.5, 0.8), (0.3, 0.9)] {
        let model = Model {
            disks: 2,
            spread,
            inherits,
            windows: 600,
            ..EQUAL
        };
        rows.push(("2, ten minutes".to_owned(), model));
    }
    for disks in [2, 8] {
        let model = Model {
            disks,
            cleans: true,
            spread: 0.3,
            ..EQUAL
        };
        rows.push((format!("{disks}, clean up"), model));
    }
    let line = |(name, model): &(String, Model)| {
        let count = |n: u32| (f64::from(n) * factor).max(10.0) as u32;
        let cell = |slow: f64, watches: u32| ends(Model { slow, ..*model }, count(watches), 1);
        let equal = cell(1.0, EQUALS);
        let (three, five) = (cell(3.0, SLOWS), cell(5.0, SLOWS));
        let percent = |share: f64| format!("{:.1}", share * 100.0);
        format!(
            "| {name} | {} | {} | {:.3}, {} | {}, {} | {}, {} |\n",
            model.spread,
            model.inherits,
            equal.accused * 100.0,
            percent(equal.cleared),
            percent(three.found),
            percent(three.cleared),
            percent(five.found),
            percent(five.cleared),
        )
    };
    let threads = thread::available_parallelism().map_or(1, |n| n.get());
    let lines: Vec<Vec<String>> = thread::scope(|scope| {
        let (line, rows) = (&line, &rows);
        let workers: Vec<_> = (0..threads)
            .map(|at| {
                scope.spawn(move || rows.iter().skip(at).step_by(threads).map(line).collect())
            })
            .collect();
        // A worker that panicked has said why.
        workers
            .into_iter()
            .flat_map(|worker| worker.join())
            .collect()
    });
    for at in 0..rows.len() {
        if let Some(line) = lines
            .get(at % threads)
            .and_then(|part| part.get(at / threads))
        {
            let _ = write!(text, "{line}");
        }
    }
    text
}

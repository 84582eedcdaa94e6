//! Simulates trials whose truth is known and prints how often the rule is right, as Markdown.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod noise;
mod parallel;
mod tables;

use std::time::Instant;

/// Repetitions of a cell: shares are then known to 1.1 percentage points at most, 0.5 near 5 %.
const REPETITIONS: usize = 2000;

fn main() {
    let asked = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let n = asked.unwrap_or(REPETITIONS).max(10);
    let start = Instant::now();
    println!("{}", tables::verdicts(n));
    eprintln!("{:.0} s", start.elapsed().as_secs_f64());
}

//! Simulates trials whose truth is known and prints how often the rule is right, as Markdown.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads the clock and writes the book"
)]

mod book;
mod noise;
mod parallel;
mod slots;
mod speed;
mod stalls;
mod tables;
mod unsimulated;

use std::io;
use std::time::Instant;

/// Repetitions of a cell: a share is then known to 1.1 points (one standard error) at worst, and to
/// 0.5 where it is 5 %.
const REPETITIONS: usize = 2000;
/// Cells that take long get a tenth of them (3.5 points at worst, 1.5 at 5 %), some a quarter.
const COSTLY: usize = 10;

/// Makes a table of so many repetitions a row.
type Table = fn(usize) -> String;

fn main() -> io::Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let into_book = arguments.iter().any(|argument| argument == "--book");
    arguments.retain(|argument| argument != "--book");
    let asked = arguments.first().and_then(|n| n.parse().ok());
    let n = asked.unwrap_or(REPETITIONS).max(2 * COSTLY);
    let few = n / COSTLY;
    let only = arguments.get(1).map_or("", String::as_str);
    let tables: [(&str, usize, Table); 10] = [
        ("Verdicts", n, tables::verdicts),
        ("Gains around the margin", n, tables::negligible),
        ("Rare slow slots", n / 2, stalls::stalls),
        ("The interval", few, unsimulated::coverage),
        ("Guardrails", n, unsimulated::guards),
        ("Failures", n / 4, unsimulated::failures),
        ("Campaigns", few, unsimulated::campaigns),
        ("Strict levels", few, unsimulated::strict),
        ("Sides made anew", n, unsimulated::makings),
        ("Minutes to a verdict", n / 4, slots::minutes),
    ];
    for (title, n, table) in tables {
        if !title.starts_with(only) {
            continue;
        }
        let start = Instant::now();
        let table = format!("{n} repetitions a row.\n\n{}", table(n));
        println!("### {title}\n\n{table}");
        if into_book {
            book::put(title, &table)?;
        }
        eprintln!("{title}: {:.0} s", start.elapsed().as_secs_f64());
    }
    eprintln!("{}", speed::report());
    Ok(())
}

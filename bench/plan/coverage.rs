//! How often the interval of dates of `assay plan capacity` holds, as Markdown.
#![allow(
    clippy::disallowed_methods,
    reason = "a benchmark reads its arguments and writes the book"
)]

#[path = "../book.rs"]
mod book;
mod histories;

use histories::{KINDS, ask};
use std::io;

/// Histories of a cell, with three dates each.
const HISTORIES: u64 = 200;
const BOOK: &str = "docs/src/plan.md";

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let into_book = arguments.iter().any(|argument| argument == "--book");
    let asked = arguments.iter().find_map(|n| n.parse().ok());
    let mut table = String::from(
        "| history | points | predicted dates | true date within, % | without a latest date, % | self-test, % |\n\
         |---|---|---|---|---|---|\n",
    );
    for (name, kind) in KINDS {
        for n in [12, 60, 365] {
            let found = ask(kind, n, asked.unwrap_or(HISTORIES), 1);
            table += &format!(
                "| {name} | {n} | {} | {:.1} | {:.0} | {:.1} |\n",
                found.said,
                found.percent(),
                f64::from(found.open) * 100.0 / f64::from(found.said.max(1)),
                f64::from(found.walked.0) * 100.0 / f64::from(found.walked.1.max(1)),
            );
        }
    }
    print!("{table}");
    match into_book {
        true => book::put(BOOK, "capacity", &table),
        false => Ok(()),
    }
}

//! Simulates sessions of tuning on machines whose truth is known, and prints what they keep, claim and
//! miss, as Markdown.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

mod machine;
#[path = "../trials/noise.rs"]
#[allow(dead_code, reason = "shared with the bench of trials")]
mod noise;
#[path = "../trials/parallel.rs"]
mod parallel;
mod planted;
mod stream;
mod tables;
mod world;

use std::time::Instant;
use stream::Kind;

/// Sessions of a cell.
const SESSIONS: usize = 900;

/// Makes a table of so many sessions a row.
type Table = fn(usize, &[Kind]) -> String;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked = arguments.first().and_then(|n| n.parse().ok());
    let n: usize = asked.unwrap_or(SESSIONS);
    let only = arguments.get(1).map_or("", String::as_str);
    let noise = arguments.get(2).map_or("", String::as_str);
    let kinds: Vec<Kind> = Kind::ALL
        .into_iter()
        .filter(|kind| kind.name().starts_with(noise))
        .collect();
    let tables: [(&str, Table); 7] = [
        ("Thirty minutes", tables::thirty),
        ("Two hours", tables::two_hours),
        ("Without a screen", tables::without_screen),
        ("Guardrail", tables::guarded),
        ("Met", tables::met),
        ("Planted machines", planted::table),
        ("Commands", tables::commands),
    ];
    for (title, table) in tables {
        if title.starts_with(only) {
            let start = Instant::now();
            println!("### {title}\n\n{n} sessions a row.\n\n{}", table(n, &kinds));
            eprintln!("{title}: {:.0} s", start.elapsed().as_secs_f64());
        }
    }
}

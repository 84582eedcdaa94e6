//! One row for each workload, and one for each sample.

use super::{mark, tinted};
use crate::odd_round::OddRound;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Figures, Judged, WorkloadResult};
use assay_render::Style;
use assay_render::text::{clean, left, right, width};
use assay_render::units::{NONE, plus_minus, value};

const QUANTITIES: [Quantity; 5] = [
    Quantity::Iops,
    Quantity::Throughput,
    Quantity::P50,
    Quantity::P99,
    Quantity::P999,
];

struct Row {
    name: String,
    validity: Validity,
    cells: Vec<String>,
    /// A line below it.
    note: Option<String>,
}

/// Columns right-aligned, as wide as they need to be; a name that leaves no room for them stands
/// on a line of its own.
fn print(headings: &[&str], rows: &[Row], out: &mut String, style: Style) {
    let columns: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(i, heading)| {
            let cells = rows
                .iter()
                .filter_map(|row| row.cells.get(i))
                .map(|cell| width(cell));
            cells.chain([width(heading)]).max().unwrap_or(0)
        })
        .collect();
    let figures: usize = columns.iter().map(|column| column + 2).sum();
    let longest = rows.iter().map(|row| width(&row.name)).max().unwrap_or(0);
    let room = style.columns().saturating_sub(figures + 4);
    let names = longest.min(room);
    let line = |cells: &mut dyn Iterator<Item = String>| -> String {
        cells
            .zip(&columns)
            .map(|(cell, &column)| format!("  {}", right(&cell, column)))
            .collect()
    };
    let head = line(&mut headings.iter().map(|heading| (*heading).to_owned()));
    out.push_str(&format!(
        "\n{}\n",
        style.dim(&format!("    {}{head}", left("", names)))
    ));
    for row in rows {
        let lead = format!("  {} ", left(mark(row.validity), 1));
        let cells = line(&mut row.cells.iter().cloned());
        let text = match width(&row.name) > names {
            true => format!("{lead}{}\n    {}{cells}", row.name, left("", names)),
            false => format!("{lead}{}{cells}", left(&row.name, names)),
        };
        let text: Vec<String> = text
            .lines()
            .map(|line| tinted(style, row.validity, line))
            .collect();
        out.push_str(&text.join("\n"));
        out.push('\n');
        if let Some(note) = &row.note {
            style.paragraph(out, "", 6, note);
        }
    }
}

/// A table of results, best read when they are few; `rates` is what operations per second are called.
pub(super) fn table(
    judged: &Judged,
    results: &[&WorkloadResult],
    rates: &str,
    out: &mut String,
    style: Style,
) {
    let rows: Vec<Row> = results
        .iter()
        .map(|result| {
            let estimate = |quantity| result.estimates.get(&Metric::all(quantity));
            let mut cells: Vec<String> = QUANTITIES
                .into_iter()
                .map(|q| estimate(q).map_or(NONE.to_owned(), |found| value(q, found.value)))
                .collect();
            cells.insert(
                1,
                estimate(Quantity::Iops).map(plus_minus).unwrap_or_default(),
            );
            Row {
                name: clean(&result.workload),
                validity: result.validity,
                cells,
                note: OddRound::find(judged, result).map(|odd| odd.describe()),
            }
        })
        .collect();
    print(
        &[rates, "±", "MB/s", "p50", "p99", "p99.9"],
        &rows,
        out,
        style,
    );
}

/// A table of samples in the order in which they were taken.
pub(super) fn samples(judged: &Judged, target: &str, rates: &str, out: &mut String, style: Style) {
    let cell = |figures: &Figures, quantity| {
        let figure = figures.get(&Metric::all(quantity));
        figure.map_or(NONE.to_owned(), |figure| value(quantity, *figure))
    };
    let rows: Vec<Row> = judged
        .samples
        .iter()
        .filter(|sample| sample.target == target)
        .map(|sample| Row {
            name: format!("{} {}", clean(&sample.workload), sample.round),
            validity: sample.validity,
            cells: QUANTITIES
                .into_iter()
                .map(|q| cell(&sample.figures, q))
                .collect(),
            note: None,
        })
        .collect();
    super::section(
        "Samples (workload and round, as they were taken)",
        out,
        style,
    );
    print(&[rates, "MB/s", "p50", "p99", "p99.9"], &rows, out, style);
}

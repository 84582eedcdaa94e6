//! Tables with one row for each workload, and with one row for each sample. Grids are in
//! `grid_table`.

use super::{tint_validity, validity_mark};
use crate::odd_round::find_odd_round;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Figures, Judged, JudgedSample, WorkloadResult};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right};
use assay_render::units::{NONE, format_plus_minus, format_value};

const QUANTITIES: [Quantity; 5] = [
    Quantity::Iops,
    Quantity::Throughput,
    Quantity::P50,
    Quantity::P99,
    Quantity::P999,
];

struct TextRow {
    name: String,
    validity: Validity,
    cells: Vec<String>,
    /// Line that is printed below the row, if any.
    note: Option<String>,
}

/// Writes right-aligned columns, each as wide as needed. A name that leaves no room for the columns gets its own line.
fn write_rows(headings: &[&str], rows: &[TextRow], out: &mut String, style: Style) {
    let columns: Vec<usize> = headings
        .iter()
        .enumerate()
        .map(|(i, heading)| {
            let cells = rows
                .iter()
                .filter_map(|row| row.cells.get(i))
                .map(|cell| measure_width(cell));
            cells.chain([measure_width(heading)]).max().unwrap_or(0)
        })
        .collect();
    let figures: usize = columns.iter().map(|column| column + 2).sum();
    let longest = rows
        .iter()
        .map(|row| measure_width(&row.name))
        .max()
        .unwrap_or(0);
    let room = style.columns().saturating_sub(figures + 4);
    let names = longest.min(room);
    let line = |cells: &mut dyn Iterator<Item = String>| -> String {
        cells
            .zip(&columns)
            .map(|(cell, &column)| format!("  {}", pad_left(&cell, column)))
            .collect()
    };
    let head = line(&mut headings.iter().map(|heading| (*heading).to_owned()));
    out.push_str(&format!(
        "\n{}\n",
        style.dim(&format!("    {}{head}", pad_right("", names)))
    ));
    for row in rows {
        let lead = format!("  {} ", pad_right(validity_mark(row.validity), 1));
        let cells = line(&mut row.cells.iter().cloned());
        let text = match measure_width(&row.name) > names {
            true => format!("{lead}{}\n    {}{cells}", row.name, pad_right("", names)),
            false => format!("{lead}{}{cells}", pad_right(&row.name, names)),
        };
        let text: Vec<String> = text
            .lines()
            .map(|line| tint_validity(style, row.validity, line))
            .collect();
        out.push_str(&text.join("\n"));
        out.push('\n');
        if let Some(note) = &row.note {
            style.write_paragraph(out, "", 6, note);
        }
    }
}

/// Writes a table of results. `rates` is the heading of operations per second.
pub(super) fn write_results_table(
    judged: &Judged,
    results: &[&WorkloadResult],
    rates: &str,
    out: &mut String,
    style: Style,
) {
    let rows: Vec<TextRow> = results
        .iter()
        .map(|result| {
            let estimate = |quantity| result.estimates.get(&Metric::all(quantity));
            let mut cells: Vec<String> = QUANTITIES
                .into_iter()
                .map(|q| estimate(q).map_or(NONE.to_owned(), |found| format_value(q, found.value)))
                .collect();
            cells.insert(
                1,
                estimate(Quantity::Iops)
                    .map(format_plus_minus)
                    .unwrap_or_default(),
            );
            TextRow {
                name: escape_line(&result.workload),
                validity: result.validity,
                cells,
                note: find_odd_round(judged, result).map(|odd| odd.describe()),
            }
        })
        .collect();
    write_rows(
        &[rates, "±", "MB/s", "p50", "p99", "p99.9"],
        &rows,
        out,
        style,
    );
}

/// Writes a table of samples in the order in which they were taken.
pub(super) fn write_samples_table(
    judged: &Judged,
    target: &str,
    rates: &str,
    out: &mut String,
    style: Style,
) {
    let cell = |figures: &Figures, quantity| {
        let figure = figures.get(&Metric::all(quantity));
        figure.map_or(NONE.to_owned(), |figure| format_value(quantity, *figure))
    };
    let odd_round_of = |sample: &JudgedSample| {
        let same = |result: &&WorkloadResult| {
            result.workload == sample.workload && result.target == sample.target
        };
        let result = judged.results.iter().find(same)?;
        find_odd_round(judged, result).filter(|odd| odd.contains(sample.round))
    };
    let rows: Vec<TextRow> = judged
        .samples
        .iter()
        .filter(|sample| sample.target == target)
        .map(|sample| TextRow {
            name: format!("{} {}", escape_line(&sample.workload), sample.round),
            validity: sample.validity,
            cells: QUANTITIES
                .into_iter()
                .map(|q| cell(&sample.figures, q))
                .collect(),
            note: odd_round_of(sample).map(|odd| odd.describe()),
        })
        .collect();
    super::write_section_heading(
        "Samples (workload and round, as they were taken)",
        out,
        style,
    );
    write_rows(&[rates, "MB/s", "p50", "p99", "p99.9"], &rows, out, style);
}

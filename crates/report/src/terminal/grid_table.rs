//! A grid of block size × queue depth as one compact table. Results outside a grid are in
//! `result_tables`.

use super::{tint_validity, validity_mark};
use crate::odd_round::find_odd_round;
use crate::result_grid::ResultGrid;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::{Judged, WorkloadResult};
use assay_render::Style;
use assay_render::text::{escape_line, measure_width, pad_left, pad_right};
use assay_render::units::{NONE, format_value};

fn format_cell(result: Option<&WorkloadResult>, quantity: Quantity, marks: usize) -> String {
    let Some(result) = result else {
        return String::new();
    };
    let estimate = result.estimates.get(&Metric::all(quantity));
    let (text, mark) = match (result.validity, estimate) {
        (Validity::Void, _) => ("void".to_owned(), ""),
        (validity, Some(estimate)) => (
            format_value(quantity, estimate.value),
            validity_mark(validity),
        ),
        (validity, None) => (NONE.to_owned(), validity_mark(validity)),
    };
    format!("{text}{}", pad_right(mark, marks))
}

/// Writes a grid: rows are block sizes, columns are depths. IOPS and p99 are side by side if there is room, else one
/// below the other. Notes below the grid list the cells in which one round differs tenfold from the others.
pub(super) fn write_grid(grid: &ResultGrid, judged: &Judged, out: &mut String, style: Style) {
    let blocks = [(Quantity::Iops, "IOPS"), (Quantity::P99, "p99")];
    // A mark has a column of its own, so that figures stay aligned.
    let suspect = |result: &&WorkloadResult| result.validity == Validity::Suspect;
    let marks = usize::from(grid.cells.iter().flatten().any(suspect));
    let cells = |quantity| -> Vec<String> {
        let at = |(row, column)| format_cell(grid.cell(row, column), quantity, marks);
        let rows = 0..grid.block_sizes.len();
        rows.flat_map(|row| (0..grid.depths.len()).map(move |column| (row, column)))
            .map(at)
            .collect()
    };
    let depths: Vec<String> = grid
        .depths
        .iter()
        .map(|depth| format!("qd{depth}{}", " ".repeat(marks)))
        .collect();
    let tables: Vec<(&str, Vec<String>, usize)> = blocks
        .into_iter()
        .map(|(quantity, title)| {
            let cells = cells(quantity);
            let column = cells
                .iter()
                .chain(&depths)
                .map(|cell| measure_width(cell))
                .max()
                .unwrap_or(0);
            (title, cells, column + 1)
        })
        .collect();
    let names: Vec<String> = grid
        .block_sizes
        .iter()
        .map(|size| size.short().to_lowercase())
        .collect();
    let lead = names
        .iter()
        .map(|name| measure_width(name))
        .max()
        .unwrap_or(0)
        + 2;
    let together = lead
        + tables
            .iter()
            .map(|(_, _, column)| column * depths.len() + 1)
            .sum::<usize>();
    let groups: Vec<&[(&str, Vec<String>, usize)]> = match together <= style.columns() {
        true => vec![&tables[..]],
        false => tables.chunks(1).collect(),
    };
    out.push_str(&format!("\n{}\n", style.bold(&grid.title)));
    for group in groups {
        let mut titles = " ".repeat(lead);
        let mut heads = " ".repeat(lead);
        for (title, _, column) in group {
            titles.push_str(&pad_right(&format!("  {title}"), column * depths.len() + 1));
            heads.push(' ');
            heads.extend(depths.iter().map(|depth| pad_left(depth, *column)));
        }
        out.push_str(&format!(
            "{}\n{}\n",
            style.dim(titles.trim_end()),
            style.dim(heads.trim_end())
        ));
        for (row, name) in names.iter().enumerate() {
            out.push_str(&pad_left(name, lead));
            for (_, cells, column) in group {
                out.push(' ');
                for (at, text) in cells
                    .iter()
                    .enumerate()
                    .skip(row * depths.len())
                    .take(depths.len())
                {
                    let result = grid.cell(row, at % depths.len());
                    let text = pad_left(text, *column);
                    out.push_str(
                        &result.map_or(text.clone(), |r| tint_validity(style, r.validity, &text)),
                    );
                }
            }
            let kept = out.trim_end().len();
            out.truncate(kept);
            out.push('\n');
        }
    }
    for result in grid.cells.iter().flatten() {
        if let Some(odd) = find_odd_round(judged, result) {
            let note = format!("{}, {}", escape_line(&result.workload), odd.describe());
            style.write_paragraph(out, "", 2, &note);
        }
    }
}

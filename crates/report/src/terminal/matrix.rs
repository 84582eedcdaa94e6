//! A grid of block size × queue depth as one compact table.

use super::{mark, tinted};
use crate::grid::Grid;
use assay_model::criterion::{Metric, Quantity};
use assay_model::doubt::Validity;
use assay_model::result::WorkloadResult;
use assay_render::Style;
use assay_render::text::{left, right, width};
use assay_render::units::{NONE, value};

fn cell(result: Option<&WorkloadResult>, quantity: Quantity, marks: usize) -> String {
    let Some(result) = result else {
        return String::new();
    };
    let estimate = result.estimates.get(&Metric::all(quantity));
    let (text, mark) = match (result.validity, estimate) {
        (Validity::Void, _) => ("void".to_owned(), ""),
        (validity, Some(estimate)) => (value(quantity, estimate.value), mark(validity)),
        (validity, None) => (NONE.to_owned(), mark(validity)),
    };
    format!("{text}{}", left(mark, marks))
}

/// Rows are block sizes, columns are depths; IOPS and p99 side by side where there is room, else
/// below each other.
pub(super) fn table(grid: &Grid, out: &mut String, style: Style) {
    let blocks = [(Quantity::Iops, "IOPS"), (Quantity::P99, "p99")];
    // A mark has a column of its own, so that figures stay under each other.
    let suspect = |result: &&WorkloadResult| result.validity == Validity::Suspect;
    let marks = usize::from(grid.cells.iter().flatten().any(suspect));
    let cells = |quantity| -> Vec<String> {
        let at = |(row, column)| cell(grid.cell(row, column), quantity, marks);
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
                .map(|cell| width(cell))
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
    let lead = names.iter().map(|name| width(name)).max().unwrap_or(0) + 2;
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
            titles.push_str(&left(&format!("  {title}"), column * depths.len() + 1));
            heads.push(' ');
            heads.extend(depths.iter().map(|depth| right(depth, *column)));
        }
        out.push_str(&format!(
            "{}\n{}\n",
            style.dim(titles.trim_end()),
            style.dim(heads.trim_end())
        ));
        for (row, name) in names.iter().enumerate() {
            out.push_str(&right(name, lead));
            for (_, cells, column) in group {
                out.push(' ');
                for (at, text) in cells
                    .iter()
                    .enumerate()
                    .skip(row * depths.len())
                    .take(depths.len())
                {
                    let result = grid.cell(row, at % depths.len());
                    let text = right(text, *column);
                    out.push_str(
                        &result.map_or(text.clone(), |r| tinted(style, r.validity, &text)),
                    );
                }
            }
            let kept = out.trim_end().len();
            out.truncate(kept);
            out.push('\n');
        }
    }
}

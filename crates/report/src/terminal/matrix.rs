//! A grid of block size × queue depth as one compact table.

use super::{Style, mark};
use crate::format::{NONE, value};
use crate::grid::Grid;
use crate::text::{right, width};
use assay_model::criterion::{Metric, Quantity};
use assay_model::result::WorkloadResult;

fn cell(result: Option<&WorkloadResult>, quantity: Quantity) -> String {
    let Some(result) = result else {
        return String::new();
    };
    let estimate = result.estimates.get(&Metric::all(quantity));
    let text = estimate.map_or(NONE.to_owned(), |estimate| value(quantity, estimate.value));
    // The mark keeps its column, so that figures stay under each other.
    format!("{text}{}", crate::text::left(mark(result.validity), 1))
}

/// Rows are block sizes, columns are depths; IOPS and p99 side by side where there is room, else
/// below each other.
pub(super) fn table(grid: &Grid, out: &mut String, style: Style) {
    let blocks = [(Quantity::Iops, "IOPS"), (Quantity::P99, "p99")];
    let cells = |quantity| -> Vec<String> {
        let at = |(row, column)| cell(grid.cell(row, column), quantity);
        let rows = 0..grid.block_sizes.len();
        rows.flat_map(|row| (0..grid.depths.len()).map(move |column| (row, column)))
            .map(at)
            .collect()
    };
    let depths: Vec<String> = grid
        .depths
        .iter()
        .map(|depth| format!("qd{depth} "))
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
    let lead = names.iter().map(|name| width(name)).max().unwrap_or(0) + 4;
    let together = lead
        + tables
            .iter()
            .map(|(_, _, column)| column * depths.len() + 2)
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
            titles.push_str(&crate::text::left(
                &format!("  {title}"),
                column * depths.len() + 2,
            ));
            heads.push_str("  ");
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
                out.push_str("  ");
                for (at, text) in cells
                    .iter()
                    .enumerate()
                    .skip(row * depths.len())
                    .take(depths.len())
                {
                    let result = grid.cell(row, at % depths.len());
                    let text = right(text, *column);
                    out.push_str(
                        &result.map_or(text.clone(), |r| style.validity(r.validity, &text)),
                    );
                }
            }
            let kept = out.trim_end().len();
            out.truncate(kept);
            out.push('\n');
        }
    }
}

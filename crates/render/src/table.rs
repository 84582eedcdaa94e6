//! Text tables for a terminal. Each column is as wide as its widest cell. Markdown tables are in [`crate::markdown`].

use crate::text::{measure_width, pad_left, pad_right};

/// Text between two columns.
const GAP: &str = "  ";

/// Widths and alignments of the columns of a table.
#[derive(Clone, Debug)]
pub struct TableColumns {
    widths: Vec<usize>,
    sides: Vec<char>,
}

impl TableColumns {
    /// Measures the columns of these rows. There are as many columns as the longest row has. `sides` has one letter for
    /// each column: `l` for left-aligned, `r` for right-aligned.
    #[must_use]
    pub fn fit<C: AsRef<str>>(
        sides: &str,
        rows: impl IntoIterator<Item = impl IntoIterator<Item = C>>,
    ) -> Self {
        let sides: Vec<char> = sides.chars().collect();
        let mut widths: Vec<usize> = Vec::new();
        for row in rows {
            for (at, cell) in row.into_iter().take(sides.len()).enumerate() {
                widths.resize(widths.len().max(at + 1), 0);
                widths[at] = widths[at].max(measure_width(cell.as_ref()));
            }
        }
        Self { widths, sides }
    }

    /// Returns the width of a line in terminal columns.
    #[must_use]
    pub fn width(&self) -> usize {
        let gaps = self.widths.len().saturating_sub(1) * GAP.len();
        self.widths.iter().sum::<usize>() + gaps
    }

    /// Formats one line, without a newline and without trailing spaces.
    #[must_use]
    pub fn format_row<C: AsRef<str>>(&self, cells: impl IntoIterator<Item = C>) -> String {
        let columns = self.widths.iter().zip(&self.sides);
        let cells: Vec<String> = columns
            .zip(cells)
            .map(|((room, side), cell)| match side {
                'r' => pad_left(cell.as_ref(), *room),
                _ => pad_right(cell.as_ref(), *room),
            })
            .collect();
        cells.join(GAP).trim_end().to_owned()
    }
}

/// Renders a table with its headings. Every line is indented by `indent` spaces.
#[must_use]
pub fn render_table<C: AsRef<str>>(
    indent: usize,
    sides: &str,
    head: &[&str],
    rows: &[Vec<C>],
) -> String {
    let cells = |row: &'_ [C]| row.iter().map(|cell| cell.as_ref().to_owned()).collect();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    let columns = TableColumns::fit(sides, [&head].into_iter().chain(&rows));
    let pad = " ".repeat(indent);
    [&head]
        .into_iter()
        .chain(&rows)
        .map(|row| {
            format!(
                "{}\n",
                format!("{pad}{}", columns.format_row(row)).trim_end()
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_on_their_side_and_wide_characters_count() {
        let text = render_table(
            1,
            "lrl",
            &["n", "", "what"],
            &[vec!["数据", "7", "a"], vec!["x", "12", ""]],
        );
        assert_eq!(text, " n         what\n 数据   7  a\n x     12\n");
    }
}

//! Columns of text for a terminal, as wide as their widest cell.

use crate::text::{left, right, width};

/// Room between two columns.
const GAP: &str = "  ";

/// Widths and sides of columns.
#[derive(Clone, Debug)]
pub struct Columns {
    widths: Vec<usize>,
    sides: Vec<char>,
}

impl Columns {
    /// Columns that fit all rows, as many as the longest row has. `sides` has a letter for each
    /// column: `l` or `r`, the side on which its cells stand.
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
                widths[at] = widths[at].max(width(cell.as_ref()));
            }
        }
        Self { widths, sides }
    }

    /// Columns that a line takes.
    #[must_use]
    pub fn width(&self) -> usize {
        let gaps = self.widths.len().saturating_sub(1) * GAP.len();
        self.widths.iter().sum::<usize>() + gaps
    }

    /// One line without its end; nothing is filled up behind the last cell.
    #[must_use]
    pub fn line<C: AsRef<str>>(&self, cells: impl IntoIterator<Item = C>) -> String {
        let columns = self.widths.iter().zip(&self.sides);
        let cells: Vec<String> = columns
            .zip(cells)
            .map(|((room, side), cell)| match side {
                'r' => right(cell.as_ref(), *room),
                _ => left(cell.as_ref(), *room),
            })
            .collect();
        cells.join(GAP).trim_end().to_owned()
    }
}

/// A table with its headings, every line behind `indent` spaces.
#[must_use]
pub fn table<C: AsRef<str>>(indent: usize, sides: &str, head: &[&str], rows: &[Vec<C>]) -> String {
    let cells = |row: &'_ [C]| row.iter().map(|cell| cell.as_ref().to_owned()).collect();
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row)).collect();
    let columns = Columns::fit(sides, [&head].into_iter().chain(&rows));
    let pad = " ".repeat(indent);
    [&head]
        .into_iter()
        .chain(&rows)
        .map(|row| format!("{}\n", format!("{pad}{}", columns.line(row)).trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_stand_on_their_side_and_wide_characters_count() {
        let text = table(
            1,
            "lrl",
            &["n", "", "what"],
            &[vec!["数据", "7", "a"], vec!["x", "12", ""]],
        );
        assert_eq!(text, " n         what\n 数据   7  a\n x     12\n");
    }
}

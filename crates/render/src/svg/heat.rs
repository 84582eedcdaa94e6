//! A heat map: rows × columns of figures, coloured on a logarithmic scale.

use super::draw::{Anchor, Svg};
use super::palette::{STEPS, step};
use super::scale::Scale;
use assay_model::doubt::Validity;

/// One cell.
pub struct Cell {
    /// The figure that colours it; none leaves it uncoloured.
    pub value: Option<f64>,
    /// The figure as text.
    pub text: String,
    /// Suspect cells are marked with `?`, void ones are hatched.
    pub validity: Validity,
}

/// What a heat map shows.
pub struct Map {
    /// Unique on the page.
    pub id: String,
    /// Of the chart, for those who do not see it.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// Labels of the rows.
    pub rows: Vec<String>,
    /// Labels of the columns.
    pub columns: Vec<String>,
    /// Row by row; none for a place without a workload.
    pub cells: Vec<Option<Cell>>,
}

const LEFT: f64 = 38.0;
const TOP: f64 = 20.0;
const CELL: (f64, f64) = (74.0, 34.0);

/// The colour scale that several maps share.
#[must_use]
pub fn scale(values: impl Iterator<Item = f64>) -> Scale {
    Scale::log(values, 0.0, 1.0)
}

/// Draws the map with a scale from [`scale`].
#[must_use]
pub fn draw(map: &Map, scale: &Scale) -> String {
    let (columns, rows) = (map.columns.len(), map.rows.len());
    let size = (
        LEFT + columns as f64 * CELL.0,
        TOP + rows as f64 * CELL.1 + 1.0,
    );
    let mut svg = Svg::new(size.0, size.1);
    for (i, column) in map.columns.iter().enumerate() {
        svg.text(
            LEFT + (i as f64 + 0.5) * CELL.0,
            TOP - 7.0,
            Anchor::Middle,
            "ax",
            column,
        );
    }
    for (i, row) in map.rows.iter().enumerate() {
        svg.text(
            LEFT - 7.0,
            TOP + (i as f64 + 0.5) * CELL.1 + 4.0,
            Anchor::End,
            "ax",
            row,
        );
    }
    for (i, cell) in map.cells.iter().enumerate() {
        let (x, y) = (
            LEFT + (i % columns.max(1)) as f64 * CELL.0,
            TOP + (i / columns.max(1)) as f64 * CELL.1,
        );
        let (width, height) = (CELL.0 - 2.0, CELL.1 - 2.0);
        let middle = (x + width / 2.0, y + height / 2.0 + 4.0);
        match cell {
            None => svg.rect(x, y, width, height, "none"),
            Some(cell) if cell.validity == Validity::Void => {
                svg.rect(x, y, width, height, "none");
                svg.hatch(x, y, width, height);
                svg.rect(middle.0 - 17.0, middle.1 - 12.0, 34.0, 16.0, "paper");
                svg.text(middle.0, middle.1, Anchor::Middle, "bad", "void");
            }
            Some(cell) => {
                let level = step(scale.share(cell.value.unwrap_or(f64::NAN)));
                svg.rect(x, y, width, height, &format!("q{level}"));
                let doubt = if cell.validity == Validity::Suspect {
                    " ?"
                } else {
                    ""
                };
                let text = format!("{}{doubt}", cell.text);
                svg.text(
                    middle.0,
                    middle.1,
                    Anchor::Middle,
                    &format!("n i{level}"),
                    &text,
                );
                if cell.validity == Validity::Suspect {
                    svg.rect(x + 1.5, y + 1.5, width - 3.0, height - 3.0, "suspect");
                }
            }
        }
    }
    svg.finish(&map.id, &map.title, &map.description)
}

/// The key of a shared scale: its colours with the lowest and the highest figure.
#[must_use]
pub fn key(id: &str, title: &str, low: &str, high: &str) -> String {
    const SWATCH: f64 = 12.0;
    let label = |text: &str| text.chars().count() as f64 * 6.4;
    let (left, right) = (label(low) + 6.0, label(high) + 6.0);
    let mut svg = Svg::new(left + SWATCH * STEPS as f64 + right, 14.0);
    svg.text(left - 5.0, 11.0, Anchor::End, "ax n", low);
    for i in 0..STEPS {
        svg.rect(
            left + i as f64 * SWATCH,
            2.0,
            SWATCH,
            10.0,
            &format!("q{i}"),
        );
    }
    svg.text(
        left + SWATCH * STEPS as f64 + 5.0,
        11.0,
        Anchor::Start,
        "ax n",
        high,
    );
    svg.finish(
        id,
        title,
        &format!("Colours from {low} to {high}, logarithmic."),
    )
}

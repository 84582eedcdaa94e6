//! Heat map: a table of figures, coloured on a logarithmic scale. The colours are in `palette`.

use super::canvas::{Svg, TextAnchor};
use super::palette::{STEPS, choose_color_step};
use super::scale::AxisScale;
use assay_model::doubt::Validity;

/// A cell of a heat map.
pub struct HeatCell {
    /// Figure that determines the colour of the cell; `None` leaves the cell uncoloured.
    pub value: Option<f64>,
    /// Text that is written in the cell.
    pub text: String,
    /// Whether the figure is valid. Suspect cells are marked with `?`, void cells are hatched.
    pub validity: Validity,
}

/// Contents of a heat map.
pub struct HeatMap {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Labels of the rows.
    pub rows: Vec<String>,
    /// Labels of the columns.
    pub columns: Vec<String>,
    /// Cells in the order of rows; `None` for a cell without a workload.
    pub cells: Vec<Option<HeatCell>>,
}

const LEFT: f64 = 38.0;
const TOP: f64 = 20.0;
const CELL: (f64, f64) = (74.0, 34.0);

/// Builds the colour scale that several maps share.
#[must_use]
pub fn build_color_scale(values: impl Iterator<Item = f64>) -> AxisScale {
    AxisScale::log(values, 0.0, 1.0)
}

/// Draws a heat map as SVG, with a scale from [`build_color_scale`].
#[must_use]
pub fn draw_heat_map(map: &HeatMap, scale: &AxisScale) -> String {
    let (columns, rows) = (map.columns.len(), map.rows.len());
    let size = (
        LEFT + columns as f64 * CELL.0,
        TOP + rows as f64 * CELL.1 + 1.0,
    );
    let mut svg = Svg::new(size.0, size.1);
    for (i, column) in map.columns.iter().enumerate() {
        svg.add_text(
            LEFT + (i as f64 + 0.5) * CELL.0,
            TOP - 7.0,
            TextAnchor::Middle,
            "ax",
            column,
        );
    }
    for (i, row) in map.rows.iter().enumerate() {
        svg.add_text(
            LEFT - 7.0,
            TOP + (i as f64 + 0.5) * CELL.1 + 4.0,
            TextAnchor::End,
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
            None => svg.add_rect(x, y, width, height, "none"),
            Some(cell) if cell.validity == Validity::Void => {
                svg.add_rect(x, y, width, height, "none");
                svg.add_hatching(x, y, width, height);
                svg.add_rect(middle.0 - 17.0, middle.1 - 12.0, 34.0, 16.0, "paper");
                svg.add_text(middle.0, middle.1, TextAnchor::Middle, "bad", "void");
            }
            Some(cell) => {
                let level = choose_color_step(scale.fraction_of(cell.value.unwrap_or(f64::NAN)));
                svg.add_rect(x, y, width, height, &format!("q{level}"));
                let doubt = if cell.validity == Validity::Suspect {
                    " ?"
                } else {
                    ""
                };
                let text = format!("{}{doubt}", cell.text);
                svg.add_text(
                    middle.0,
                    middle.1,
                    TextAnchor::Middle,
                    &format!("n i{level}"),
                    &text,
                );
                if cell.validity == Validity::Suspect {
                    svg.add_rect(x + 1.5, y + 1.5, width - 3.0, height - 3.0, "suspect");
                }
            }
        }
    }
    svg.finish(&map.id, &map.title, &map.description)
}

/// Draws the key of a shared scale as SVG: its colours, with the lowest and the highest figure.
#[must_use]
pub fn draw_color_key(id: &str, title: &str, low: &str, high: &str) -> String {
    const SWATCH: f64 = 12.0;
    let label = |text: &str| text.chars().count() as f64 * 6.4;
    let (left, right) = (label(low) + 6.0, label(high) + 6.0);
    let mut svg = Svg::new(left + SWATCH * STEPS as f64 + right, 14.0);
    svg.add_text(left - 5.0, 11.0, TextAnchor::End, "ax n", low);
    for i in 0..STEPS {
        svg.add_rect(
            left + i as f64 * SWATCH,
            2.0,
            SWATCH,
            10.0,
            &format!("q{i}"),
        );
    }
    svg.add_text(
        left + SWATCH * STEPS as f64 + 5.0,
        11.0,
        TextAnchor::Start,
        "ax n",
        high,
    );
    svg.finish(
        id,
        title,
        &format!("Colours from {low} to {high}, logarithmic."),
    )
}

//! Diagram of layers as boxes from top to bottom, in which branches are further to the right. Diagrams of layers as
//! text are in `assay-report`.

use super::canvas::{Svg, TextAnchor};
use crate::text::wrap_lines;

/// A layer of the diagram, drawn as a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerBox {
    /// Number of branches that contain the layer, from 0. It determines the indentation.
    pub depth: usize,
    /// Whether the layer is the first layer of its branch.
    pub begins: bool,
    /// Kind and name of the layer.
    pub heading: String,
    /// Settings of the layer, as text in the box.
    pub text: String,
    /// Numbers of the remarks on the layer, which the box shows.
    pub marks: Vec<usize>,
}

const WIDTH: f64 = 820.0;
const INDENT: f64 = 28.0;
const GAP: f64 = 14.0;
const HEAD: f64 = 22.0;
const LINE: f64 = 15.0;
/// Minimum width of a box in pixels, even with many branches.
const NARROWEST: f64 = 320.0;
/// Approximate width of a character in pixels, from which the length of lines in a box is computed.
const COLUMN: f64 = 6.4;

/// Draws the diagram as SVG. In `items`, every layer must be followed by the layers below it.
#[must_use]
pub fn draw_stack(id: &str, title: &str, description: &str, items: &[LayerBox]) -> String {
    let left = |item: &LayerBox| (item.depth as f64 * INDENT).min(WIDTH - NARROWEST);
    let lines = |item: &LayerBox| match item.text.is_empty() {
        true => Vec::new(),
        false => {
            let columns = (WIDTH - left(item) - 24.0) / COLUMN;
            wrap_lines(&item.text, columns as usize)
        }
    };
    let boxes: Vec<(f64, Vec<String>)> =
        items.iter().map(|item| (left(item), lines(item))).collect();
    let height = |lines: &[String]| HEAD + 6.0 + lines.len() as f64 * LINE;
    let mut tops = Vec::with_capacity(items.len());
    let mut y = 1.0;
    for (_, lines) in &boxes {
        tops.push(y);
        y += height(lines) + GAP;
    }
    let mut svg = Svg::new(WIDTH, (y - GAP + 1.0).max(1.0));
    for (at, item) in items.iter().enumerate() {
        let (x, lines) = &boxes[at];
        let (top, tall) = (tops[at], height(lines));
        if let Some(parent) = find_item_above(items, at) {
            let (from_x, above_lines) = &boxes[parent];
            let bottom = tops[parent] + height(above_lines);
            match item.begins {
                // The connector goes down from the parent's corner, then right.
                true => {
                    let turn = from_x + INDENT / 2.0;
                    let middle = top + HEAD / 2.0 + 2.0;
                    svg.add_line((turn, bottom), (turn, middle), "base");
                    svg.add_line((turn, middle), (*x, middle), "base");
                }
                false => svg.add_line((x + INDENT / 2.0, bottom), (x + INDENT / 2.0, top), "base"),
            }
        }
        let class = if item.marks.is_empty() {
            "box"
        } else {
            "box noted"
        };
        svg.add_rect(*x, top, WIDTH - x - 1.0, tall, class);
        svg.add_text(
            x + 12.0,
            top + 17.0,
            TextAnchor::Start,
            "head",
            &item.heading,
        );
        if !item.marks.is_empty() {
            let numbers: Vec<String> = item.marks.iter().map(|n| format!("[{n}]")).collect();
            let right = WIDTH - 12.0;
            svg.add_text(
                right,
                top + 17.0,
                TextAnchor::End,
                "head",
                &numbers.join(" "),
            );
        }
        for (number, line) in lines.iter().enumerate() {
            let y = top + HEAD + 11.0 + number as f64 * LINE;
            svg.add_text(x + 12.0, y, TextAnchor::Start, "ax", line);
        }
    }
    svg.finish(id, title, description)
}

/// Finds the item directly above the item at `at`. This is the nearest earlier item on the same branches. For the first
/// item of a branch, it is the nearest earlier item that is on one branch fewer.
fn find_item_above(items: &[LayerBox], at: usize) -> Option<usize> {
    let item = &items[at];
    let depth = match item.begins {
        true => item.depth.checked_sub(1)?,
        false => item.depth,
    };
    items[..at].iter().rposition(|other| other.depth == depth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(depth: usize, begins: bool) -> LayerBox {
        LayerBox {
            depth,
            begins,
            heading: "disk <sda>".to_owned(),
            text: String::new(),
            marks: vec![1],
        }
    }

    #[test]
    fn what_stands_under_what() {
        let items = [
            item(0, false),
            item(1, true),
            item(1, false),
            item(1, true),
            item(2, true),
        ];
        let found: Vec<Option<usize>> = (0..5).map(|at| find_item_above(&items, at)).collect();
        assert_eq!(found, [None, Some(0), Some(1), Some(0), Some(3)]);
    }

    #[test]
    fn hostile_names_and_depths_are_drawn() {
        let picture = draw_stack("s", "t", "d", &[item(0, false), item(99, true)]);
        assert!(picture.contains("disk &lt;sda&gt;") && !picture.contains("NaN"));
        assert!(draw_stack("s", "t", "d", &[]).starts_with("<svg"));
    }
}

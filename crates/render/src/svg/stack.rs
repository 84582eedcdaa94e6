//! Layers as boxes, from the top down; branches go to the right.

use super::draw::{Anchor, Svg};
use crate::text::wrap;

/// A layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// On how many branches it lies.
    pub depth: usize,
    /// It begins a branch, and does not just go on with it.
    pub begins: bool,
    /// Its kind and name.
    pub heading: String,
    /// Its settings.
    pub text: String,
    /// The numbers of the remarks on it.
    pub marks: Vec<usize>,
}

const WIDTH: f64 = 820.0;
const INDENT: f64 = 28.0;
const GAP: f64 = 14.0;
const HEAD: f64 = 22.0;
const LINE: f64 = 15.0;
/// No box is narrower, however many branches it lies on.
const NARROWEST: f64 = 320.0;
/// Columns of the font are about so wide; a line must not run out of its box.
const COLUMN: f64 = 6.4;

/// The picture. Items come in the order of drawing: what is below an item follows it.
#[must_use]
pub fn stack(id: &str, title: &str, description: &str, items: &[Item]) -> String {
    let left = |item: &Item| (item.depth as f64 * INDENT).min(WIDTH - NARROWEST);
    let lines = |item: &Item| match item.text.is_empty() {
        true => Vec::new(),
        false => {
            let columns = (WIDTH - left(item) - 24.0) / COLUMN;
            wrap(&item.text, columns as usize)
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
        if let Some(parent) = above(items, at) {
            let (from_x, above_lines) = &boxes[parent];
            let bottom = tops[parent] + height(above_lines);
            match item.begins {
                // Down from its parent's corner, then to the right.
                true => {
                    let turn = from_x + INDENT / 2.0;
                    let middle = top + HEAD / 2.0 + 2.0;
                    svg.line((turn, bottom), (turn, middle), "base");
                    svg.line((turn, middle), (*x, middle), "base");
                }
                false => svg.line((x + INDENT / 2.0, bottom), (x + INDENT / 2.0, top), "base"),
            }
        }
        let class = if item.marks.is_empty() {
            "box"
        } else {
            "box noted"
        };
        svg.rect(*x, top, WIDTH - x - 1.0, tall, class);
        svg.text(x + 12.0, top + 17.0, Anchor::Start, "head", &item.heading);
        if !item.marks.is_empty() {
            let numbers: Vec<String> = item.marks.iter().map(|n| format!("[{n}]")).collect();
            let right = WIDTH - 12.0;
            svg.text(right, top + 17.0, Anchor::End, "head", &numbers.join(" "));
        }
        for (number, line) in lines.iter().enumerate() {
            let y = top + HEAD + 11.0 + number as f64 * LINE;
            svg.text(x + 12.0, y, Anchor::Start, "ax", line);
        }
    }
    svg.finish(id, title, description)
}

/// The item that one stands under: the nearest before it on the same branches, or, for one that
/// begins a branch, the nearest with one less.
fn above(items: &[Item], at: usize) -> Option<usize> {
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

    fn item(depth: usize, begins: bool) -> Item {
        Item {
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
        let found: Vec<Option<usize>> = (0..5).map(|at| above(&items, at)).collect();
        assert_eq!(found, [None, Some(0), Some(1), Some(0), Some(3)]);
    }

    #[test]
    fn hostile_names_and_depths_are_drawn() {
        let picture = stack("s", "t", "d", &[item(0, false), item(99, true)]);
        assert!(picture.contains("disk &lt;sda&gt;") && !picture.contains("NaN"));
        assert!(stack("s", "t", "d", &[]).starts_with("<svg"));
    }
}

//! Floating bars: each begins where the one that it stands on ends.

use super::draw::{Anchor, Svg, shorten};
use super::scale::Scale;

const WIDTH: f64 = 720.0;
const TOP: f64 = 6.0;
const LINE: f64 = 36.0;

/// One bar.
pub struct Row {
    /// Its name.
    pub label: String,
    /// How many others it stands on.
    pub depth: usize,
    /// Where it begins, and where it ends; no bar without an end.
    pub from: f64,
    /// Where it ends.
    pub to: Option<f64>,
    /// Where it may end: ends of the interval of its length, added to its beginning.
    pub interval: Option<(f64, f64)>,
    /// Row of the bar that it stands on.
    pub parent: Option<usize>,
    /// How it is drawn.
    pub shape: Shape,
    /// Behind its name.
    pub text: String,
}

/// What a bar says. The shapes differ, not the colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The bottom.
    Base,
    /// Adds.
    Adds,
    /// Takes away.
    Takes,
    /// Not told from nothing.
    Open,
}

/// Bars from the bottom up.
pub struct Waterfall<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// The bottom first.
    pub rows: Vec<Row>,
    /// A tick as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws the bars on one axis that begins at zero.
#[must_use]
pub fn draw(chart: &Waterfall) -> String {
    let height = TOP + chart.rows.len() as f64 * LINE + 24.0;
    let foot = height - 20.0;
    let ends = chart.rows.iter().flat_map(|row| {
        let reach = row.interval.map(|(_, high)| high);
        [Some(row.from), row.to, reach].into_iter().flatten()
    });
    let scale = Scale::from_zero(ends, 8.0, WIDTH - 24.0);
    let mut svg = Svg::new(WIDTH, height);
    for tick in scale.ticks(6) {
        let x = scale.at(tick);
        svg.line((x, TOP), (x, foot), "gr");
        svg.text(x, foot + 14.0, Anchor::Middle, "ax n", &(chart.tick)(tick));
    }
    let middle = |row: usize| TOP + row as f64 * LINE + 25.0;
    for (index, row) in chart.rows.iter().enumerate() {
        let (top, y) = (TOP + index as f64 * LINE, middle(index));
        if let Some(parent) = row.parent {
            let x = scale.at(row.from);
            svg.line((x, middle(parent) + 7.0), (x, y - 7.0), "base");
        }
        let indent = 8.0 + row.depth.min(8) as f64 * 9.0;
        svg.text(
            indent,
            top + 12.0,
            Anchor::Start,
            "halo",
            &shorten(&row.label, 44),
        );
        svg.text(
            WIDTH - 24.0,
            top + 12.0,
            Anchor::End,
            "halo n ax",
            &shorten(&row.text, 60),
        );
        let Some(to) = row.to else { continue };
        let (low, high) = (scale.at(row.from.min(to)), scale.at(row.from.max(to)));
        // What is there is seen, however short.
        let width = (high - low).max(1.5);
        let class = match row.shape {
            Shape::Base => "rung",
            Shape::Adds => "adds",
            Shape::Takes => "good",
            Shape::Open => "open",
        };
        svg.rect(low, y - 6.0, width, 12.0, class);
        if row.shape == Shape::Takes {
            svg.hatch(low, y - 6.0, width, 12.0);
        }
        if let Some((first, last)) = row.interval {
            let (first, last) = (scale.at(first.max(0.0)), scale.at(last.max(0.0)));
            svg.line((first, y), (last, y), "whisker");
            for x in [first, last] {
                svg.line((x, y - 4.0), (x, y + 4.0), "whisker");
            }
        }
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_float_and_short_ones_are_seen() {
        let row = |from: f64, to, shape, parent| Row {
            label: "a <b>".to_owned(),
            depth: 1,
            from,
            to,
            interval: Some((f64::NAN, 120.0)),
            parent,
            shape,
            text: String::new(),
        };
        let svg = draw(&Waterfall {
            id: "w".to_owned(),
            title: "t".to_owned(),
            description: "d".to_owned(),
            rows: vec![
                row(0.0, Some(100.0), Shape::Base, None),
                row(100.0, Some(100.0), Shape::Open, Some(0)),
                row(100.0, Some(50.0), Shape::Takes, Some(0)),
                row(100.0, None, Shape::Adds, Some(0)),
            ],
            tick: &|value| format!("{value}"),
        });
        assert!(
            svg.contains("width=\"1.5\" height=\"12\" class=\"open\""),
            "{svg}"
        );
        assert!(!svg.contains("class=\"adds\"") && !svg.contains("NaN") && !svg.contains("<b>"));
        assert!(svg.contains("class=\"hatch\""));
    }
}

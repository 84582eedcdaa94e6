//! Waterfall chart: floating bars, each of which begins at the end of its parent. `assay-judge` estimates the costs of
//! layers.

use super::canvas::{Svg, TextAnchor, shorten_name};
use super::scale::AxisScale;

const WIDTH: f64 = 720.0;
const TOP: f64 = 6.0;
const LINE: f64 = 36.0;

/// A bar of a waterfall chart.
pub struct WaterfallBar {
    /// Name of the bar.
    pub label: String,
    /// Nesting depth of the bar, which determines its indentation.
    pub depth: usize,
    /// Value at which the bar begins.
    pub from: f64,
    /// Value at which the bar ends; `None` draws no bar.
    pub to: Option<f64>,
    /// Interval of the bar's end, that is the interval of the bar's length, added to its beginning.
    pub interval: Option<(f64, f64)>,
    /// Index of the parent bar; `None` without a parent.
    pub parent: Option<usize>,
    /// Meaning of the bar, which determines its shape.
    pub shape: BarKind,
    /// Text that is written after the name of the bar.
    pub text: String,
}

/// Meaning of a bar. The shapes differ, so that colour is not the only difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarKind {
    /// The lowest layer, whose bar starts at zero.
    Base,
    /// The layer makes operations slower.
    Adds,
    /// The layer makes operations faster.
    Takes,
    /// The difference is not distinguishable from zero.
    Open,
}

/// Contents of a waterfall chart, drawn from the bottom upwards.
pub struct WaterfallChart<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Bars, the bottom first.
    pub rows: Vec<WaterfallBar>,
    /// Function that formats the label of a tick.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws the bars as SVG, on one axis that begins at zero.
#[must_use]
pub fn draw_waterfall(chart: &WaterfallChart) -> String {
    let height = TOP + chart.rows.len() as f64 * LINE + 24.0;
    let foot = height - 20.0;
    let ends = chart.rows.iter().flat_map(|row| {
        let reach = row.interval.map(|(_, high)| high);
        [Some(row.from), row.to, reach].into_iter().flatten()
    });
    let scale = AxisScale::from_zero(ends, 8.0, WIDTH - 24.0);
    let mut svg = Svg::new(WIDTH, height);
    for tick in scale.ticks(6) {
        let x = scale.pixel_of(tick);
        svg.add_line((x, TOP), (x, foot), "gr");
        svg.add_text(
            x,
            foot + 14.0,
            TextAnchor::Middle,
            "ax n",
            &(chart.tick)(tick),
        );
    }
    let middle = |row: usize| TOP + row as f64 * LINE + 25.0;
    for (index, row) in chart.rows.iter().enumerate() {
        let (top, y) = (TOP + index as f64 * LINE, middle(index));
        if let Some(parent) = row.parent {
            let x = scale.pixel_of(row.from);
            svg.add_line((x, middle(parent) + 7.0), (x, y - 7.0), "base");
        }
        let indent = 8.0 + row.depth.min(8) as f64 * 9.0;
        svg.add_text(
            indent,
            top + 12.0,
            TextAnchor::Start,
            "halo",
            &shorten_name(&row.label, 44),
        );
        svg.add_text(
            WIDTH - 24.0,
            top + 12.0,
            TextAnchor::End,
            "halo n ax",
            &shorten_name(&row.text, 60),
        );
        let Some(to) = row.to else { continue };
        let (low, high) = (
            scale.pixel_of(row.from.min(to)),
            scale.pixel_of(row.from.max(to)),
        );
        // A short bar gets a minimum width, so that it stays visible.
        let width = (high - low).max(1.5);
        let class = match row.shape {
            BarKind::Base => "rung",
            BarKind::Adds => "adds",
            BarKind::Takes => "good",
            BarKind::Open => "open",
        };
        svg.add_rect(low, y - 6.0, width, 12.0, class);
        if row.shape == BarKind::Takes {
            svg.add_hatching(low, y - 6.0, width, 12.0);
        }
        if let Some((first, last)) = row.interval {
            let (first, last) = (
                scale.pixel_of(first.max(0.0)),
                scale.pixel_of(last.max(0.0)),
            );
            svg.add_line((first, y), (last, y), "whisker");
            for x in [first, last] {
                svg.add_line((x, y - 4.0), (x, y + 4.0), "whisker");
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
        let row = |from: f64, to, shape, parent| WaterfallBar {
            label: "a <b>".to_owned(),
            depth: 1,
            from,
            to,
            interval: Some((f64::NAN, 120.0)),
            parent,
            shape,
            text: String::new(),
        };
        let svg = draw_waterfall(&WaterfallChart {
            id: "w".to_owned(),
            title: "t".to_owned(),
            description: "d".to_owned(),
            rows: vec![
                row(0.0, Some(100.0), BarKind::Base, None),
                row(100.0, Some(100.0), BarKind::Open, Some(0)),
                row(100.0, Some(50.0), BarKind::Takes, Some(0)),
                row(100.0, None, BarKind::Adds, Some(0)),
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

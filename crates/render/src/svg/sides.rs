//! A figure of both sides of a trial over time.

use super::draw::{Anchor, Svg};
use super::scale::Scale;

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 12.0;
const FOOT: f64 = HEIGHT - 40.0;

/// A figure of both sides over time.
pub struct Sides<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// Seconds since the trial began and the figure, for A and B.
    pub lines: [Vec<(f64, f64)>; 2],
    /// A figure as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws both sides on one axis, so that drift of the machine is seen beside the change.
#[must_use]
pub fn draw(chart: &Sides) -> String {
    let all = || chart.lines.iter().flatten();
    let values = || {
        all()
            .map(|(_, value)| *value)
            .filter(|v| v.is_finite() && *v > 0.0)
    };
    let (low, high) = values().fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    // Zero is on the axis unless both sides are many times apart.
    let y = match high / low > 8.0 {
        true => Scale::log(values(), FOOT, TOP),
        false => Scale::from_zero(values(), FOOT, TOP),
    };
    let last = all().map(|(at, _)| *at).fold(1.0, f64::max);
    let x = Scale::linear(0.0, last / 60.0 * 1.02, LEFT, RIGHT);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    for tick in y.ticks(6) {
        svg.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), "gr");
        svg.text(
            LEFT - 7.0,
            y.at(tick) + 4.0,
            Anchor::End,
            "ax n",
            &(chart.tick)(tick),
        );
    }
    for tick in x.ticks(6) {
        let text = format!("{tick:.1}");
        let text = text.trim_end_matches(".0");
        svg.text(x.at(tick), FOOT + 14.0, Anchor::Middle, "ax n", text);
    }
    svg.text(
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 4.0,
        Anchor::Middle,
        "ax",
        "minutes since the trial began",
    );
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (i, line) in chart.lines.iter().enumerate() {
        let points: Vec<(f64, f64)> = line
            .iter()
            .map(|(at, value)| (x.at(*at / 60.0), y.at(*value)))
            .collect();
        svg.path(&points, if i == 0 { "side-a" } else { "side-b" });
        for (px, py) in &points {
            match i {
                0 => svg.circle(*px, *py, 3.0, "hollow"),
                _ => svg.circle(*px, *py, 3.0, "mark"),
            }
        }
        ends.extend(points.last().map(|point| (point.1, i)));
    }
    for (at, i) in super::curves::spread(ends, 14.0, TOP, FOOT) {
        let name = if i == 0 { "A" } else { "B" };
        svg.text(WIDTH - 16.0, at + 4.0, Anchor::Start, "letter", name);
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

//! Chart of a figure over time, for both sides of a trial. Charts of a trial's pairs and looks are in `trial_effects`.

use super::canvas::{Svg, TextAnchor};
use super::scale::AxisScale;

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 12.0;
const FOOT: f64 = HEIGHT - 40.0;

/// Contents of a chart of a figure over time, for both sides of a trial.
pub struct SidesChart<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Points of A and of B, each with the seconds since the start of the trial and the figure.
    pub lines: [Vec<(f64, f64)>; 2],
    /// Function that formats the figure.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws both sides on one axis as SVG. Drift of the machine is then visible beside the change.
#[must_use]
pub fn draw_sides(chart: &SidesChart) -> String {
    let all = || chart.lines.iter().flatten();
    let values = || {
        all()
            .map(|(_, value)| *value)
            .filter(|v| v.is_finite() && *v > 0.0)
    };
    let (low, high) = values().fold((f64::MAX, 0.0f64), |(l, h), v| (l.min(v), h.max(v)));
    // The axis starts at zero unless the values span more than a factor of eight.
    let y = match high / low > 8.0 {
        true => AxisScale::log(values(), FOOT, TOP),
        false => AxisScale::from_zero(values(), FOOT, TOP),
    };
    let last = all().map(|(at, _)| *at).fold(1.0, f64::max);
    let x = AxisScale::linear(0.0, last / 60.0 * 1.02, LEFT, RIGHT);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    for tick in y.ticks(6) {
        svg.add_line((LEFT, y.pixel_of(tick)), (RIGHT, y.pixel_of(tick)), "gr");
        svg.add_text(
            LEFT - 7.0,
            y.pixel_of(tick) + 4.0,
            TextAnchor::End,
            "ax n",
            &(chart.tick)(tick),
        );
    }
    for tick in x.ticks(6) {
        let text = format!("{tick:.1}");
        let text = text.trim_end_matches(".0");
        svg.add_text(
            x.pixel_of(tick),
            FOOT + 14.0,
            TextAnchor::Middle,
            "ax n",
            text,
        );
    }
    svg.add_text(
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 4.0,
        TextAnchor::Middle,
        "ax",
        "minutes since the trial began",
    );
    let mut ends: Vec<(f64, usize)> = Vec::new();
    for (i, line) in chart.lines.iter().enumerate() {
        let points: Vec<(f64, f64)> = line
            .iter()
            .map(|(at, value)| (x.pixel_of(*at / 60.0), y.pixel_of(*value)))
            .collect();
        svg.add_path(&points, if i == 0 { "side-a" } else { "side-b" });
        for (px, py) in &points {
            match i {
                0 => svg.add_circle(*px, *py, 3.0, "hollow"),
                _ => svg.add_circle(*px, *py, 3.0, "mark"),
            }
        }
        ends.extend(points.last().map(|point| (point.1, i)));
    }
    for (at, i) in super::percentile_curves::spread_labels(ends, 14.0, TOP, FOOT) {
        let name = if i == 0 { "A" } else { "B" };
        svg.add_text(WIDTH - 16.0, at + 4.0, TextAnchor::Start, "letter", name);
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

//! Line chart over whole numbers, such as throughput over the number of clients. Each point has an interval. Curves of
//! latency percentiles are in `percentile_curves`, rates over time in `rate_panels`.

use super::canvas::{Svg, TextAnchor, shorten_name};
use super::palette::{colour_class, line_class};
use super::percentile_curves::spread_labels;
use super::scale::AxisScale;

const RIGHT: f64 = 500.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 10.0;
const FOOT: f64 = HEIGHT - 38.0;
/// Maximum length of a label in characters.
const LABEL: usize = 26;

/// A point: x, y, and the lower and upper end of the interval of y.
pub type LinePoint = (f64, f64, Option<(f64, f64)>);

/// A line of a line chart, with its name.
pub struct ChartLine {
    /// Name of the line, which is written at its end.
    pub label: String,
    /// Points of the line in ascending order of x.
    pub points: Vec<LinePoint>,
}

/// Contents of a line chart.
pub struct LineChart<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Label of the horizontal axis.
    pub over: String,
    /// Lines of the chart. The first eight differ in colour. Further lines repeat the colours with dashes, then with
    /// dots.
    pub lines: Vec<ChartLine>,
    /// Function that formats a value on the vertical axis.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Builds the vertical axis that several charts share. It is logarithmic if the largest value is many times the
/// smallest.
#[must_use]
pub fn build_value_scale<'a>(lines: impl Iterator<Item = &'a ChartLine> + Clone) -> AxisScale {
    let points = lines.flat_map(|line| &line.points);
    let values = points.flat_map(|(_, value, ends)| {
        let (low, high) = ends.unwrap_or((*value, *value));
        [low, *value, high]
    });
    AxisScale::fitting(values.filter(|value| *value > 0.0), FOOT, TOP)
}

/// Draws a line chart as SVG, with an axis from [`build_value_scale`].
#[must_use]
pub fn draw_lines(chart: &LineChart, y: &AxisScale) -> String {
    let all = || chart.lines.iter().flat_map(|line| &line.points);
    let (first, last) = all().fold((f64::MAX, f64::MIN), |(low, high), (at, ..)| {
        (low.min(*at), high.max(*at))
    });
    let room = (last - first).max(1.0) * 0.03;
    let x = AxisScale::linear(first - room, last + room, LEFT, RIGHT);
    let names = chart
        .lines
        .iter()
        .map(|line| line.label.chars().count().min(LABEL));
    let mut svg = Svg::new(RIGHT + names.max().unwrap_or(0) as f64 * 6.6 + 40.0, HEIGHT);
    for tick in y.ticks(6) {
        svg.add_line((LEFT, y.pixel_of(tick)), (RIGHT, y.pixel_of(tick)), "gr");
        let text = (chart.tick)(tick);
        svg.add_text(
            LEFT - 6.0,
            y.pixel_of(tick) + 4.0,
            TextAnchor::End,
            "ax n",
            &text,
        );
    }
    let mut places: Vec<f64> = all().map(|(at, ..)| *at).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let every = places.len().div_ceil(12).max(1);
    for at in places.iter().step_by(every) {
        let text = ((at * 100.0).round() / 100.0).to_string();
        svg.add_text(
            x.pixel_of(*at),
            FOOT + 14.0,
            TextAnchor::Middle,
            "ax n",
            &text,
        );
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.add_text(middle, HEIGHT - 6.0, TextAnchor::Middle, "ax", &chart.over);
    let (lowest, highest) = y.ends();
    let mut labels: Vec<(f64, usize)> = Vec::new();
    for (i, line) in chart.lines.iter().enumerate() {
        let class = line_class(i);
        let points = line.points.iter();
        let path: Vec<(f64, f64)> = points
            .map(|(at, value, _)| (x.pixel_of(*at), y.pixel_of(*value)))
            .collect();
        svg.add_path(&path, &class);
        for (at, _, ends) in &line.points {
            if let Some((low, high)) = *ends {
                let [low, high] = [low, high].map(|end| y.pixel_of(end.clamp(lowest, highest)));
                svg.add_line((x.pixel_of(*at), low), (x.pixel_of(*at), high), &class);
            }
        }
        for (px, py) in &path {
            svg.add_circle(*px, *py, 2.0, &colour_class(i));
        }
        labels.extend(path.last().map(|(_, py)| (*py, i)));
    }
    for (at, i) in spread_labels(labels, 12.0, TOP + 4.0, FOOT) {
        // A sample of the line beside the name shows its dashes, so that colour is not the only
        // difference.
        svg.add_path(&[(RIGHT + 5.0, at), (RIGHT + 23.0, at)], &line_class(i));
        let label = shorten_name(&chart.lines[i].label, LABEL);
        let class = colour_class(i);
        svg.add_text(RIGHT + 28.0, at + 4.0, TextAnchor::Start, &class, &label);
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: Vec<ChartLine>) -> String {
        let chart = LineChart {
            id: "x".to_owned(),
            title: "t".to_owned(),
            description: "d".to_owned(),
            over: "clients".to_owned(),
            lines,
            tick: &|value| value.to_string(),
        };
        let y = build_value_scale(chart.lines.iter());
        draw_lines(&chart, &y)
    }

    #[test]
    fn whatever_the_values_every_coordinate_is_a_number() {
        let line = |points: &[LinePoint]| ChartLine {
            label: "a <b>".to_owned(),
            points: points.to_vec(),
        };
        for lines in [
            vec![],
            vec![line(&[])],
            vec![line(&[(1.0, 5.0, None)])],
            vec![line(&[
                (1.0, 0.0, Some((0.0, 0.0))),
                (10.0, 1e12, Some((1.0, 1e13))),
            ])],
            vec![
                line(&[(4.0, 1e-9, None)]),
                line(&[(1.0, 2.0, Some((1.0, 3.0)))]),
            ],
        ] {
            let svg = drawn(lines);
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert!(!svg.contains("<b>"), "{svg}");
        }
    }
}

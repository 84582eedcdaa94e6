//! Lines over whole numbers, such as throughput over the number of clients: one line for each thing that
//! is compared, with the interval of each point.

use super::curves::spread;
use super::draw::{Anchor, Svg, shorten};
use super::palette::{colour_class, line_class};
use super::scale::Scale;

const RIGHT: f64 = 500.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 10.0;
const FOOT: f64 = HEIGHT - 38.0;
/// Characters of a label.
const LABEL: usize = 26;

/// A point: where, its value, and the ends of its interval.
pub type Point = (f64, f64, Option<(f64, f64)>);

/// One line.
pub struct Line {
    /// Its name, written at its end.
    pub label: String,
    /// Points, ascending.
    pub points: Vec<Point>,
}

/// What is drawn.
pub struct Lines<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// What the horizontal axis counts.
    pub over: String,
    /// Lines; eight colours, then the same with dashes and with dots.
    pub lines: Vec<Line>,
    /// A value as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// The vertical axis that several drawings share: logarithmic where the values are many times apart.
#[must_use]
pub fn scale<'a>(lines: impl Iterator<Item = &'a Line> + Clone) -> Scale {
    let points = lines.flat_map(|line| &line.points);
    let values = points.flat_map(|(_, value, ends)| {
        let (low, high) = ends.unwrap_or((*value, *value));
        [low, *value, high]
    });
    Scale::fitting(values.filter(|value| *value > 0.0), FOOT, TOP)
}

/// Draws the lines on an axis of [`scale`].
#[must_use]
pub fn draw(chart: &Lines, y: &Scale) -> String {
    let all = || chart.lines.iter().flat_map(|line| &line.points);
    let (first, last) = all().fold((f64::MAX, f64::MIN), |(low, high), (at, ..)| {
        (low.min(*at), high.max(*at))
    });
    let room = (last - first).max(1.0) * 0.03;
    let x = Scale::linear(first - room, last + room, LEFT, RIGHT);
    let names = chart
        .lines
        .iter()
        .map(|line| line.label.chars().count().min(LABEL));
    let mut svg = Svg::new(RIGHT + names.max().unwrap_or(0) as f64 * 6.6 + 40.0, HEIGHT);
    for tick in y.ticks(6) {
        svg.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), "gr");
        let text = (chart.tick)(tick);
        svg.text(LEFT - 6.0, y.at(tick) + 4.0, Anchor::End, "ax n", &text);
    }
    let mut places: Vec<f64> = all().map(|(at, ..)| *at).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let every = places.len().div_ceil(12).max(1);
    for at in places.iter().step_by(every) {
        let text = ((at * 100.0).round() / 100.0).to_string();
        svg.text(x.at(*at), FOOT + 14.0, Anchor::Middle, "ax n", &text);
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    svg.text(middle, HEIGHT - 6.0, Anchor::Middle, "ax", &chart.over);
    let (lowest, highest) = y.ends();
    let mut labels: Vec<(f64, usize)> = Vec::new();
    for (i, line) in chart.lines.iter().enumerate() {
        let class = line_class(i);
        let points = line.points.iter();
        let path: Vec<(f64, f64)> = points
            .map(|(at, value, _)| (x.at(*at), y.at(*value)))
            .collect();
        svg.path(&path, &class);
        for (at, _, ends) in &line.points {
            if let Some((low, high)) = *ends {
                let [low, high] = [low, high].map(|end| y.at(end.clamp(lowest, highest)));
                svg.line((x.at(*at), low), (x.at(*at), high), &class);
            }
        }
        for (px, py) in &path {
            svg.circle(*px, *py, 2.0, &colour_class(i));
        }
        labels.extend(path.last().map(|(_, py)| (*py, i)));
    }
    for (at, i) in spread(labels, 12.0, TOP + 4.0, FOOT) {
        // The sample beside the name shows the dashes, so that colour alone never tells.
        svg.path(&[(RIGHT + 5.0, at), (RIGHT + 23.0, at)], &line_class(i));
        let label = shorten(&chart.lines[i].label, LABEL);
        let class = colour_class(i);
        svg.text(RIGHT + 28.0, at + 4.0, Anchor::Start, &class, &label);
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(lines: Vec<Line>) -> String {
        let chart = Lines {
            id: "x".to_owned(),
            title: "t".to_owned(),
            description: "d".to_owned(),
            over: "clients".to_owned(),
            lines,
            tick: &|value| value.to_string(),
        };
        let y = scale(chart.lines.iter());
        draw(&chart, &y)
    }

    #[test]
    fn whatever_the_values_every_coordinate_is_a_number() {
        let line = |points: &[Point]| Line {
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

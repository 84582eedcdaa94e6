//! A figure of each run over time, the level it had and the level it has, and where it may have changed.

use super::draw::{Anchor, Svg};
use super::scale::Scale;

const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 10.0;
const FOOT: f64 = HEIGHT - 26.0;
/// Times that are written below.
const TIMES: usize = 4;

/// What is drawn. Times are seconds from whatever beginning.
pub struct Timeline<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// The figure of each run, ascending by time.
    pub points: Vec<(f64, f64)>,
    /// Levels: from when, to when, and which.
    pub levels: Vec<(f64, f64, f64)>,
    /// Between which times it changed.
    pub changed: Option<(f64, f64)>,
    /// A time as text.
    pub time: &'a dyn Fn(f64) -> String,
    /// A value as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws it.
#[must_use]
pub fn draw(chart: &Timeline) -> String {
    let mut svg = Svg::new(WIDTH, HEIGHT);
    let y = Scale::fitting(chart.points.iter().map(|(_, value)| *value), FOOT, TOP);
    let (first, last) = chart
        .points
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), (at, _)| {
            (low.min(*at), high.max(*at))
        });
    let room = (last - first).max(1.0) * 0.02;
    let x = Scale::linear(first - room, last + room, LEFT, RIGHT);
    if let Some((from, to)) = chart.changed {
        // A change between two runs that lie close together is still seen.
        let (from, to) = (x.at(from) - 3.0, x.at(to) + 3.0);
        svg.rect(from, TOP, to - from, FOOT - TOP, "band");
    }
    for tick in y.ticks(5) {
        svg.line((LEFT, y.at(tick)), (RIGHT, y.at(tick)), "gr");
        let text = (chart.tick)(tick);
        svg.text(LEFT - 6.0, y.at(tick) + 4.0, Anchor::End, "ax n", &text);
    }
    if last >= first {
        for number in 0..TIMES {
            let share = number as f64 / (TIMES - 1) as f64;
            let anchor = match number {
                0 => Anchor::Start,
                number if number == TIMES - 1 => Anchor::End,
                _ => Anchor::Middle,
            };
            let at = first + share * (last - first);
            let text = (chart.time)(at);
            svg.text(x.at(at), HEIGHT - 8.0, anchor, "ax n", &text);
        }
    }
    for (from, to, level) in &chart.levels {
        let level = y.at(*level);
        svg.line((x.at(*from), level), (x.at(*to), level), "ref");
    }
    for (at, value) in &chart.points {
        svg.circle(x.at(*at), y.at(*value), 2.6, "mark");
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(points: Vec<(f64, f64)>, changed: Option<(f64, f64)>) -> String {
        draw(&Timeline {
            id: "t".to_owned(),
            title: "a <b>".to_owned(),
            description: "d".to_owned(),
            levels: points.iter().map(|(at, v)| (*at, *at, *v)).collect(),
            points,
            changed,
            time: &|at| at.to_string(),
            tick: &|value| value.to_string(),
        })
    }

    #[test]
    fn every_run_is_a_point_and_the_change_a_band() {
        let points: Vec<(f64, f64)> = (0..9).map(|at| (f64::from(at), 100.0)).collect();
        let svg = drawn(points, Some((3.0, 4.0)));
        assert_eq!(svg.matches("<circle").count(), 9);
        assert_eq!(svg.matches("class=\"band\"").count(), 1);
        assert!(!svg.contains("<b>"));
    }

    proptest! {
        #[test]
        fn whatever_the_values_every_coordinate_is_a_number(
            points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..9),
        ) {
            let svg = drawn(points, Some((f64::NAN, 1e300)));
            let figures = svg.split('"').skip(1).step_by(2);
            prop_assert!(figures.filter(|text| text.contains("NaN") || *text == "inf").count() == 0, "{}", svg);
        }
    }
}

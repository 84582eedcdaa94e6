//! Timeline: a figure of each run, the levels before and after a shift, and when the shift may have happened.
//! `assay-judge` finds shifts.

use super::canvas::{Svg, TextAnchor};
use super::scale::AxisScale;

/// Width in pixels of a chart beside another chart.
pub const HALF_WIDTH: f64 = 620.0;
/// Width in pixels of a chart that has the page for itself.
pub const FULL_WIDTH: f64 = 1080.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
/// Space to the right of the last run, in pixels.
const MARGIN: f64 = 14.0;
const TOP: f64 = 10.0;
const FOOT: f64 = HEIGHT - 26.0;
/// Number of time labels below the chart.
const TIMES: usize = 4;

/// A figure of several runs over time. Times are in seconds from any origin.
pub struct TimelineChart<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Width of the chart in pixels.
    pub width: f64,
    /// Time and figure of each run, in ascending order of time.
    pub points: Vec<(f64, f64)>,
    /// Ends of each point's interval; `None` without an interval. The list may be shorter than the list of points.
    pub intervals: Vec<Option<(f64, f64)>>,
    /// Whether each point is suspect. Suspect points are drawn as hollow dots.
    pub doubtful: Vec<bool>,
    /// Levels of the figure, each with start, end and value.
    pub levels: Vec<(f64, f64, f64)>,
    /// For each shift, the first and the last time at which the level may have shifted.
    pub changed: Vec<(f64, f64)>,
    /// Function that formats a time.
    pub time: &'a dyn Fn(f64) -> String,
    /// Function that formats a value.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Returns the left and the right end of the plot, for a chart of this width, in pixels.
#[must_use]
pub fn plot_ends(width: f64) -> [f64; 2] {
    [LEFT, width - MARGIN]
}

/// Returns the times at the ends of the plot, which follow from the times of the first and the last run.
#[must_use]
pub fn axis_ends(first: f64, last: f64) -> [f64; 2] {
    let room = (last - first).max(1.0) * 0.02;
    [first - room, last + room]
}

/// Draws a timeline as SVG.
#[must_use]
pub fn draw_timeline(chart: &TimelineChart) -> String {
    let right = chart.width - MARGIN;
    let mut svg = Svg::new(chart.width, HEIGHT);
    let ends = chart.intervals.iter().flatten();
    let ends = ends.flat_map(|(low, high)| [*low, *high]);
    let values = chart.points.iter().map(|(_, value)| *value);
    let y = AxisScale::fitting(values.chain(ends), FOOT, TOP);
    let (first, last) = chart
        .points
        .iter()
        .fold((f64::MAX, f64::MIN), |(low, high), (at, _)| {
            (low.min(*at), high.max(*at))
        });
    let [from, to] = axis_ends(first, last);
    let x = AxisScale::linear(from, to, LEFT, right);
    for &(from, to) in &chart.changed {
        // The band gets a minimum width, so that a shift between two close runs stays visible.
        let (from, to) = (x.pixel_of(from) - 3.0, x.pixel_of(to) + 3.0);
        svg.add_rect(from, TOP, to - from, FOOT - TOP, "band");
    }
    for tick in y.ticks(5) {
        svg.add_line((LEFT, y.pixel_of(tick)), (right, y.pixel_of(tick)), "gr");
        let text = (chart.tick)(tick);
        svg.add_text(
            LEFT - 6.0,
            y.pixel_of(tick) + 4.0,
            TextAnchor::End,
            "ax n",
            &text,
        );
    }
    if last >= first {
        for number in 0..TIMES {
            let share = number as f64 / (TIMES - 1) as f64;
            let anchor = match number {
                0 => TextAnchor::Start,
                number if number == TIMES - 1 => TextAnchor::End,
                _ => TextAnchor::Middle,
            };
            let at = first + share * (last - first);
            let text = (chart.time)(at);
            svg.add_text(x.pixel_of(at), HEIGHT - 8.0, anchor, "ax n", &text);
        }
    }
    for (from, to, level) in &chart.levels {
        let level = y.pixel_of(*level);
        svg.add_line((x.pixel_of(*from), level), (x.pixel_of(*to), level), "ref");
    }
    for ((at, _), interval) in chart.points.iter().zip(&chart.intervals) {
        if let Some((low, high)) = interval {
            let at = x.pixel_of(*at);
            svg.add_line((at, y.pixel_of(*low)), (at, y.pixel_of(*high)), "round");
        }
    }
    for (number, (at, value)) in chart.points.iter().enumerate() {
        let class = match chart.doubtful.get(number) {
            Some(true) => "hollow",
            _ => "mark",
        };
        svg.add_circle(x.pixel_of(*at), y.pixel_of(*value), 2.6, class);
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(points: Vec<(f64, f64)>, changed: Option<(f64, f64)>) -> String {
        draw_timeline(&TimelineChart {
            id: "t".to_owned(),
            title: "a <b>".to_owned(),
            description: "d".to_owned(),
            levels: points.iter().map(|(at, v)| (*at, *at, *v)).collect(),
            width: HALF_WIDTH,
            points,
            intervals: vec![Some((f64::NAN, 2.0))],
            doubtful: vec![true],
            changed: changed.into_iter().collect(),
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

//! Changes of a figure on an axis that is logarithmic below and labelled in percent: the pairs of a
//! trial in their order, and its interval at each look.

use super::draw::{Anchor, Svg};
use super::scale::{Scale, nice_step};

/// From changes to pixels. A change is the natural logarithm of an improvement, so better is always
/// up or right; what is written is the change of the figure itself.
pub struct Axis {
    scale: Scale,
    /// Less is better: an improvement of the logarithm e is a figure times exp(−e).
    falls: bool,
}

impl Axis {
    /// Holds all finite values, zero and ± `margin`, with some room.
    #[must_use]
    pub fn new(
        values: impl Iterator<Item = f64>,
        margin: f64,
        falls: bool,
        from: f64,
        to: f64,
    ) -> Self {
        let values = values.filter(|value| value.is_finite());
        let seed = (-margin.abs() * 1.6, margin.abs() * 1.6);
        let (low, high) = values.fold(seed, |(low, high), v| (low.min(v), high.max(v)));
        let room = (high - low) * 0.06;
        Self {
            scale: Scale::linear(low - room, high + room, from, to),
            falls,
        }
    }

    /// The pixel of a change.
    #[must_use]
    pub fn at(&self, effect: f64) -> f64 {
        self.scale.at(effect)
    }

    /// Whether it lies beyond an end.
    pub(super) fn beyond(&self, effect: f64) -> bool {
        let (low, high) = self.scale.ends();
        effect < low || effect > high
    }

    /// Figure B ÷ A of a change.
    fn ratio(&self, effect: f64) -> f64 {
        if self.falls {
            (-effect).exp()
        } else {
            effect.exp()
        }
    }

    /// Round changes of the figure and where they are, at most about `most`.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, f64)> {
        let (low, high) = self.scale.ends();
        let (a, b) = (self.ratio(low), self.ratio(high));
        let (least, largest) = (a.min(b), a.max(b));
        let effect = |ratio: f64| if self.falls { -ratio.ln() } else { ratio.ln() };
        let ratios: Vec<f64> = match largest / least < 4.0 {
            true => {
                let step = nice_step((largest - least) / most as f64);
                let first = ((least - 1.0) / step).ceil() as i64;
                (first..)
                    .take(most * 2 + 2)
                    .map(|i| 1.0 + i as f64 * step)
                    .take_while(|ratio| *ratio <= largest)
                    .collect()
            }
            false => Scale::log([least, largest].into_iter(), 0.0, 1.0)
                .ticks(most)
                .into_iter()
                .filter(|ratio| (least..=largest).contains(ratio))
                .collect(),
        };
        let mut ticks: Vec<(f64, f64)> = ratios
            .into_iter()
            .map(|ratio| (ratio, effect(ratio)))
            .collect();
        ticks.sort_by(|a, b| a.1.total_cmp(&b.1));
        ticks
    }
}

/// What a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// A was measured first: a dot.
    NowFirst,
    /// B was measured first: a diamond.
    ChangedFirst,
    /// Left out: a cross at the foot.
    LeftOut,
}

/// The pairs of a trial.
pub struct Pairs<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// Pairs in their order: what they are and their change.
    pub points: Vec<(Point, f64)>,
    /// Centre of all, and its interval.
    pub centre: Option<f64>,
    /// Ends of the interval.
    pub interval: Option<(f64, f64)>,
    /// Below this either way nothing matters.
    pub margin: f64,
    /// Less is better.
    pub falls: bool,
    /// A ratio B ÷ A as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 34.0;
const TOP: f64 = 20.0;
const FOOT: f64 = HEIGHT - 40.0;

/// Band, grid, labels and the zero line of an upright axis.
fn frame(svg: &mut Svg, axis: &Axis, margin: f64, tick: &dyn Fn(f64) -> String) {
    let (top, bottom) = (axis.at(margin), axis.at(-margin));
    svg.rect(LEFT, top, WIDTH - LEFT, bottom - top, "band");
    for (ratio, effect) in axis.ticks(7) {
        let y = axis.at(effect);
        svg.line((LEFT, y), (WIDTH, y), "gr");
        svg.text(LEFT - 7.0, y + 4.0, Anchor::End, "ax n", &tick(ratio));
    }
    svg.line((LEFT, axis.at(0.0)), (WIDTH, axis.at(0.0)), "zero");
    svg.text(LEFT, 10.0, Anchor::Start, "ax", "↑ better");
}

/// Draws the pairs, and to their right the centre of all with its interval.
#[must_use]
pub fn pairs(chart: &Pairs) -> String {
    let left_out = chart
        .points
        .iter()
        .any(|(point, _)| *point == Point::LeftOut);
    let foot = if left_out { FOOT - 16.0 } else { FOOT };
    let counted = chart
        .points
        .iter()
        .filter(|(point, _)| *point != Point::LeftOut);
    let values = counted.map(|(_, effect)| *effect).chain(chart.centre);
    let axis = Axis::new(values, chart.margin, chart.falls, foot, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    frame(&mut svg, &axis, chart.margin, chart.tick);
    let n = chart.points.len().max(1) as f64;
    let x = |i: usize| LEFT + (i as f64 + 0.5) / n * (RIGHT - LEFT - 8.0) + 2.0;
    for (i, (point, effect)) in chart.points.iter().enumerate() {
        match point {
            Point::NowFirst => svg.circle(x(i), axis.at(*effect), 4.0, "mark"),
            Point::ChangedFirst => diamond(&mut svg, x(i), axis.at(*effect), 5.0),
            Point::LeftOut => cross(&mut svg, x(i), FOOT - 5.0),
        }
    }
    if left_out {
        svg.text(LEFT - 7.0, FOOT - 1.0, Anchor::End, "ax", "left out");
    }
    numbers(&mut svg, chart.points.len(), &x);
    svg.text(
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 4.0,
        Anchor::Middle,
        "ax",
        "pair, in the order measured",
    );
    if let Some(centre) = chart.centre {
        let at = WIDTH - 16.0;
        svg.line((RIGHT - 2.0, TOP), (RIGHT - 2.0, foot), "gr");
        if let Some((low, high)) = chart.interval {
            upright(&mut svg, &axis, at, low, high);
        }
        svg.circle(at, axis.at(centre), 5.0, "hollow");
        svg.text(at, FOOT + 14.0, Anchor::Middle, "ax", "all");
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

/// Every so many of the numbers 1 to `n` below a chart.
fn numbers(svg: &mut Svg, n: usize, x: &dyn Fn(usize) -> f64) {
    let every = nice_step(n as f64 / 9.0).max(1.0) as usize;
    for i in (0..n).filter(|i| *i == 0 || (i + 1).is_multiple_of(every)) {
        if i == 0 && every > 4 || i + 1 == every && every <= 4 && every > 1 && i < 2 {
            continue;
        }
        svg.text(
            x(i),
            FOOT + 14.0,
            Anchor::Middle,
            "ax n",
            &(i + 1).to_string(),
        );
    }
}

fn diamond(svg: &mut Svg, x: f64, y: f64, r: f64) {
    let points = [(x, y - r), (x + r, y), (x, y + r), (x - r, y), (x, y - r)];
    svg.path(&points, "second");
}

fn cross(svg: &mut Svg, x: f64, y: f64) {
    svg.path(&[(x - 3.5, y - 3.5), (x + 3.5, y + 3.5)], "void");
    svg.path(&[(x - 3.5, y + 3.5), (x + 3.5, y - 3.5)], "void");
}

/// An upright bar; an end beyond the axis is an arrow.
fn upright(svg: &mut Svg, axis: &Axis, x: f64, low: f64, high: f64) {
    svg.line((x, axis.at(low)), (x, axis.at(high)), "bar");
    for (end, way) in [(low, -4.0), (high, 4.0)] {
        let y = axis.at(end);
        match axis.beyond(end) {
            true => svg.path(&[(x - 4.0, y + way), (x, y), (x + 4.0, y + way)], "bar"),
            false => svg.line((x - 4.0, y), (x + 4.0, y), "bar"),
        }
    }
}

/// The interval at each look.
pub struct Looks<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// Pairs by then, the centre, and the ends of its interval where they are finite.
    pub looks: Vec<(u32, f64, Option<f64>, Option<f64>)>,
    /// Below this either way nothing matters.
    pub margin: f64,
    /// Less is better.
    pub falls: bool,
    /// A ratio B ÷ A as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws the interval as it narrowed.
#[must_use]
pub fn looks(chart: &Looks) -> String {
    // The first intervals may be very wide: the axis follows the last ones and the centres.
    let last = chart.looks.iter().rev().take(3);
    let ends = last.flat_map(|(_, _, low, high)| [*low, *high]).flatten();
    let values = chart.looks.iter().map(|look| look.1).chain(ends);
    let axis = Axis::new(values, chart.margin, chart.falls, FOOT, TOP);
    let most = chart.looks.last().map_or(1, |look| look.0);
    let x = Scale::linear(0.0, f64::from(most) * 1.04, LEFT, WIDTH - 4.0);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    frame(&mut svg, &axis, chart.margin, chart.tick);
    let (bottom, top) = axis.scale.ends();
    let line: Vec<(f64, f64)> = chart
        .looks
        .iter()
        .map(|(pairs, centre, ..)| (x.at(f64::from(*pairs)), axis.at(*centre)))
        .collect();
    svg.path(&line, "trace");
    let mut free = f64::MIN;
    for (pairs, centre, low, high) in &chart.looks {
        let at = x.at(f64::from(*pairs));
        // Without an end the interval goes on for ever.
        let (low, high) = (low.unwrap_or(bottom - 1.0), high.unwrap_or(top + 1.0));
        upright(&mut svg, &axis, at, low, high);
        svg.circle(at, axis.at(*centre), 4.0, "mark");
        if at - 9.0 > free {
            svg.text(at, FOOT + 14.0, Anchor::Middle, "ax n", &pairs.to_string());
            free = at + 9.0;
        }
    }
    svg.text(
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 4.0,
        Anchor::Middle,
        "ax",
        "pairs measured",
    );
    svg.finish(&chart.id, &chart.title, &chart.description)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_round_changes_of_the_figure() {
        let axis = Axis::new([0.12, -0.04].into_iter(), 0.03, false, 100.0, 0.0);
        let ratios: Vec<f64> = axis
            .ticks(6)
            .iter()
            .map(|tick| (tick.0 * 100.0).round())
            .collect();
        assert_eq!(ratios, [95.0, 100.0, 105.0, 110.0]);
        // Where less is better, better is still up: −50 % lies above zero.
        let axis = Axis::new([0.7].into_iter(), 0.03, true, 100.0, 0.0);
        assert!(axis.at(0.7) < axis.at(0.0));
        assert!(
            axis.ticks(6)
                .iter()
                .all(|(ratio, effect)| (ratio.ln() + effect).abs() < 1e-9)
        );
    }

    proptest! {
        #[test]
        fn any_changes_make_a_sane_chart(effects in prop::collection::vec(any::<f64>(), 0..20), falls in any::<bool>()) {
            let points = effects.iter().map(|e| (Point::NowFirst, *e)).chain([(Point::LeftOut, 0.0)]);
            let chart = Pairs {
                id: "p".to_owned(), title: String::new(), description: String::new(),
                points: points.collect(), centre: effects.first().copied(),
                interval: effects.first().map(|e| (*e, f64::INFINITY)), margin: 0.03, falls,
                tick: &|ratio| format!("{ratio:.1e}"),
            };
            let svg = pairs(&chart);
            prop_assert!(svg.contains("<svg ") && !svg.contains("\"NaN\"") && !svg.contains("\"inf"));
            let axis = Axis::new(effects.iter().copied(), 0.03, falls, 100.0, 0.0);
            prop_assert!(axis.ticks(6).len() <= 16);
        }
    }
}

//! Changes of a figure on an axis that is logarithmic below and labelled in percent: the pairs of a
//! trial in their order, its interval at each look, and rows of changes with their limits.

use super::draw::{Anchor, Svg, shorten};
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
    fn beyond(&self, effect: f64) -> bool {
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
    fn ticks(&self, most: usize) -> Vec<(f64, f64)> {
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

/// How a row is drawn. The shapes differ, not the colour alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A filled dot.
    Plain,
    /// A hollow dot.
    Open,
    /// A triangle.
    Good,
    /// A square.
    Bad,
}

/// A change with its interval.
pub struct Row {
    /// Its name.
    pub label: String,
    /// The change.
    pub effect: Option<f64>,
    /// Ends of its interval.
    pub interval: Option<(f64, f64)>,
    /// The changes that are still allowed begin here.
    pub least: Option<f64>,
    /// Half-width of the band within which nothing matters.
    pub margin: Option<f64>,
    /// How it is drawn.
    pub shape: Shape,
    /// Behind the row.
    pub text: String,
}

/// Rows of changes, better to the right.
pub struct Forest<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// The axis is in terms of worsening: 1.1 is 10 % worse.
    pub falls: bool,
    /// A tick as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws the rows on one axis of improvement.
#[must_use]
pub fn forest(chart: &Forest) -> String {
    const LINE: f64 = 36.0;
    const TOP: f64 = 8.0;
    /// ln 2.
    const NEAR: f64 = std::f64::consts::LN_2;
    let width = WIDTH + 40.0;
    let height = TOP + chart.rows.len() as f64 * LINE + 34.0;
    let foot = height - 32.0;
    // What lies further out than a factor of two is an arrow, unless nothing lies nearer; an
    // interval without an end never sets the axis.
    let effects = || chart.rows.iter().filter_map(|row| row.effect);
    let far = match effects().any(|effect| effect.abs() < NEAR) {
        true => NEAR,
        false => effects().map(f64::abs).fold(NEAR, f64::max) * 1.2,
    };
    let values = chart.rows.iter().flat_map(|row| {
        let known = row.effect.into_iter().chain(row.least).chain(row.margin);
        let ends = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
        known.chain(ends).collect::<Vec<_>>()
    });
    let values = values.filter(|value| value.abs() <= far);
    let axis = Axis::new(values, 0.02, chart.falls, 8.0, width - 8.0);
    let mut svg = Svg::new(width, height);
    let mut free = f64::MIN;
    for (ratio, effect) in axis.ticks(7) {
        let x = axis.at(effect);
        svg.line((x, TOP), (x, foot), "gr");
        let label = (chart.tick)(ratio);
        let half = label.chars().count() as f64 * 3.6;
        if x - half > free {
            svg.text(x, foot + 14.0, Anchor::Middle, "ax n", &label);
            free = x + half + 6.0;
        }
    }
    svg.line((axis.at(0.0), TOP), (axis.at(0.0), foot), "zero");
    for (i, row) in chart.rows.iter().enumerate() {
        let top = TOP + i as f64 * LINE;
        let y = top + 24.0;
        if let Some(least) = row.least {
            svg.rect(
                axis.at(least),
                y - 7.0,
                width - 8.0 - axis.at(least),
                14.0,
                "band",
            );
            svg.line((axis.at(least), y - 8.0), (axis.at(least), y + 8.0), "edge");
        }
        if let Some(margin) = row.margin {
            let (low, high) = (axis.at(-margin), axis.at(margin));
            svg.rect(low, y - 7.0, high - low, 14.0, "band");
        }
        svg.text(
            8.0,
            top + 9.0,
            Anchor::Start,
            "halo",
            &shorten(&row.label, 46),
        );
        svg.text(
            width - 8.0,
            top + 9.0,
            Anchor::End,
            "n ax",
            &shorten(&row.text, 56),
        );
        let near = row.effect.is_some_and(|effect| !axis.beyond(effect));
        if let Some((low, high)) = row.interval.filter(|_| near) {
            svg.line((axis.at(low), y), (axis.at(high), y), "bar");
            for (end, way) in [(low, 4.0), (high, -4.0)] {
                let x = axis.at(end);
                match axis.beyond(end) {
                    true => svg.path(&[(x + way, y - 4.0), (x, y), (x + way, y + 4.0)], "bar"),
                    false => svg.line((x, y - 4.0), (x, y + 4.0), "bar"),
                }
            }
        }
        if let Some(effect) = row.effect {
            if axis.beyond(effect) {
                let way = if effect > 0.0 { -11.0 } else { 11.0 };
                let x = axis.at(effect);
                svg.path(
                    &[(x + way, y - 6.0), (x + way * 0.4, y), (x + way, y + 6.0)],
                    "beyond",
                );
                shape(&mut svg, x + way * 2.0, y, row.shape);
                continue;
            }
            shape(&mut svg, axis.at(effect), y, row.shape);
        }
    }
    svg.text(8.0, height - 3.0, Anchor::Start, "ax", "← worse");
    svg.text(width - 8.0, height - 3.0, Anchor::End, "ax", "better →");
    svg.finish(&chart.id, &chart.title, &chart.description)
}

fn shape(svg: &mut Svg, x: f64, y: f64, shape: Shape) {
    match shape {
        Shape::Plain => svg.circle(x, y, 4.5, "mark"),
        Shape::Open => svg.circle(x, y, 4.5, "hollow"),
        Shape::Good => {
            let points = [
                (x, y - 6.0),
                (x + 6.0, y + 5.0),
                (x - 6.0, y + 5.0),
                (x, y - 6.0),
            ];
            svg.path(&points, "good");
        }
        Shape::Bad => svg.rect(x - 5.0, y - 5.0, 10.0, 10.0, "worse"),
    }
}

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
pub fn sides(chart: &Sides) -> String {
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
    let x = Scale::linear(0.0, last / 60.0 * 1.02, LEFT, WIDTH - 22.0);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    for tick in y.ticks(6) {
        svg.line((LEFT, y.at(tick)), (WIDTH - 22.0, y.at(tick)), "gr");
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
        (LEFT + WIDTH - 22.0) / 2.0,
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

//! Rows of changes with their intervals and limits on one axis, better to the right.

use super::draw::{Anchor, Svg, shorten};
use super::effects::Axis;

const WIDTH: f64 = 580.0;
const TOP: f64 = 8.0;
const LINE: f64 = 36.0;
/// A factor of two.
const NEAR: f64 = std::f64::consts::LN_2;

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
pub fn draw(chart: &Forest) -> String {
    let width = WIDTH;
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

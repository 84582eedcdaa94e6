//! A dot plot: a figure for each row, with its interval and the rounds behind it, on a log axis.

use super::draw::{Anchor, Svg, shorten};
use super::scale::Scale;

/// How a row is drawn. Never by colour alone: the shapes differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A filled dot.
    Plain,
    /// A hollow dot.
    Doubtful,
    /// A filled triangle pointing to the good side.
    Better,
    /// A filled square.
    Worse,
    /// No figure: the word `void`.
    Void,
    /// 0 or less, which a log axis does not have: an arrow at its low end, and the figure as text.
    OffAxis,
}

/// One row.
pub struct Row {
    /// Its name.
    pub label: String,
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Figures of single rounds, drawn faintly.
    pub rounds: Vec<f64>,
    /// How it is drawn.
    pub shape: Shape,
    /// The figure as text.
    pub text: String,
}

/// Where a dot plot's axis begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Logarithmic: equal factors are equal steps, and there is no 0.
    Log,
    /// Linear from 0; with ticks only at whole numbers where all figures are whole, as of counts and
    /// of facts that are 0 or 1.
    FromZero,
}

impl Axis {
    /// The axis for these figures: linear where one of them is 0 and the others lie within a factor
    /// of a hundred, else logarithmic.
    #[must_use]
    pub fn of(figures: impl Iterator<Item = f64> + Clone) -> Self {
        let positive = || figures.clone().filter(|one| *one > 0.0);
        let (low, high) = (
            positive().fold(f64::MAX, f64::min),
            positive().fold(0.0, f64::max),
        );
        match figures.clone().any(|one| one == 0.0) && (high == 0.0 || high / low < 100.0) {
            true => Self::FromZero,
            false => Self::Log,
        }
    }
}

/// What a dot plot shows.
pub struct Plot<'a> {
    /// Unique on the page.
    pub id: String,
    /// Of the chart, also printed above it.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// From top to bottom.
    pub rows: Vec<Row>,
    /// Where its axis begins.
    pub axis: Axis,
    /// A line to compare with, such as 1 for ratios.
    pub reference: Option<f64>,
    /// A tick as text.
    pub tick: &'a dyn Fn(f64) -> String,
}

const WIDTH: f64 = 540.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;

/// Draws the plot.
#[must_use]
pub fn draw(plot: &Plot) -> String {
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
    let names = longest(
        &mut plot
            .rows
            .iter()
            .map(|row| row.label.chars().count().min(28)),
    );
    let figures = longest(&mut plot.rows.iter().map(|row| row.text.chars().count()));
    let (left, right) = (names * 6.5 + 12.0, WIDTH - figures * 6.5 - 14.0);
    // Many rows stand closer together.
    let line = if plot.rows.len() > 24 { 15.0 } else { 18.0 };
    let height = TOP + plot.rows.len() as f64 * line + BOTTOM;
    let all = plot
        .rows
        .iter()
        .filter(|row| !matches!(row.shape, Shape::Void | Shape::OffAxis))
        .flat_map(|row| {
            let ends = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
            // An interval may reach to zero or beyond; the axis follows the figures, not that end.
            let ends = ends.filter(|end| *end > row.value / 100.0 && *end < row.value * 100.0);
            ends.chain(row.rounds.iter().copied())
                .chain([row.value])
                .collect::<Vec<_>>()
        });
    let all: Vec<f64> = all.chain(plot.reference).collect();
    let scale = match plot.axis {
        Axis::Log => Scale::log(all.iter().copied(), left, right),
        Axis::FromZero => Scale::from_zero(all.iter().copied(), left, right),
    };
    let whole = plot.axis == Axis::FromZero && all.iter().all(|one| one.fract() == 0.0);
    let foot = height - BOTTOM + 2.0;
    let mut svg = Svg::new(WIDTH, height);
    let mut free = f64::MIN;
    let ticks = scale.ticks(6).into_iter();
    for tick in ticks.filter(|tick| !whole || tick.fract() == 0.0) {
        let x = scale.at(tick);
        svg.line((x, TOP), (x, foot), "gr");
        let label = (plot.tick)(tick);
        let half = label.chars().count() as f64 * 3.4;
        if x - half > free {
            svg.text(x, foot + 14.0, Anchor::Middle, "ax n", &label);
            free = x + half + 6.0;
        }
    }
    if let Some(reference) = plot.reference {
        svg.line(
            (scale.at(reference), TOP - 4.0),
            (scale.at(reference), foot),
            "ref",
        );
    }
    for (i, row) in plot.rows.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * line;
        svg.text(
            left - 9.0,
            y + 4.0,
            Anchor::End,
            "name",
            &shorten(&row.label, 28),
        );
        if row.shape == Shape::Void {
            svg.text(left + 4.0, y + 4.0, Anchor::Start, "bad", "void");
            continue;
        }
        if row.shape == Shape::OffAxis {
            let arrow = [(left + 4.0, y - 3.5), (left, y), (left + 4.0, y + 3.5)];
            svg.path(&arrow, "bar");
            svg.text(WIDTH - 2.0, y + 4.0, Anchor::End, "n val", &row.text);
            continue;
        }
        for round in row.rounds.iter().filter(|round| round.is_finite()) {
            svg.line(
                (scale.at(*round), y - 4.0),
                (scale.at(*round), y + 4.0),
                "round",
            );
        }
        if let Some((low, high)) = row.interval {
            svg.line((scale.at(low), y), (scale.at(high), y), "bar");
            // An end beyond the axis is an arrow.
            let (first, last) = scale.ends();
            if low < first {
                svg.path(
                    &[(left + 4.0, y - 3.5), (left, y), (left + 4.0, y + 3.5)],
                    "bar",
                );
            }
            if high > last {
                svg.path(
                    &[(right - 4.0, y - 3.5), (right, y), (right - 4.0, y + 3.5)],
                    "bar",
                );
            }
        }
        shape(&mut svg, scale.at(row.value), y, row.shape);
        svg.text(WIDTH - 2.0, y + 4.0, Anchor::End, "n val", &row.text);
    }
    svg.finish(&plot.id, &plot.title, &plot.description)
}

fn shape(svg: &mut Svg, x: f64, y: f64, shape: Shape) {
    match shape {
        Shape::Plain => svg.circle(x, y, 3.5, "mark"),
        Shape::Doubtful => svg.circle(x, y, 3.5, "hollow"),
        Shape::Better => {
            let points = [
                (x, y - 5.0),
                (x + 5.0, y + 4.0),
                (x - 5.0, y + 4.0),
                (x, y - 5.0),
            ];
            svg.path(&points, "good");
        }
        Shape::Worse => svg.rect(x - 4.0, y - 4.0, 8.0, 8.0, "worse"),
        Shape::Void | Shape::OffAxis => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_among_near_figures_makes_the_axis_linear() {
        let of = |figures: &[f64]| Axis::of(figures.iter().copied());
        assert_eq!(of(&[0.0, 1.0, 1.0]), Axis::FromZero);
        assert_eq!(of(&[0.0, 0.0]), Axis::FromZero);
        assert_eq!(of(&[0.0, 1.0, 5000.0]), Axis::Log);
        assert_eq!(of(&[10.0, 20.0]), Axis::Log);
    }

    #[test]
    fn facts_have_two_ticks_and_their_zero_is_a_dot() {
        let row = |value: f64| Row {
            label: format!("c{value}"),
            value,
            interval: None,
            rounds: vec![value],
            shape: Shape::Plain,
            text: value.to_string(),
        };
        let svg = draw(&Plot {
            id: "p".to_owned(),
            title: String::new(),
            description: String::new(),
            rows: vec![row(0.0), row(1.0)],
            axis: Axis::FromZero,
            reference: None,
            tick: &|tick| format!("<{tick}>"),
        });
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches("&lt;").count(), 2, "ticks at 0 and 1: {svg}");
    }
}

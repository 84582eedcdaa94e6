//! Dot plot: each row has a figure, its interval, and the figures of single rounds. Plots of effects with limits are in
//! `forest_plot`.

use super::canvas::{Svg, TextAnchor, shorten_name};
use super::scale::AxisScale;

/// Shape of a row's mark. The shapes differ, so that colour is not the only difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DotMark {
    /// A filled dot, for a valid figure.
    Plain,
    /// A hollow dot, for a suspect figure.
    Doubtful,
    /// A filled triangle that points to the better side.
    Better,
    /// A filled square, for a figure that is worse.
    Worse,
    /// The word `void`, because the row has no figure.
    Void,
    /// An arrow at the low end and the figure as text, for a figure of 0 or less on a logarithmic axis.
    OffAxis,
}

/// A row of a dot plot.
pub struct DotRow {
    /// Name of the row.
    pub label: String,
    /// Figure that the mark shows.
    pub value: f64,
    /// Lower and upper end of the figure's interval; `None` without an interval.
    pub interval: Option<(f64, f64)>,
    /// Figures of single rounds, which are drawn faintly.
    pub rounds: Vec<f64>,
    /// Shape of the mark.
    pub shape: DotMark,
    /// Text of the figure, which stands to the right of the row.
    pub text: String,
}

/// Scale of a dot plot's axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DotAxis {
    /// Logarithmic: equal factors have equal distances, and there is no 0.
    Log,
    /// Linear from 0. If all figures are whole numbers (counts, or facts that are 0 or 1), all ticks are whole numbers
    /// too.
    FromZero,
}

impl DotAxis {
    /// Chooses the axis for these figures. It is linear if one of them is 0 and all others lie within a factor of a
    /// hundred, else logarithmic.
    #[must_use]
    pub fn choose(figures: impl Iterator<Item = f64> + Clone) -> Self {
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

/// Contents of a dot plot.
pub struct DotPlot<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, also printed above it.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Rows from top to bottom.
    pub rows: Vec<DotRow>,
    /// Scale of the axis.
    pub axis: DotAxis,
    /// Value at which a reference line is drawn, such as 1 for ratios; `None` draws no line.
    pub reference: Option<f64>,
    /// Function that formats the label of a tick.
    pub tick: &'a dyn Fn(f64) -> String,
}

const WIDTH: f64 = 540.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 24.0;

/// Draws a dot plot as SVG.
#[must_use]
pub fn draw_intervals(plot: &DotPlot) -> String {
    let longest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0) as f64;
    let names = longest(
        &mut plot
            .rows
            .iter()
            .map(|row| row.label.chars().count().min(28)),
    );
    let figures = longest(&mut plot.rows.iter().map(|row| row.text.chars().count()));
    let (left, right) = (names * 6.5 + 12.0, WIDTH - figures * 6.5 - 14.0);
    // Many rows are drawn closer together.
    let line = if plot.rows.len() > 24 { 15.0 } else { 18.0 };
    let height = TOP + plot.rows.len() as f64 * line + BOTTOM;
    let all = plot
        .rows
        .iter()
        .filter(|row| !matches!(row.shape, DotMark::Void | DotMark::OffAxis))
        .flat_map(|row| {
            let ends = row.interval.into_iter().flat_map(|(low, high)| [low, high]);
            // An interval may reach zero or less; only ends near the figure set the axis.
            let ends = ends.filter(|end| *end > row.value / 100.0 && *end < row.value * 100.0);
            ends.chain(row.rounds.iter().copied())
                .chain([row.value])
                .collect::<Vec<_>>()
        });
    let all: Vec<f64> = all.chain(plot.reference).collect();
    let scale = match plot.axis {
        DotAxis::Log => AxisScale::log(all.iter().copied(), left, right),
        DotAxis::FromZero => AxisScale::from_zero(all.iter().copied(), left, right),
    };
    let whole = plot.axis == DotAxis::FromZero && all.iter().all(|one| one.fract() == 0.0);
    let foot = height - BOTTOM + 2.0;
    let mut svg = Svg::new(WIDTH, height);
    let mut free = f64::MIN;
    let ticks = scale.ticks(6).into_iter();
    for tick in ticks.filter(|tick| !whole || tick.fract() == 0.0) {
        let x = scale.pixel_of(tick);
        svg.add_line((x, TOP), (x, foot), "gr");
        let label = (plot.tick)(tick);
        let half = label.chars().count() as f64 * 3.4;
        if x - half > free {
            svg.add_text(x, foot + 14.0, TextAnchor::Middle, "ax n", &label);
            free = x + half + 6.0;
        }
    }
    if let Some(reference) = plot.reference {
        svg.add_line(
            (scale.pixel_of(reference), TOP - 4.0),
            (scale.pixel_of(reference), foot),
            "ref",
        );
    }
    for (i, row) in plot.rows.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * line;
        svg.add_text(
            left - 9.0,
            y + 4.0,
            TextAnchor::End,
            "name",
            &shorten_name(&row.label, 28),
        );
        if row.shape == DotMark::Void {
            svg.add_text(left + 4.0, y + 4.0, TextAnchor::Start, "bad", "void");
            continue;
        }
        if row.shape == DotMark::OffAxis {
            let arrow = [(left + 4.0, y - 3.5), (left, y), (left + 4.0, y + 3.5)];
            svg.add_path(&arrow, "bar");
            svg.add_text(WIDTH - 2.0, y + 4.0, TextAnchor::End, "n val", &row.text);
            continue;
        }
        for round in row.rounds.iter().filter(|round| round.is_finite()) {
            svg.add_line(
                (scale.pixel_of(*round), y - 4.0),
                (scale.pixel_of(*round), y + 4.0),
                "round",
            );
        }
        if let Some((low, high)) = row.interval {
            svg.add_line((scale.pixel_of(low), y), (scale.pixel_of(high), y), "bar");
            // An end beyond the axis becomes an arrow.
            let (first, last) = scale.ends();
            if low < first {
                svg.add_path(
                    &[(left + 4.0, y - 3.5), (left, y), (left + 4.0, y + 3.5)],
                    "bar",
                );
            }
            if high > last {
                svg.add_path(
                    &[(right - 4.0, y - 3.5), (right, y), (right - 4.0, y + 3.5)],
                    "bar",
                );
            }
        }
        draw_shape(&mut svg, scale.pixel_of(row.value), y, row.shape);
        svg.add_text(WIDTH - 2.0, y + 4.0, TextAnchor::End, "n val", &row.text);
    }
    svg.finish(&plot.id, &plot.title, &plot.description)
}

fn draw_shape(svg: &mut Svg, x: f64, y: f64, shape: DotMark) {
    match shape {
        DotMark::Plain => svg.add_circle(x, y, 3.5, "mark"),
        DotMark::Doubtful => svg.add_circle(x, y, 3.5, "hollow"),
        DotMark::Better => {
            let points = [
                (x, y - 5.0),
                (x + 5.0, y + 4.0),
                (x - 5.0, y + 4.0),
                (x, y - 5.0),
            ];
            svg.add_path(&points, "good");
        }
        DotMark::Worse => svg.add_rect(x - 4.0, y - 4.0, 8.0, 8.0, "worse"),
        DotMark::Void | DotMark::OffAxis => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_among_near_figures_makes_the_axis_linear() {
        let of = |figures: &[f64]| DotAxis::choose(figures.iter().copied());
        assert_eq!(of(&[0.0, 1.0, 1.0]), DotAxis::FromZero);
        assert_eq!(of(&[0.0, 0.0]), DotAxis::FromZero);
        assert_eq!(of(&[0.0, 1.0, 5000.0]), DotAxis::Log);
        assert_eq!(of(&[10.0, 20.0]), DotAxis::Log);
    }

    #[test]
    fn facts_have_two_ticks_and_their_zero_is_a_dot() {
        let row = |value: f64| DotRow {
            label: format!("c{value}"),
            value,
            interval: None,
            rounds: vec![value],
            shape: DotMark::Plain,
            text: value.to_string(),
        };
        let svg = draw_intervals(&DotPlot {
            id: "p".to_owned(),
            title: String::new(),
            description: String::new(),
            rows: vec![row(0.0), row(1.0)],
            axis: DotAxis::FromZero,
            reference: None,
            tick: &|tick| format!("<{tick}>"),
        });
        assert_eq!(svg.matches("<circle").count(), 2);
        assert_eq!(svg.matches("&lt;").count(), 2, "ticks at 0 and 1: {svg}");
    }
}

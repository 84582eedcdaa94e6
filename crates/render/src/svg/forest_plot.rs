//! Forest plot: rows of effects with their intervals and limits on one axis, on which better is to the right. Plots of
//! figures with single rounds are in `dot_plot`.

use super::canvas::{Svg, TextAnchor, shorten_name};
use super::trial_effects::EffectAxis;

const WIDTH: f64 = 580.0;
const TOP: f64 = 8.0;
const LINE: f64 = 36.0;
/// Limit of the axis as a natural logarithm, if at least one effect is smaller than a factor of two. Intervals beyond
/// the limit end in an arrow.
const NEAR: f64 = std::f64::consts::LN_2;

/// Shape of a row's mark. The shapes differ, so that colour is not the only difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForestMark {
    /// A filled dot, for an effect without a judgement.
    Plain,
    /// A hollow dot, for an effect without a decision.
    Open,
    /// A triangle, for an effect that is better.
    Good,
    /// A square, for an effect that is worse.
    Bad,
}

/// A row of a forest plot: an effect with its interval.
pub struct ForestRow {
    /// Name of the row.
    pub label: String,
    /// Effect as the natural logarithm of the improvement factor. Above 0 is better; `None` draws no mark.
    pub effect: Option<f64>,
    /// Lower and upper end of the effect's interval; `None` without an interval.
    pub interval: Option<(f64, f64)>,
    /// Limit of a guardrail: the smallest permitted effect; `None` without a guardrail.
    pub least: Option<f64>,
    /// Half the width of the band of effects that are too small to matter, in the unit of `effect`.
    pub margin: Option<f64>,
    /// Shape of the mark.
    pub shape: ForestMark,
    /// Text that stands to the right of the row.
    pub text: String,
}

/// Contents of a forest plot, on whose axis better is to the right.
pub struct ForestPlot<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Rows from top to bottom.
    pub rows: Vec<ForestRow>,
    /// Whether tick labels show worsening, so that 1.1 means 10 % worse.
    pub falls: bool,
    /// Function that formats the label of a tick.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws a forest plot as SVG.
#[must_use]
pub fn draw_forest(chart: &ForestPlot) -> String {
    let width = WIDTH;
    let height = TOP + chart.rows.len() as f64 * LINE + 34.0;
    let foot = height - 32.0;
    // Values beyond a factor of two become arrows, unless all values lie there. An unbounded
    // interval never sets the axis.
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
    let axis = EffectAxis::new(values, 0.02, chart.falls, 8.0, width - 8.0);
    let mut svg = Svg::new(width, height);
    let mut free = f64::MIN;
    for (ratio, effect) in axis.ticks(7) {
        let x = axis.pixel_of(effect);
        svg.add_line((x, TOP), (x, foot), "gr");
        let label = (chart.tick)(ratio);
        let half = label.chars().count() as f64 * 3.6;
        if x - half > free {
            svg.add_text(x, foot + 14.0, TextAnchor::Middle, "ax n", &label);
            free = x + half + 6.0;
        }
    }
    svg.add_line(
        (axis.pixel_of(0.0), TOP),
        (axis.pixel_of(0.0), foot),
        "zero",
    );
    for (i, row) in chart.rows.iter().enumerate() {
        let top = TOP + i as f64 * LINE;
        let y = top + 24.0;
        if let Some(least) = row.least {
            svg.add_rect(
                axis.pixel_of(least),
                y - 7.0,
                width - 8.0 - axis.pixel_of(least),
                14.0,
                "band",
            );
            svg.add_line(
                (axis.pixel_of(least), y - 8.0),
                (axis.pixel_of(least), y + 8.0),
                "edge",
            );
        }
        if let Some(margin) = row.margin {
            let (low, high) = (axis.pixel_of(-margin), axis.pixel_of(margin));
            svg.add_rect(low, y - 7.0, high - low, 14.0, "band");
        }
        svg.add_text(
            8.0,
            top + 9.0,
            TextAnchor::Start,
            "halo",
            &shorten_name(&row.label, 46),
        );
        svg.add_text(
            width - 8.0,
            top + 9.0,
            TextAnchor::End,
            "n ax",
            &shorten_name(&row.text, 56),
        );
        let near = row.effect.is_some_and(|effect| !axis.is_beyond(effect));
        if let Some((low, high)) = row.interval.filter(|_| near) {
            svg.add_line((axis.pixel_of(low), y), (axis.pixel_of(high), y), "bar");
            for (end, way) in [(low, 4.0), (high, -4.0)] {
                let x = axis.pixel_of(end);
                match axis.is_beyond(end) {
                    true => svg.add_path(&[(x + way, y - 4.0), (x, y), (x + way, y + 4.0)], "bar"),
                    false => svg.add_line((x, y - 4.0), (x, y + 4.0), "bar"),
                }
            }
        }
        if let Some(effect) = row.effect {
            if axis.is_beyond(effect) {
                let way = if effect > 0.0 { -11.0 } else { 11.0 };
                let x = axis.pixel_of(effect);
                svg.add_path(
                    &[(x + way, y - 6.0), (x + way * 0.4, y), (x + way, y + 6.0)],
                    "beyond",
                );
                draw_shape(&mut svg, x + way * 2.0, y, row.shape);
                continue;
            }
            draw_shape(&mut svg, axis.pixel_of(effect), y, row.shape);
        }
    }
    svg.add_text(8.0, height - 3.0, TextAnchor::Start, "ax", "← worse");
    svg.add_text(width - 8.0, height - 3.0, TextAnchor::End, "ax", "better →");
    svg.finish(&chart.id, &chart.title, &chart.description)
}

fn draw_shape(svg: &mut Svg, x: f64, y: f64, shape: ForestMark) {
    match shape {
        ForestMark::Plain => svg.add_circle(x, y, 4.5, "mark"),
        ForestMark::Open => svg.add_circle(x, y, 4.5, "hollow"),
        ForestMark::Good => {
            let points = [
                (x, y - 6.0),
                (x + 6.0, y + 5.0),
                (x - 6.0, y + 5.0),
                (x, y - 6.0),
            ];
            svg.add_path(&points, "good");
        }
        ForestMark::Bad => svg.add_rect(x - 5.0, y - 5.0, 10.0, 10.0, "worse"),
    }
}

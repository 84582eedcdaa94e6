//! Charts of the effects of a trial: the pairs in their order, and the interval at each look. The axis is logarithmic
//! and labelled in percent.

use super::canvas::{Svg, TextAnchor};
use super::scale::{AxisScale, round_step_up};

/// A mapping from effects to pixels. An effect is the natural logarithm of an improvement, so better is always up or
/// right. Labels show the change of the figure itself.
pub struct EffectAxis {
    scale: AxisScale,
    /// Whether a smaller figure is better. Then an effect e multiplies the figure by exp(−e).
    falls: bool,
}

impl EffectAxis {
    /// Creates an axis that contains all finite values, zero and ±`margin`, with some room around
    /// them.
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
            scale: AxisScale::linear(low - room, high + room, from, to),
            falls,
        }
    }

    /// Returns the pixel of an effect.
    #[must_use]
    pub fn pixel_of(&self, effect: f64) -> f64 {
        self.scale.pixel_of(effect)
    }

    /// Returns whether an effect lies beyond an end of the axis.
    pub(super) fn is_beyond(&self, effect: f64) -> bool {
        let (low, high) = self.scale.ends();
        effect < low || effect > high
    }

    /// Converts an effect to the figure's ratio B ÷ A.
    fn ratio_of(&self, effect: f64) -> f64 {
        if self.falls {
            (-effect).exp()
        } else {
            effect.exp()
        }
    }

    /// Returns about `most` ticks, each with a round ratio B ÷ A and its effect.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, f64)> {
        let (low, high) = self.scale.ends();
        let (a, b) = (self.ratio_of(low), self.ratio_of(high));
        let (least, largest) = (a.min(b), a.max(b));
        let effect = |ratio: f64| if self.falls { -ratio.ln() } else { ratio.ln() };
        let ratios: Vec<f64> = match largest / least < 4.0 {
            true => {
                let step = round_step_up((largest - least) / most as f64);
                let first = ((least - 1.0) / step).ceil() as i64;
                (first..)
                    .take(most * 2 + 2)
                    .map(|i| 1.0 + i as f64 * step)
                    .take_while(|ratio| *ratio <= largest)
                    .collect()
            }
            false => AxisScale::log([least, largest].into_iter(), 0.0, 1.0)
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

/// How a pair was measured, which its mark shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairMark {
    /// A was measured first; the mark is a dot.
    NowFirst,
    /// B was measured first; the mark is a diamond.
    ChangedFirst,
    /// The pair was left out; the mark is a cross at the foot of the chart.
    LeftOut,
}

/// Contents of a chart of the pairs of a trial.
pub struct PairsChart<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Pairs in order, each with how it was measured and with its effect.
    pub points: Vec<(PairMark, f64)>,
    /// Centre of the effects of all pairs; `None` if there is none.
    pub centre: Option<f64>,
    /// Lower and upper end of the centre's interval; `None` if there is none.
    pub interval: Option<(f64, f64)>,
    /// Half the width of the band of effects that are too small to matter.
    pub margin: f64,
    /// Whether a smaller figure is better.
    pub falls: bool,
    /// Function that formats a ratio B ÷ A.
    pub tick: &'a dyn Fn(f64) -> String,
}

const WIDTH: f64 = 540.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 34.0;
const TOP: f64 = 20.0;
const FOOT: f64 = HEIGHT - 40.0;

/// Draws the band of the margin, the grid, the labels and the zero line of a vertical axis.
fn draw_frame(svg: &mut Svg, axis: &EffectAxis, margin: f64, tick: &dyn Fn(f64) -> String) {
    let (top, bottom) = (axis.pixel_of(margin), axis.pixel_of(-margin));
    svg.add_rect(LEFT, top, WIDTH - LEFT, bottom - top, "band");
    for (ratio, effect) in axis.ticks(7) {
        let y = axis.pixel_of(effect);
        svg.add_line((LEFT, y), (WIDTH, y), "gr");
        svg.add_text(LEFT - 7.0, y + 4.0, TextAnchor::End, "ax n", &tick(ratio));
    }
    svg.add_line(
        (LEFT, axis.pixel_of(0.0)),
        (WIDTH, axis.pixel_of(0.0)),
        "zero",
    );
    svg.add_text(LEFT, 10.0, TextAnchor::Start, "ax", "↑ better");
}

/// Draws the pairs as SVG. To their right is the centre of all pairs with its interval.
#[must_use]
pub fn draw_pairs(chart: &PairsChart) -> String {
    let left_out = chart
        .points
        .iter()
        .any(|(point, _)| *point == PairMark::LeftOut);
    let foot = if left_out { FOOT - 16.0 } else { FOOT };
    let counted = chart
        .points
        .iter()
        .filter(|(point, _)| *point != PairMark::LeftOut);
    let values = counted.map(|(_, effect)| *effect).chain(chart.centre);
    let axis = EffectAxis::new(values, chart.margin, chart.falls, foot, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    draw_frame(&mut svg, &axis, chart.margin, chart.tick);
    let n = chart.points.len().max(1) as f64;
    let x = |i: usize| LEFT + (i as f64 + 0.5) / n * (RIGHT - LEFT - 8.0) + 2.0;
    for (i, (point, effect)) in chart.points.iter().enumerate() {
        match point {
            PairMark::NowFirst => svg.add_circle(x(i), axis.pixel_of(*effect), 4.0, "mark"),
            PairMark::ChangedFirst => draw_diamond(&mut svg, x(i), axis.pixel_of(*effect), 5.0),
            PairMark::LeftOut => draw_cross(&mut svg, x(i), FOOT - 5.0),
        }
    }
    if left_out {
        svg.add_text(LEFT - 7.0, FOOT - 1.0, TextAnchor::End, "ax", "left out");
    }
    draw_pair_numbers(&mut svg, chart.points.len(), &x);
    svg.add_text(
        (LEFT + RIGHT) / 2.0,
        HEIGHT - 4.0,
        TextAnchor::Middle,
        "ax",
        "pair, in the order measured",
    );
    if let Some(centre) = chart.centre {
        let at = WIDTH - 16.0;
        svg.add_line((RIGHT - 2.0, TOP), (RIGHT - 2.0, foot), "gr");
        if let Some((low, high)) = chart.interval {
            draw_upright_interval(&mut svg, &axis, at, low, high);
        }
        svg.add_circle(at, axis.pixel_of(centre), 5.0, "hollow");
        svg.add_text(at, FOOT + 14.0, TextAnchor::Middle, "ax", "all");
    }
    svg.finish(&chart.id, &chart.title, &chart.description)
}

/// Draws about ten of the numbers 1 to `n` below a chart.
fn draw_pair_numbers(svg: &mut Svg, n: usize, x: &dyn Fn(usize) -> f64) {
    let every = round_step_up(n as f64 / 9.0).max(1.0) as usize;
    for i in (0..n).filter(|i| *i == 0 || (i + 1).is_multiple_of(every)) {
        if i == 0 && every > 4 || i + 1 == every && every <= 4 && every > 1 && i < 2 {
            continue;
        }
        svg.add_text(
            x(i),
            FOOT + 14.0,
            TextAnchor::Middle,
            "ax n",
            &(i + 1).to_string(),
        );
    }
}

fn draw_diamond(svg: &mut Svg, x: f64, y: f64, r: f64) {
    let points = [(x, y - r), (x + r, y), (x, y + r), (x - r, y), (x, y - r)];
    svg.add_path(&points, "second");
}

fn draw_cross(svg: &mut Svg, x: f64, y: f64) {
    svg.add_path(&[(x - 3.5, y - 3.5), (x + 3.5, y + 3.5)], "void");
    svg.add_path(&[(x - 3.5, y + 3.5), (x + 3.5, y - 3.5)], "void");
}

/// Draws a vertical interval. An end beyond the axis becomes an arrow.
fn draw_upright_interval(svg: &mut Svg, axis: &EffectAxis, x: f64, low: f64, high: f64) {
    svg.add_line((x, axis.pixel_of(low)), (x, axis.pixel_of(high)), "bar");
    for (end, way) in [(low, -4.0), (high, 4.0)] {
        let y = axis.pixel_of(end);
        match axis.is_beyond(end) {
            true => svg.add_path(&[(x - 4.0, y + way), (x, y), (x + 4.0, y + way)], "bar"),
            false => svg.add_line((x - 4.0, y), (x + 4.0, y), "bar"),
        }
    }
}

/// Contents of a chart of the interval at each look.
pub struct LooksChart<'a> {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the chart, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// For each look: number of measured pairs, centre, and the lower and upper end of its interval if they are finite.
    pub looks: Vec<(u32, f64, Option<f64>, Option<f64>)>,
    /// Half the width of the band of effects that are too small to matter.
    pub margin: f64,
    /// Whether a smaller figure is better.
    pub falls: bool,
    /// Function that formats a ratio B ÷ A.
    pub tick: &'a dyn Fn(f64) -> String,
}

/// Draws as SVG how the interval becomes narrower from look to look.
#[must_use]
pub fn draw_looks(chart: &LooksChart) -> String {
    // The first intervals may be very wide, so only the last ones and the centres set the axis.
    let last = chart.looks.iter().rev().take(3);
    let ends = last.flat_map(|(_, _, low, high)| [*low, *high]).flatten();
    let values = chart.looks.iter().map(|look| look.1).chain(ends);
    let axis = EffectAxis::new(values, chart.margin, chart.falls, FOOT, TOP);
    let most = chart.looks.last().map_or(1, |look| look.0);
    let x = AxisScale::linear(0.0, f64::from(most) * 1.04, LEFT, WIDTH - 4.0);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    draw_frame(&mut svg, &axis, chart.margin, chart.tick);
    let (bottom, top) = axis.scale.ends();
    let line: Vec<(f64, f64)> = chart
        .looks
        .iter()
        .map(|(pairs, centre, ..)| (x.pixel_of(f64::from(*pairs)), axis.pixel_of(*centre)))
        .collect();
    svg.add_path(&line, "trace");
    let mut free = f64::MIN;
    for (pairs, centre, low, high) in &chart.looks {
        let at = x.pixel_of(f64::from(*pairs));
        // An interval without an end reaches beyond the axis.
        let (low, high) = (low.unwrap_or(bottom - 1.0), high.unwrap_or(top + 1.0));
        draw_upright_interval(&mut svg, &axis, at, low, high);
        svg.add_circle(at, axis.pixel_of(*centre), 4.0, "mark");
        if at - 9.0 > free {
            svg.add_text(
                at,
                FOOT + 14.0,
                TextAnchor::Middle,
                "ax n",
                &pairs.to_string(),
            );
            free = at + 9.0;
        }
    }
    svg.add_text(
        (LEFT + WIDTH) / 2.0,
        HEIGHT - 4.0,
        TextAnchor::Middle,
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
        let axis = EffectAxis::new([0.12, -0.04].into_iter(), 0.03, false, 100.0, 0.0);
        let ratios: Vec<f64> = axis
            .ticks(6)
            .iter()
            .map(|tick| (tick.0 * 100.0).round())
            .collect();
        assert_eq!(ratios, [95.0, 100.0, 105.0, 110.0]);
        // If a smaller figure is better, better is still up: −50 % lies above zero.
        let axis = EffectAxis::new([0.7].into_iter(), 0.03, true, 100.0, 0.0);
        assert!(axis.pixel_of(0.7) < axis.pixel_of(0.0));
        assert!(
            axis.ticks(6)
                .iter()
                .all(|(ratio, effect)| (ratio.ln() + effect).abs() < 1e-9)
        );
    }

    proptest! {
        #[test]
        fn any_changes_make_a_sane_chart(
            effects in prop::collection::vec(any::<f64>(), 0..20),
            falls in any::<bool>(),
        ) {
            let points = effects.iter().map(|e| (PairMark::NowFirst, *e)).chain([(PairMark::LeftOut, 0.0)]);
            let chart = PairsChart {
                id: "p".to_owned(), title: String::new(), description: String::new(),
                points: points.collect(), centre: effects.first().copied(),
                interval: effects.first().map(|e| (*e, f64::INFINITY)), margin: 0.03, falls,
                tick: &|ratio| format!("{ratio:.1e}"),
            };
            let svg = draw_pairs(&chart);
            prop_assert!(svg.contains("<svg ") && !svg.contains("\"NaN\"") && !svg.contains("\"inf"));
            let axis = EffectAxis::new(effects.iter().copied(), 0.03, falls, 100.0, 0.0);
            prop_assert!(axis.ticks(6).len() <= 16);
        }
    }
}

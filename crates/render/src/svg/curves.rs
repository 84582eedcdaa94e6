//! Latency percentile curves: which share of operations took at most how long. The horizontal axis
//! counts nines (−log₁₀ of the share that took longer), so that the tail has as much room as the
//! bulk; the vertical axis is logarithmic.

use super::draw::{Anchor, Svg, shorten};
use super::palette::{colour_class, line_class};
use super::scale::Scale;
use crate::units::latency;
use assay_model::Histogram;

/// One curve.
pub struct Curve {
    /// Its name, written at its end.
    pub label: String,
    /// Points (nines, nanoseconds), ascending.
    pub points: Vec<(f64, f64)>,
}

/// What a panel shows.
pub struct Panel {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// Curves; eight colours, then the same with dashes and with dots.
    pub curves: Vec<Curve>,
    /// Drawn large; panels that share axes are of one size.
    pub large: bool,
}

/// Characters of a label.
const LABEL: usize = 26;
/// Width without the labels, and height: one of many panels, or one by itself.
const SMALL: (f64, f64) = (290.0, 210.0);
const LARGE: (f64, f64) = (640.0, 300.0);
const LEFT: f64 = 52.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;

/// Percentiles that are labelled, with their nines.
const TICKS: [(&str, f64); 7] = [
    ("0", 0.0),
    ("50", std::f64::consts::LOG10_2),
    ("90", 1.0),
    ("99", 2.0),
    ("99.9", 3.0),
    ("99.99", 4.0),
    ("99.999", 5.0),
];

/// The curve of a histogram, from the fastest tenth (the very fastest say nothing and would take
/// much of the axis) up to the nines that its count can tell (one operation in n). At most
/// `most` points.
#[must_use]
pub fn points(histogram: &Histogram, most: usize) -> Vec<(f64, f64)> {
    let total = histogram.count();
    if total == 0 {
        return Vec::new();
    }
    // The largest value has no nines at all; it is drawn where one more operation would have been.
    let end = (total as f64 + 1.0).log10();
    let begin = nines(1, 10, end).min(end);
    let mut curve: Vec<(f64, f64)> = Vec::new();
    let mut seen = 0u64;
    for (nanos, count) in histogram.bins() {
        let from = nines(seen, total, end);
        seen = seen.saturating_add(count);
        let to = nines(seen, total, end);
        if to >= begin {
            curve.push((from.max(begin), nanos as f64));
            curve.push((to, nanos as f64));
        }
    }
    thin(&curve, end, most)
}

/// −log₁₀ of the share above rank `seen`.
fn nines(seen: u64, total: u64, end: f64) -> f64 {
    match total.saturating_sub(seen) {
        0 => end,
        above => -((above as f64 / total as f64).log10()),
    }
}

/// The last point of each of `most` equal parts of the axis, and the first and last of all: the
/// curve ascends, so nothing between them is hidden by more than a part's width.
fn thin(curve: &[(f64, f64)], end: f64, most: usize) -> Vec<(f64, f64)> {
    if curve.len() <= most {
        return curve.to_vec();
    }
    let parts = most.max(4) - 2;
    let part = |at: f64| (at / end * parts as f64) as usize;
    let last = curve.len() - 1;
    let kept = curve
        .iter()
        .enumerate()
        .filter(|(i, (at, _))| *i == 0 || *i == last || part(*at) != part(curve[i + 1].0));
    kept.map(|(_, point)| *point).collect()
}

/// The vertical axis that several panels of one size share.
#[must_use]
pub fn scale<'a>(panels: impl Iterator<Item = &'a Curve>, large: bool) -> Scale {
    let values = panels.flat_map(|curve| curve.points.iter().map(|(_, nanos)| *nanos));
    let height = if large { LARGE.1 } else { SMALL.1 };
    Scale::log(values, height - BOTTOM, TOP)
}

/// Draws a panel with a shared vertical axis and a horizontal one up to `nines`.
#[must_use]
pub fn draw(panel: &Panel, y: &Scale, nines: f64) -> String {
    let names = panel
        .curves
        .iter()
        .map(|curve| curve.label.chars().count().min(LABEL))
        .max();
    let (right, height) = if panel.large { LARGE } else { SMALL };
    let foot = height - BOTTOM;
    let x = Scale::linear(0.0, nines.clamp(1.0, 12.0), LEFT, right);
    let mut svg = Svg::new(right + names.unwrap_or(0) as f64 * 6.6 + 30.0, height);
    for tick in y.ticks(6) {
        svg.line((LEFT, y.at(tick)), (right, y.at(tick)), "gr");
        svg.text(
            LEFT - 6.0,
            y.at(tick) + 4.0,
            Anchor::End,
            "ax n",
            &short_latency(tick),
        );
    }
    for (label, at) in TICKS.into_iter().filter(|(_, at)| *at <= x.ends().1) {
        svg.line((x.at(at), TOP), (x.at(at), foot), "gr");
        if at > 0.0 {
            svg.text(x.at(at), foot + 14.0, Anchor::Middle, "ax n", label);
        }
    }
    let mut labels: Vec<(f64, usize)> = Vec::new();
    for (i, curve) in panel.curves.iter().enumerate() {
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|(at, nanos)| (x.at(*at), y.at(*nanos)))
            .collect();
        svg.path(&points, &line_class(i));
        if let Some((at, end)) = points.last() {
            svg.circle(*at, *end, 2.0, &colour_class(i));
            labels.push((*end, i));
        }
    }
    for (at, i) in spread(labels, 12.0, TOP + 4.0, foot) {
        // The sample beside the name shows the dashes, so that colour alone never tells.
        let sample = [(right + 5.0, at), (right + 23.0, at)];
        svg.path(&sample, &line_class(i));
        let label = shorten(&panel.curves[i].label, LABEL);
        svg.text(
            right + 28.0,
            at + 4.0,
            Anchor::Start,
            &colour_class(i),
            &label,
        );
    }
    svg.finish(&panel.id, &panel.title, &panel.description)
}

/// A tick without needless zeros: `100 µs`, `1 ms`.
fn short_latency(nanos: f64) -> String {
    latency(nanos).replace(".00 ", " ").replace(".0 ", " ")
}

/// Moves labels apart so that they are at least `gap` from each other, within bounds as long as
/// there is room.
pub(super) fn spread(
    mut labels: Vec<(f64, usize)>,
    gap: f64,
    top: f64,
    bottom: f64,
) -> Vec<(f64, usize)> {
    labels.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut floor = f64::MIN;
    for label in &mut labels {
        label.0 = label.0.max(floor);
        floor = label.0 + gap;
    }
    let mut ceiling = bottom;
    for label in labels.iter_mut().rev() {
        label.0 = label.0.min(ceiling);
        ceiling = label.0 - gap;
    }
    let first = labels.first().map_or(0.0, |label| (top - label.0).max(0.0));
    labels.iter_mut().for_each(|label| label.0 += first);
    labels
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_curve_ends_where_the_count_ends() {
        let histogram: Histogram = [(1000, 99), (5000, 1)].into_iter().collect();
        let curve = points(&histogram, 100);
        assert_eq!(curve.first().map(|point| point.1), Some(1000.0));
        assert!(
            (curve[1].0 - 2.0).abs() < 1e-9,
            "99 % took 1000 ns: {curve:?}"
        );
        assert_eq!(curve.last(), Some(&(101f64.log10(), 5000.0)));
    }

    #[test]
    fn labels_do_not_overlap() {
        let placed = spread(
            vec![(50.0, 0), (51.0, 1), (49.0, 2), (188.0, 3)],
            12.0,
            10.0,
            188.0,
        );
        assert!(
            placed.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 12.0),
            "{placed:?}"
        );
    }

    proptest! {
        #[test]
        fn thinning_keeps_order_ends_and_size(bins in prop::collection::vec((1u64..1_000_000, 1u64..1000), 1..400)) {
            let histogram: Histogram = bins.into_iter().collect();
            let curve = points(&histogram, 60);
            prop_assert!(curve.len() <= 62);
            prop_assert!(curve.windows(2).all(|p| p[0].0 <= p[1].0 && p[0].1 <= p[1].1));
            prop_assert_eq!(curve.last().map(|p| p.1 as u64), histogram.percentile(100.0));
        }
    }
}

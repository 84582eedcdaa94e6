//! Latency percentile curves, which show the fraction of operations up to each latency.
//!
//! The horizontal axis counts nines (−log₁₀ of the fraction of slower operations), so that the tail has as much room as
//! the bulk. The vertical axis is logarithmic.

use super::canvas::{Svg, TextAnchor, shorten_name};
use super::palette::{colour_class, line_class};
use super::scale::AxisScale;
use crate::units::format_latency;
use assay_model::Histogram;

/// The latency curve of one histogram.
pub struct LatencyCurve {
    /// Name of the curve, which is written at its end.
    pub label: String,
    /// Points of the curve in ascending order, each as (nines, nanoseconds).
    pub points: Vec<(f64, f64)>,
}

/// A panel with one or more latency curves.
pub struct CurvePanel {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the panel, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Curves of the panel. The first eight differ in colour. Further curves repeat the colours with dashes, then with
    /// dots.
    pub curves: Vec<LatencyCurve>,
    /// Whether the panel is drawn large. All panels that share an axis must have the same size.
    pub large: bool,
}

/// Maximum length of a label in characters.
const LABEL: usize = 26;
/// Width (without labels) and height in pixels of a panel beside other panels. A single panel has the size `LARGE`.
const SMALL: (f64, f64) = (290.0, 210.0);
const LARGE: (f64, f64) = (640.0, 300.0);
const LEFT: f64 = 52.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 22.0;

/// Percentiles that are labelled on the axis, with their nines.
const TICKS: [(&str, f64); 7] = [
    ("0", 0.0),
    ("50", std::f64::consts::LOG10_2),
    ("90", 1.0),
    ("99", 2.0),
    ("99.9", 3.0),
    ("99.99", 4.0),
    ("99.999", 5.0),
];

/// Computes the curve of a histogram, with at most `most` points. The curve starts at the fastest tenth, because faster
/// operations would only take up space on the axis. It ends at the nines that the number of operations resolves (one
/// operation in n).
#[must_use]
pub fn compute_curve(histogram: &Histogram, most: usize) -> Vec<(f64, f64)> {
    let total = histogram.count();
    if total == 0 {
        return Vec::new();
    }
    // The largest value has infinitely many nines; it is drawn where one more operation would lie.
    let end = (total as f64 + 1.0).log10();
    let begin = compute_nines(1, 10, end).min(end);
    let mut curve: Vec<(f64, f64)> = Vec::new();
    let mut seen = 0u64;
    for (nanos, count) in histogram.bins() {
        let from = compute_nines(seen, total, end);
        seen = seen.saturating_add(count);
        let to = compute_nines(seen, total, end);
        if to >= begin {
            curve.push((from.max(begin), nanos as f64));
            curve.push((to, nanos as f64));
        }
    }
    thin_out(&curve, end, most)
}

/// Computes −log₁₀ of the fraction of operations above rank `seen`. Returns `end` if no operation is above this rank.
fn compute_nines(seen: u64, total: u64, end: f64) -> f64 {
    match total.saturating_sub(seen) {
        0 => end,
        above => -((above as f64 / total as f64).log10()),
    }
}

/// Reduces a curve to the last point in each of `most` equal parts of the axis, and the first and last point of the
/// curve. The curve ascends, so every dropped point is within the width of one part of a kept point.
fn thin_out(curve: &[(f64, f64)], end: f64, most: usize) -> Vec<(f64, f64)> {
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

/// Builds the vertical axis that several panels of one size share.
#[must_use]
pub fn build_latency_scale<'a>(
    panels: impl Iterator<Item = &'a LatencyCurve>,
    large: bool,
) -> AxisScale {
    let values = panels.flat_map(|curve| curve.points.iter().map(|(_, nanos)| *nanos));
    let height = if large { LARGE.1 } else { SMALL.1 };
    AxisScale::log(values, height - BOTTOM, TOP)
}

/// Draws a panel as SVG, with a shared vertical axis `y` and a horizontal axis up to `nines`.
#[must_use]
pub fn draw_panel(panel: &CurvePanel, y: &AxisScale, nines: f64) -> String {
    let names = panel
        .curves
        .iter()
        .map(|curve| curve.label.chars().count().min(LABEL))
        .max();
    let (right, height) = if panel.large { LARGE } else { SMALL };
    let foot = height - BOTTOM;
    let x = AxisScale::linear(0.0, nines.clamp(1.0, 12.0), LEFT, right);
    let mut svg = Svg::new(right + names.unwrap_or(0) as f64 * 6.6 + 30.0, height);
    for tick in y.ticks(6) {
        svg.add_line((LEFT, y.pixel_of(tick)), (right, y.pixel_of(tick)), "gr");
        svg.add_text(
            LEFT - 6.0,
            y.pixel_of(tick) + 4.0,
            TextAnchor::End,
            "ax n",
            &format_latency_tick(tick),
        );
    }
    for (label, at) in TICKS.into_iter().filter(|(_, at)| *at <= x.ends().1) {
        svg.add_line((x.pixel_of(at), TOP), (x.pixel_of(at), foot), "gr");
        if at > 0.0 {
            svg.add_text(
                x.pixel_of(at),
                foot + 14.0,
                TextAnchor::Middle,
                "ax n",
                label,
            );
        }
    }
    let mut labels: Vec<(f64, usize)> = Vec::new();
    for (i, curve) in panel.curves.iter().enumerate() {
        let points: Vec<(f64, f64)> = curve
            .points
            .iter()
            .map(|(at, nanos)| (x.pixel_of(*at), y.pixel_of(*nanos)))
            .collect();
        svg.add_path(&points, &line_class(i));
        if let Some((at, end)) = points.last() {
            svg.add_circle(*at, *end, 2.0, &colour_class(i));
            labels.push((*end, i));
        }
    }
    for (at, i) in spread_labels(labels, 12.0, TOP + 4.0, foot) {
        // A line sample beside the name shows the dashes, so that colour is not the only
        // difference.
        let sample = [(right + 5.0, at), (right + 23.0, at)];
        svg.add_path(&sample, &line_class(i));
        let label = shorten_name(&panel.curves[i].label, LABEL);
        svg.add_text(
            right + 28.0,
            at + 4.0,
            TextAnchor::Start,
            &colour_class(i),
            &label,
        );
    }
    svg.finish(&panel.id, &panel.title, &panel.description)
}

/// Formats a latency tick without needless zeros, such as `100 µs` or `1 ms`.
fn format_latency_tick(nanos: f64) -> String {
    format_latency(nanos)
        .replace(".00 ", " ")
        .replace(".0 ", " ")
}

/// Moves labels apart until their distance is at least `gap`. They stay within the bounds if there is room.
pub(super) fn spread_labels(
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
        let curve = compute_curve(&histogram, 100);
        assert_eq!(curve.first().map(|point| point.1), Some(1000.0));
        assert!(
            (curve[1].0 - 2.0).abs() < 1e-9,
            "99 % took 1000 ns: {curve:?}"
        );
        assert_eq!(curve.last(), Some(&(101f64.log10(), 5000.0)));
    }

    #[test]
    fn labels_do_not_overlap() {
        let placed = spread_labels(
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
            let curve = compute_curve(&histogram, 60);
            prop_assert!(curve.len() <= 62);
            prop_assert!(curve.windows(2).all(|p| p[0].0 <= p[1].0 && p[0].1 <= p[1].1));
            prop_assert_eq!(curve.last().map(|p| p.1 as u64), histogram.percentile(100.0));
        }
    }
}

//! Panels of rate over time, which show the rounds of one workload side by side. Charts of a figure over time for both
//! sides of a trial are in `sides_over_time`.

use super::canvas::{Svg, TextAnchor};
use super::scale::AxisScale;
use assay_model::sample::RatePoint;

/// Rate of one round. Each point consists of milliseconds since the start of the round, and bytes per second.
pub type RateLine = Vec<(f64, f64)>;

/// A panel with the rounds of one workload.
pub struct RatePanel {
    /// Id of the SVG element, which must be unique on the page.
    pub id: String,
    /// Title of the panel, for screen readers.
    pub title: String,
    /// Description for screen readers.
    pub description: String,
    /// Rounds to draw, each with its number and its rate.
    pub rounds: Vec<(u32, RateLine)>,
}

const WIDTH: f64 = 264.0;
const HEIGHT: f64 = 88.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 8.0;
const FOOT: f64 = HEIGHT - 16.0;
const GAP: f64 = 6.0;

/// Adds the rates of all operations, and reduces the result to at most `most` points. Each part of the time keeps its
/// lowest and its highest point, so that no stall or burst is averaged away.
#[must_use]
pub fn sum_rates(points: &[RatePoint], most: usize) -> RateLine {
    let all: RateLine = points
        .iter()
        .map(|point| (point.at_ms as f64, point.bytes_per_s()))
        .filter(|(_, rate)| rate.is_finite())
        .collect();
    if all.len() <= most.max(2) {
        return all;
    }
    let part = all.len().div_ceil((most / 2).max(1));
    all.chunks(part)
        .flat_map(|chunk| {
            let lowest = chunk.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            let highest = chunk.iter().max_by(|a, b| a.1.total_cmp(&b.1));
            let mut pair: RateLine = lowest.into_iter().chain(highest).copied().collect();
            pair.sort_by(|a, b| a.0.total_cmp(&b.0));
            pair.dedup();
            pair
        })
        .collect()
}

/// Draws a panel as SVG. `tick` formats a rate.
#[must_use]
pub fn draw_panel(panel: &RatePanel, tick: &dyn Fn(f64) -> String) -> String {
    let rates = panel
        .rounds
        .iter()
        .flat_map(|(_, line)| line.iter().map(|(_, rate)| *rate));
    let y = AxisScale::from_zero(rates, FOOT, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    for value in [0.0, y.ends().1] {
        svg.add_line((LEFT, y.pixel_of(value)), (WIDTH, y.pixel_of(value)), "gr");
        svg.add_text(
            LEFT - 6.0,
            y.pixel_of(value) + 4.0,
            TextAnchor::End,
            "ax n",
            &tick(value),
        );
    }
    let rounds = panel.rounds.len().max(1) as f64;
    let width = ((WIDTH - LEFT - GAP * (rounds - 1.0)) / rounds).max(2.0);
    let longest = panel
        .rounds
        .iter()
        .flat_map(|(_, line)| line.last())
        .map(|(at, _)| *at);
    let longest = longest.fold(1.0, f64::max);
    for (i, (round, line)) in panel.rounds.iter().enumerate() {
        let left = LEFT + i as f64 * (width + GAP);
        let first = line.first().map_or(0.0, |(at, _)| at.min(longest * 0.5));
        let x = AxisScale::linear(first, longest, left, left + width);
        let points: Vec<(f64, f64)> = line
            .iter()
            .map(|(at, rate)| (x.pixel_of(*at), y.pixel_of(*rate)))
            .collect();
        svg.add_line((left, FOOT), (left + width, FOOT), "base");
        svg.add_path(&points, "l2");
        if rounds <= 12.0 {
            svg.add_text(
                left + width / 2.0,
                HEIGHT - 3.0,
                TextAnchor::Middle,
                "ax n",
                &round.to_string(),
            );
        }
    }
    svg.finish(&panel.id, &panel.title, &panel.description)
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_model::sample::{Operation, Rate};
    use proptest::prelude::*;

    fn point(at_ms: u64, rate: f64) -> RatePoint {
        RatePoint {
            at_ms,
            rates: [(
                Operation::Read,
                Rate {
                    per_s: 0.0,
                    bytes_per_s: rate,
                },
            )]
            .into(),
        }
    }

    proptest! {
        #[test]
        fn thinning_never_hides_a_stall_or_a_burst(rates in prop::collection::vec(0f64..1e6, 1..500)) {
            let points: Vec<RatePoint> = rates.iter().enumerate().map(|(i, r)| point(i as u64 * 100, *r)).collect();
            let line = sum_rates(&points, 24);
            prop_assert!(line.len() <= 24);
            let ends = |values: &mut dyn Iterator<Item = f64>| {
                values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)))
            };
            prop_assert_eq!(ends(&mut line.iter().map(|p| p.1)), ends(&mut rates.iter().copied()));
            prop_assert!(line.windows(2).all(|p| p[0].0 < p[1].0));
        }
    }
}

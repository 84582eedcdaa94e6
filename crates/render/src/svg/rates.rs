//! Rate over time: the rounds of one workload side by side.

use super::draw::{Anchor, Svg};
use super::scale::Scale;
use assay_model::sample::RatePoint;

/// Rate of one round: milliseconds since its start and bytes per second.
pub type Line = Vec<(f64, f64)>;

/// What a panel shows.
pub struct Panel {
    /// Unique on the page.
    pub id: String,
    /// Of the chart.
    pub title: String,
    /// What it says, for those who do not see it.
    pub description: String,
    /// Round and its line.
    pub rounds: Vec<(u32, Line)>,
}

const WIDTH: f64 = 264.0;
const HEIGHT: f64 = 88.0;
const LEFT: f64 = 46.0;
const TOP: f64 = 8.0;
const FOOT: f64 = HEIGHT - 16.0;
const GAP: f64 = 6.0;

/// All operations together, at most `most` points: of each part of the time its lowest and its
/// highest point, so that a stall or a burst is never averaged away.
#[must_use]
pub fn line(points: &[RatePoint], most: usize) -> Line {
    let all: Line = points
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
            let mut pair: Line = lowest.into_iter().chain(highest).copied().collect();
            pair.sort_by(|a, b| a.0.total_cmp(&b.0));
            pair.dedup();
            pair
        })
        .collect()
}

/// Draws a panel; `tick` writes a rate.
#[must_use]
pub fn draw(panel: &Panel, tick: &dyn Fn(f64) -> String) -> String {
    let rates = panel
        .rounds
        .iter()
        .flat_map(|(_, line)| line.iter().map(|(_, rate)| *rate));
    let y = Scale::from_zero(rates, FOOT, TOP);
    let mut svg = Svg::new(WIDTH, HEIGHT);
    for value in [0.0, y.ends().1] {
        svg.line((LEFT, y.at(value)), (WIDTH, y.at(value)), "gr");
        svg.text(
            LEFT - 6.0,
            y.at(value) + 4.0,
            Anchor::End,
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
        let x = Scale::linear(first, longest, left, left + width);
        let points: Vec<(f64, f64)> = line
            .iter()
            .map(|(at, rate)| (x.at(*at), y.at(*rate)))
            .collect();
        svg.line((left, FOOT), (left + width, FOOT), "base");
        svg.path(&points, "l2");
        if rounds <= 12.0 {
            svg.text(
                left + width / 2.0,
                HEIGHT - 3.0,
                Anchor::Middle,
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
            let line = line(&points, 24);
            prop_assert!(line.len() <= 24);
            let ends = |values: &mut dyn Iterator<Item = f64>| values.fold((f64::MAX, f64::MIN), |(l, h), v| (l.min(v), h.max(v)));
            prop_assert_eq!(ends(&mut line.iter().map(|p| p.1)), ends(&mut rates.iter().copied()));
            prop_assert!(line.windows(2).all(|p| p[0].0 < p[1].0));
        }
    }
}

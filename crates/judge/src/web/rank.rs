//! Ranks several servers. Rounds were interleaved, so a disturbance of a round affected all servers in it;
//! therefore servers are compared round by round.

use super::{estimate, is_counted, per_cpu_second};
use crate::estimate::{compute_mean_and_error, interval_around_mean};
use assay_model::web::result::{Capacity, Place, RankedBy, Ranking};
use assay_model::web::{Pace, Step};

/// Builds the rankings by capacity and by efficiency; empty for fewer than two targets.
pub(super) fn rank_targets(steps: &[Step], capacity: &[Option<Capacity>]) -> Vec<Ranking> {
    if capacity.len() < 2 {
        return Vec::new();
    }
    let by = |by: RankedBy, of: &dyn Fn(&Step) -> Option<f64>| {
        let places = rank_places(steps, capacity, of);
        (places.len() > 1).then_some(Ranking { by, places })
    };
    let rate = |step: &Step| Some(step.measured.rate());
    [
        by(RankedBy::Capacity, &rate),
        by(RankedBy::Efficiency, &per_cpu_second),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn rank_places(
    steps: &[Step],
    capacity: &[Option<Capacity>],
    of: &dyn Fn(&Step) -> Option<f64>,
) -> Vec<Place> {
    // For each target, at the concurrency of its capacity: round and figure.
    let mut all: Vec<(usize, Vec<(u32, f64)>)> = Vec::new();
    for (target, capacity) in capacity.iter().enumerate() {
        let Some(capacity) = capacity else { continue };
        let at = steps.iter().filter(|step| {
            step.target == target
                && step.pace == Pace::Closed
                && step.connections == capacity.connections
                && is_counted(step)
        });
        let figures: Vec<(u32, f64)> = at
            .filter_map(|step| Some((step.round, of(step).filter(|value| *value > 0.0)?)))
            .collect();
        if !figures.is_empty() {
            all.push((target, figures));
        }
    }
    let value = |figures: &[(u32, f64)]| {
        let values: Vec<f64> = figures.iter().map(|(_, value)| *value).collect();
        estimate(&values)
    };
    let mut ranked: Vec<_> = all
        .into_iter()
        .filter_map(|(target, figures)| Some((target, value(&figures)?, figures)))
        .collect();
    ranked.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    (0..ranked.len())
        .map(|at| Place {
            target: ranked[at].0,
            value: ranked[at].1,
            apart: ranked
                .get(at + 1)
                .map(|next| are_distinguishable(&ranked[at].2, &next.2)),
        })
        .collect()
}

/// Whether the interval of the mean ratio, over the rounds that both have, excludes 1.
fn are_distinguishable(better: &[(u32, f64)], worse: &[(u32, f64)]) -> bool {
    let ratios: Vec<f64> = better
        .iter()
        .filter_map(|(round, value)| {
            let (_, other) = worse.iter().find(|(other, _)| other == round)?;
            Some((value / other).ln())
        })
        .collect();
    let freedom = ratios.len() as f64 - 1.0;
    let interval = compute_mean_and_error(&ratios)
        .and_then(|(mean, error)| interval_around_mean(mean, error?, freedom));
    interval.is_some_and(|interval| interval.low > 0.0)
}

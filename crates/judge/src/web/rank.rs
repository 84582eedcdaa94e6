//! Ranks several servers. Rounds were interleaved, so a disturbance affected all servers in the same round; the servers
//! are therefore compared round by round.

use super::{estimate, estimate_per_cpu_second, is_counted, per_cpu_second};
use crate::estimate::{compute_mean_and_error, interval_around_mean};
use assay_model::result::Estimate;
use assay_model::web::result::{Capacity, Place, RankedBy, Ranking};
use assay_model::web::{Pace, Step};

/// Builds the rankings by capacity and by efficiency; empty for fewer than two targets.
pub(super) fn rank_targets(steps: &[Step], capacity: &[Option<Capacity>]) -> Vec<Ranking> {
    if capacity.len() < 2 {
        return Vec::new();
    }
    let by = |by: RankedBy, figure: &RankedFigure| {
        let places = rank_places(steps, capacity, figure);
        (places.len() > 1).then_some(Ranking { by, places })
    };
    let rates = |steps: &[&Step]| {
        let rates: Vec<f64> = steps.iter().map(|step| step.measured.rate()).collect();
        estimate(&rates)
    };
    let rate = RankedFigure {
        of_round: &|step| Some(step.measured.rate()),
        of_rounds: &rates,
    };
    let efficiency = RankedFigure {
        of_round: &per_cpu_second,
        of_rounds: &estimate_per_cpu_second,
    };
    [
        by(RankedBy::Capacity, &rate),
        by(RankedBy::Efficiency, &efficiency),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A figure by which targets are ranked, for one round and for all rounds. It is the same as the printed figure of the
/// step.
struct RankedFigure<'a> {
    of_round: &'a dyn Fn(&Step) -> Option<f64>,
    of_rounds: &'a dyn Fn(&[&Step]) -> Option<Estimate>,
}

/// A target at the concurrency of its capacity: its index, the figure of all rounds, and each round with its figure.
type RankedTarget = (usize, Estimate, Vec<(u32, f64)>);

fn rank_places(steps: &[Step], capacity: &[Option<Capacity>], figure: &RankedFigure) -> Vec<Place> {
    let mut ranked: Vec<RankedTarget> = Vec::new();
    for (target, capacity) in capacity.iter().enumerate() {
        let Some(capacity) = capacity else { continue };
        let at = steps.iter().filter(|step| {
            step.target == target
                && step.pace == Pace::Closed
                && step.connections == capacity.connections
                && is_counted(step)
                && (figure.of_round)(step).is_some_and(|value| value > 0.0)
        });
        let at: Vec<&Step> = at.collect();
        let rounds = at
            .iter()
            .filter_map(|step| Some((step.round, (figure.of_round)(step)?)));
        if let Some(value) = (figure.of_rounds)(&at) {
            ranked.push((target, value, rounds.collect()));
        }
    }
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

/// Whether two targets are distinguishable: the interval of their mean ratio, over the rounds that both targets have,
/// does not contain 1.
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

//! Ranks the configurations by a figure. Because rounds were interleaved, neighbours in the ranking are compared round
//! by round, like a claim about their ratio.

use super::claims::ClaimEvidence;
use super::round_estimates;
use assay_model::study::{Better, Bound, Figure, Place, Ranking};

/// Builds the ranking of each figure for which the study requests one.
pub(super) fn build_rankings(known: &ClaimEvidence<'_>) -> Vec<Ranking> {
    let figures = known.run.study.figures.iter();
    let ranked = figures.filter(|figure| figure.ranked && figure.better != Better::Neither);
    ranked
        .filter_map(|figure| rank_by_figure(known, figure))
        .collect()
}

fn rank_by_figure(known: &ClaimEvidence<'_>, figure: &Figure) -> Option<Ranking> {
    let lower = figure.better == Better::Lower;
    let best_first = |a: f64, b: f64| match lower {
        true => a.total_cmp(&b),
        false => b.total_cmp(&a),
    };
    let mut all = Vec::new();
    for one in &known.run.study.configurations {
        let values = known.valid_values(&one.name, &figure.name);
        let values: Vec<f64> = values.into_iter().map(|(_, value)| value).collect();
        if let Some(estimate) = round_estimates::estimate_mean(&values, figure.exact) {
            all.push((one.name.clone(), estimate));
        }
    }
    if all.len() < 2 {
        return None;
    }
    all.sort_by(|a, b| best_first(a.1.value, b.1.value));
    let published = |name: &str| {
        let one = known.find_published(name, &figure.name)?;
        matches!(one.is, Bound::Exactly | Bound::About).then_some(one.value)
    };
    let mut theirs: Vec<f64> = all.iter().filter_map(|(name, _)| published(name)).collect();
    theirs.sort_by(|a, b| best_first(*a, *b));
    let apart = |better: &str, worse: &str| {
        let (of, to) = if lower {
            (worse, better)
        } else {
            (better, worse)
        };
        let ratio =
            round_estimates::estimate_ratio(&known.valid_pairs(&figure.name, of, to), figure.exact);
        let interval = ratio.and_then(|ratio| ratio.interval);
        interval.is_some_and(|interval| interval.low > 1.0)
    };
    let places = all.iter().enumerate().map(|(at, (name, estimate))| Place {
        configuration: name.clone(),
        estimate: *estimate,
        apart: all.get(at + 1).map(|(next, _)| apart(name, next)),
        published: published(name)
            .and_then(|value| Some(1 + theirs.iter().position(|one| *one == value)?)),
    });
    Some(Ranking {
        figure: figure.name.clone(),
        places: places.collect(),
    })
}

//! From advice to a plan that leaves nothing to choose: how many pairs at most, which side first.

use assay_judge::trial::forecast;
use assay_model::advice::{Advice, Guard, TrialSpec};
use assay_model::load::Load;
use assay_model::trial::{MAX_PAIRS, Side, TrialPlan};
use assay_model::{Bytes, Nanos};
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeMap;

/// What the user may say differently from the advice.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Smallest ratio that matters.
    pub margin: Option<f64>,
    /// Guardrails that replace those of the advice for the same figure, or come on top.
    pub guards: Vec<Guard>,
    /// Measured time of one slot.
    pub slot: Option<Nanos>,
    /// Load before measuring.
    pub washout: Option<Nanos>,
    /// Size of the scratch file.
    pub size: Option<Bytes>,
    /// Pairs at most.
    pub max_pairs: Option<u32>,
    /// Time at most.
    pub budget: Option<Nanos>,
    /// Both sides as they are now.
    pub aa: bool,
    /// Level of a false "better".
    pub alpha: f64,
    /// Seed of the coins and of the judge.
    pub seed: u64,
}

/// Settles a plan.
#[must_use]
pub fn settle(
    advice: &Advice,
    spec: &TrialSpec,
    parameters: BTreeMap<String, String>,
    target: &str,
    options: &Options,
) -> TrialPlan {
    let max_pairs = options.max_pairs.unwrap_or(MAX_PAIRS).max(1);
    let seconds = |seconds: f64| Nanos((seconds.max(0.0) * 1e9) as u64);
    let mut load = spec.load.clone();
    if let (Load::Fio { size, .. }, Some(wanted)) = (&mut load, options.size) {
        *size = wanted;
    }
    let mut plan = TrialPlan {
        advice: advice.id.clone(),
        title: advice.title.clone(),
        predicts: advice.predicts.clone(),
        parameters,
        target: target.to_owned(),
        change: spec.change.clone(),
        aa: options.aa,
        load,
        metric: spec.metric,
        guards: guards(&spec.guards, &options.guards),
        margin: options.margin.unwrap_or(spec.margin),
        slot: options.slot.unwrap_or_else(|| seconds(spec.slot_seconds)),
        washout: options
            .washout
            .unwrap_or_else(|| seconds(spec.washout_seconds)),
        cached: spec.cached,
        safety: spec.safety,
        keep: match &spec.change {
            set @ assay_model::Change::Set { .. } => {
                Some(spec.keep.clone().unwrap_or_else(|| set.clone()))
            }
            assay_model::Change::SideBySide { .. } => spec.keep.clone(),
        },
        risk: advice.risk.level,
        max_pairs,
        budget: options.budget,
        alpha: options.alpha,
        seed: options.seed,
        first: Vec::new(),
    };
    if let Some(budget) = plan.budget {
        // Planned so from the start, the judge has a last look at what fits.
        let fit = forecast::pairs_within(&plan, budget);
        plan.max_pairs = plan.max_pairs.min(fit).max(1);
    }
    plan.first = coins(plan.seed, plan.max_pairs);
    plan
}

fn guards(advised: &[Guard], asked: &[Guard]) -> Vec<Guard> {
    let replaced = |guard: &Guard| asked.iter().any(|other| other.metric == guard.metric);
    let kept = advised.iter().filter(|guard| !replaced(guard));
    kept.chain(asked).copied().collect()
}

/// One coin for each pair. The whole error rate rests on these being fair and independent of what
/// is measured, so they are thrown before anything is.
pub(crate) fn coins(seed: u64, pairs: u32) -> Vec<Side> {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    let mut coin = || match random.random::<bool>() {
        true => Side::Now,
        false => Side::Changed,
    };
    (0..pairs).map(|_| coin()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_are_fair_enough_and_the_same_for_the_same_seed() {
        assert_eq!(coins(7, 60), coins(7, 60));
        assert_ne!(coins(7, 60), coins(8, 60));
        let heads = (0..200)
            .flat_map(|seed| coins(seed, 60))
            .filter(|side| *side == Side::Now)
            .count();
        // 12,000 fair coins: sd 54.8, so this is within four of them.
        assert!((5_780..=6_220).contains(&heads), "{heads}");
    }

    #[test]
    fn a_guard_of_the_user_replaces_the_same_one_of_the_advice() {
        let guard = |metric: &str, margin| Guard {
            metric: metric.parse().unwrap(),
            margin,
        };
        let both = guards(
            &[guard("p99", 0.1), guard("p50", 0.05)],
            &[guard("p99", 0.2)],
        );
        assert_eq!(both, [guard("p50", 0.05), guard("p99", 0.2)]);
    }
}

//! Converts advice to a plan without open choices: sets the maximum number of pairs, and generates the randomised
//! order.

use crate::trials::budget;
use assay_judge::trial::forecast::count_pairs_within;
use assay_model::advice::{Advice, Guard, TrialSpec};
use assay_model::load::Load;
use assay_model::trial::{MAX_PAIRS, Side, TrialPlan};
use assay_model::{Bytes, Nanos};
use rand::{RngExt as _, SeedableRng};
use std::collections::BTreeMap;

/// Options of the user that override the advice.
#[derive(Clone, Debug, Default)]
pub struct TrialOptions {
    /// Smallest relevant difference as a fraction: 0.03 for 3 %.
    pub margin: Option<f64>,
    /// Additional guardrails. They replace the guardrails of the advice for the same figure.
    pub guards: Vec<Guard>,
    /// Duration of the measured part of a slot.
    pub slot: Option<Nanos>,
    /// Duration of the load before the measured part of a slot.
    pub washout: Option<Nanos>,
    /// Size of the scratch file.
    pub size: Option<Bytes>,
    /// Maximum number of pairs.
    pub max_pairs: Option<u32>,
    /// Time budget of the whole trial.
    pub budget: Option<Nanos>,
    /// Whether both sides are the baseline (an A/A trial, which tests assay itself).
    pub aa: bool,
    /// Accepted probability of the verdict "better" if there is no difference, 0 to 1.
    pub alpha: f64,
    /// Seed of the randomised order and of the randomisation test.
    pub seed: u64,
}

/// Creates the plan of a trial from the advice and the user's options. Options take precedence.
#[must_use]
pub fn settle(
    advice: &Advice,
    spec: &TrialSpec,
    parameters: BTreeMap<String, String>,
    target: &str,
    options: &TrialOptions,
) -> TrialPlan {
    let max_pairs = options.max_pairs.unwrap_or(MAX_PAIRS).max(1);
    let seconds = |seconds: f64| Nanos((seconds.max(0.0) * 1e9) as u64);
    let mut load = spec.load.clone();
    if let (Load::Fio { size, .. }, Some(wanted)) = (&mut load, options.size) {
        *size = Some(wanted);
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
        guards: trial_guards(spec, &options.guards),
        margin: options.margin.unwrap_or(spec.margin),
        slot: options.slot.unwrap_or_else(|| seconds(spec.slot_seconds)),
        // A length of the user is fixed.
        slot_min: (spec.slot_seconds_min)
            .filter(|least| options.slot.is_none() && *least < spec.slot_seconds)
            .map(seconds),
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
        // Planned from the start, so that the judge's last analysis is at the last pair that fits.
        let fit = budget::affordable_pairs(&plan, budget);
        plan.max_pairs = plan.max_pairs.min(fit).max(1);
    }
    plan.first = draw_order(plan.seed, plan.max_pairs);
    plan
}

/// Sets the slot length. If shorter slots make room for more pairs in the remaining time, increases the number of
/// pairs.
pub(crate) fn with_slots(plan: &mut TrialPlan, slot: Nanos, spent: Nanos) {
    plan.slot = slot;
    if let Some(budget) = plan.budget {
        let fit = count_pairs_within(plan, Nanos(budget.0.saturating_sub(spent.0)));
        plan.max_pairs = plan.max_pairs.max(fit.min(MAX_PAIRS));
        plan.first = draw_order(plan.seed, plan.max_pairs);
    }
}

/// Returns the plan for a second session of the same trial. The second session gets its own randomised order.
#[must_use]
pub fn plan_again(plan: &TrialPlan, seed: u64, budget: Option<Nanos>) -> TrialPlan {
    let mut again = plan.clone();
    (again.seed, again.budget) = (seed, budget);
    // The chosen length is kept.
    again.slot_min = None;
    if let Some(budget) = budget {
        again.max_pairs = again
            .max_pairs
            .min(budget::affordable_pairs(&again, budget))
            .max(1);
    }
    again.first = draw_order(seed, again.max_pairs);
    again
}

/// Returns the guardrails of the advice and of the user. If none of them is a tail latency, adds one, unless the advice
/// page excludes this.
fn trial_guards(spec: &TrialSpec, asked: &[Guard]) -> Vec<Guard> {
    let replaced = |guard: &Guard| asked.iter().any(|other| other.metric == guard.metric);
    let kept = spec.guards.iter().filter(|guard| !replaced(guard));
    let mut guards: Vec<Guard> = kept.chain(asked).copied().collect();
    if spec.no_tail_guard.is_none() {
        guards.extend(Guard::default_tail(spec.metric, &guards));
    }
    guards
}

/// Draws at random which side is measured first in each pair. The error rate of the test requires a fair order that is
/// independent of the measurements. Therefore the order is drawn before anything is measured.
#[must_use]
pub fn draw_order(seed: u64, pairs: u32) -> Vec<Side> {
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
    fn shorter_slots_leave_room_for_more_pairs_with_the_same_coins() {
        let mut plan = crate::trials::pairs::tests::trial().plan;
        let s = 1_000_000_000;
        (plan.slot, plan.washout, plan.budget) = (Nanos(5 * s), Nanos(s), Some(Nanos(150 * s)));
        plan.max_pairs = 10;
        plan.first = draw_order(plan.seed, 10);
        let before = plan.first.clone();
        with_slots(&mut plan, Nanos(s), Nanos(30 * s));
        assert_eq!((plan.slot, plan.max_pairs), (Nanos(s), 30));
        assert_eq!((plan.first.len(), &plan.first[..10]), (30, &before[..]));
        plan.budget = None;
        with_slots(&mut plan, Nanos(2 * s), Nanos(0));
        assert_eq!((plan.slot, plan.max_pairs), (Nanos(2 * s), 30));
    }

    #[test]
    fn coins_are_fair_enough_and_the_same_for_the_same_seed() {
        assert_eq!(draw_order(7, 60), draw_order(7, 60));
        assert_ne!(draw_order(7, 60), draw_order(8, 60));
        let heads = (0..200)
            .flat_map(|seed| draw_order(seed, 60))
            .filter(|side| *side == Side::Now)
            .count();
        // 12,000 fair draws: standard deviation 54.8, so this is within four of them.
        assert!((5_780..=6_220).contains(&heads), "{heads}");
    }

    fn guard(metric: &str, margin: f64) -> Guard {
        Guard {
            metric: metric.parse().unwrap(),
            margin,
        }
    }

    fn spec(metric: &str, guards: &[Guard], no_tail_guard: Option<&str>) -> TrialSpec {
        TrialSpec {
            target: assay_model::advice::TargetKind::Address,
            default_target: None,
            change: assay_model::Change::Set {
                setting: assay_model::change::Setting::Sysctl {
                    key: "vm.swappiness".to_owned(),
                },
                value: None,
            },
            load: Load::Command {
                argv: Vec::new(),
                prints: None,
            },
            metric: metric.parse().unwrap(),
            guards: guards.to_vec(),
            no_tail_guard: no_tail_guard.map(str::to_owned),
            margin: 0.03,
            slot_seconds: 5.0,
            slot_seconds_min: None,
            washout_seconds: 1.0,
            cached: false,
            safety: None,
            keep: None,
        }
    }

    #[test]
    fn a_guard_of_the_user_replaces_the_same_one_of_the_advice() {
        let advised = [guard("p99", 0.1), guard("p50", 0.05)];
        let both = trial_guards(&spec("iops", &advised, None), &[guard("p99", 0.2)]);
        assert_eq!(both, [guard("p50", 0.05), guard("p99", 0.2)]);
    }

    #[test]
    fn every_trial_looks_at_the_slowest_operations_unless_its_page_says_why_not() {
        assert_eq!(
            trial_guards(&spec("p50", &[], None), &[]),
            [guard("p99", 0.25)]
        );
        assert_eq!(
            trial_guards(&spec("read.iops", &[guard("p50", 0.1)], None), &[]),
            [guard("p50", 0.1), guard("read.p99", 0.25)]
        );
        for (metric, advised, asked) in [
            ("p99", vec![], vec![]),
            ("iops", vec![guard("p99.9", 0.5)], vec![]),
            ("iops", vec![], vec![guard("read.p99", 0.5)]),
        ] {
            let settled = trial_guards(&spec(metric, &advised, None), &asked);
            assert_eq!(settled.len(), advised.len() + asked.len(), "{metric}");
        }
        assert_eq!(trial_guards(&spec("p50", &[], Some("one login")), &[]), []);
    }
}

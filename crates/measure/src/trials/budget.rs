//! Divides the user's time budget into preparation, noise measurement and pairs.

use crate::runner::estimate::{self, PaceEstimate};
use crate::trials::noise::NOISE_PAIRS;
use assay_judge::trial::forecast::{count_least_pairs, count_pairs_within, forecast_time};
use assay_model::plan::DEFAULT_FILE_SIZE;
use assay_model::trial::TrialPlan;
use assay_model::{Bytes, Change, Load, Nanos};

/// Estimates how long it takes to create the objects, at the write rate of one hard disk.
fn estimate_preparation(plan: &TrialPlan) -> Nanos {
    let Load::Fio { size, .. } = &plan.load else {
        return Nanos(0);
    };
    let files = match plan.change {
        Change::SideBySide { .. } => 2,
        Change::Set { .. } => 1,
    };
    let size = size.unwrap_or(DEFAULT_FILE_SIZE).0;
    let pace = PaceEstimate {
        layout: None,
        overhead: Nanos(0),
    };
    estimate::layout(Bytes(size.saturating_mul(files)), &pace)
}

fn remaining_budget(plan: &TrialPlan, budget: Nanos) -> Nanos {
    Nanos(budget.0.saturating_sub(estimate_preparation(plan).0))
}

/// Returns the number of pairs that fit into a budget. Reserves time for the noise measurement if enough pairs for a
/// verdict remain. Preparation time is only an estimate. Therefore it never reduces the number of pairs below the
/// minimum for a verdict.
pub(crate) fn affordable_pairs(plan: &TrialPlan, budget: Nanos) -> u32 {
    let least = count_least_pairs(plan.alpha);
    let fit = count_pairs_within(plan, remaining_budget(plan, budget));
    match fit.checked_sub(NOISE_PAIRS) {
        Some(beside_noise) if beside_noise >= least => beside_noise,
        _ => fit.max(count_pairs_within(plan, budget).min(least)),
    }
}

/// Returns whether the budget permits a noise measurement in addition to all pairs.
pub(crate) fn affords_noise(plan: &TrialPlan) -> bool {
    plan.budget.is_none_or(|budget| {
        count_pairs_within(plan, remaining_budget(plan, budget))
            >= plan.max_pairs.saturating_add(NOISE_PAIRS)
    })
}

/// If the budget permits too few pairs for a verdict, returns a sufficient budget. Returns `None` if the budget
/// suffices, or if the user requested fewer pairs.
#[must_use]
pub fn too_small(plan: &TrialPlan, asked: Option<u32>) -> Option<Nanos> {
    let least = count_least_pairs(plan.alpha);
    let budget = plan.budget?;
    if asked.is_some_and(|pairs| pairs < least) || count_pairs_within(plan, budget) >= least {
        return None;
    }
    let needed = forecast_time(plan, least)
        .time
        .and(estimate_preparation(plan));
    let second = 1_000_000_000;
    Some(Nanos(needed.0.div_ceil(second).saturating_mul(second)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::pairs::tests::trial;

    const S: u64 = 1_000_000_000;

    fn plan(budget: u64) -> TrialPlan {
        let mut plan = trial().plan;
        (plan.slot, plan.washout) = (Nanos(4 * S), Nanos(S));
        plan.budget = Some(Nanos(budget * S));
        plan.max_pairs = plan
            .max_pairs
            .min(affordable_pairs(&plan, Nanos(budget * S)))
            .max(1);
        plan
    }

    #[test]
    fn noise_counts_and_gives_way_to_the_fewest_pairs() {
        // A pair takes ten seconds; this load needs no objects.
        let ample = plan(120);
        assert_eq!((ample.max_pairs, affords_noise(&ample)), (9, true));
        let tight = plan(75);
        assert_eq!((tight.max_pairs, affords_noise(&tight)), (7, false));
        for budget in [60, 75, 90, 120, 600] {
            let plan = plan(budget);
            let noise = if affords_noise(&plan) { NOISE_PAIRS } else { 0 };
            assert!((plan.max_pairs + noise) * 10 <= budget as u32, "{budget}");
            assert!(plan.max_pairs >= 6 && too_small(&plan, None).is_none());
        }
    }

    #[test]
    fn a_budget_without_a_verdict_names_one_that_has() {
        let small = plan(59);
        let needed = too_small(&small, None).unwrap();
        assert_eq!(needed, Nanos(60 * S));
        assert_eq!(too_small(&plan(needed.0 / S), None), None);
        // A user who requests three pairs gets them.
        assert_eq!(too_small(&small, Some(3)), None);
        // With one error rate for many pieces of advice, six pairs do not suffice.
        let mut strict = plan(60);
        strict.alpha = 0.05 / 8.0;
        assert_eq!(too_small(&strict, None), Some(Nanos(80 * S)));
    }
}

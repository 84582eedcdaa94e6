//! Judges trials: computes the pair outcomes and the verdict from the slots. These are pure functions, and the same
//! seed gives the same result bit for bit. Applying and reverting changes is in `assay-changes`.
//!
//! The order within every pair is randomised. If the change has no effect, each pair's log ratio could equally well
//! have had the other sign, whatever the noise. The error level of every verdict follows from this alone.
//! `docs/src/trial-statistics.md` explains the rule, and its results with simulated and recorded noise.

pub mod campaign_level;
mod counted_pairs;
pub mod e_process;
mod figure_judgements;
pub mod forecast;
mod interval;
mod judged_slots;
mod look_schedule;
mod one_sided_failures;
mod pair_outcomes;
mod rank_sum;
mod robust_statistics;
pub mod second_session;
mod sequential_test;
mod sign_flips;
pub mod slot_length;
mod trial_rule;
mod verdict;
mod verdict_sentence;
mod work_total;

pub use counted_pairs::{FRUITLESS, find_reason_to_give_up};
pub use judged_slots::{JudgedSlots, judge_slots_for_display};
pub use look_schedule::find_next_look;
pub(crate) use pair_outcomes::build_sample_context;
pub use pair_outcomes::{judge_pairs, judge_slots};
pub use rank_sum::compute_probability_below;
pub use robust_statistics::compute_centre;
pub use trial_rule::{ALPHA, TrialRule};
pub use verdict::{decide_verdict, judge_trial_pairs};

use assay_model::Trial;
use assay_model::trial::{Judgement, PairOutcome, Slot};

/// Judges a trial: returns the outcome of each pair, and the judgement over all pairs.
#[must_use]
pub fn judge_trial(trial: &Trial, slots: &[Slot]) -> (Vec<PairOutcome>, Judgement) {
    let (pairs, figures): (Vec<_>, Vec<_>) = pair_outcomes::judge_pairs_with_figures(trial, slots)
        .into_iter()
        .unzip();
    let figures: Vec<_> = figures.into_iter().flatten().collect();
    let rule = TrialRule::from_plan(&trial.plan, &trial.durability);
    let mut judgement = judge_trial_pairs(&rule, &pairs);
    judgement.figures =
        figure_judgements::judge_figures(&trial.plan, &rule, &pairs, &figures, &judgement);
    (pairs, judgement)
}

#[cfg(test)]
mod tests;

//! Keep or revert: what the pairs of a trial amount to. Pure, seeded, replayable bit for bit.
//!
//! The order of every pair is a coin of our own. If the change does nothing, each pair's log ratio
//! could as well have had the other sign, whatever the noise looks like; that alone carries the
//! error of every verdict here. `docs/src/trial-statistics.md` explains the rule and shows what it
//! does on simulated and recorded noise.

pub mod campaign;
mod centre;
pub mod evidence;
mod failures;
mod flips;
pub mod forecast;
mod interval;
mod looks;
mod measured;
mod pairs;
mod rows;
mod rule;
pub mod second;
mod shown;
pub mod slots;
mod test;
mod total;
mod verdict;
mod words;

pub use centre::centre;
pub use looks::next_look;
pub use measured::{FRUITLESS, fruitless};
pub use pairs::{judged_slots, pairs};
pub use rule::{ALPHA, Rule};
pub use shown::{Shown, shown};
pub use verdict::{decide, judge};

use assay_model::Trial;
use assay_model::trial::{Judgement, PairOutcome, Slot};

/// The pairs of a trial and what they amount to.
#[must_use]
pub fn judge_trial(trial: &Trial, slots: &[Slot]) -> (Vec<PairOutcome>, Judgement) {
    let (pairs, figures): (Vec<_>, Vec<_>) = pairs::with_figures(trial, slots).into_iter().unzip();
    let figures: Vec<_> = figures.into_iter().flatten().collect();
    let rule = Rule::of(&trial.plan, &trial.durability);
    let mut judgement = judge(&rule, &pairs);
    judgement.figures = rows::figures(&trial.plan, &rule, &pairs, &figures, &judgement);
    (pairs, judgement)
}

#[cfg(test)]
mod tests;

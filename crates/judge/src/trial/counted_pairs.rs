//! Pairs that count for the verdict, as logarithms of ratios. `pair_outcomes` decides which pairs are void or failed
//! and do not count.

use super::trial_rule::TrialRule;
use assay_model::trial::PairOutcome;

/// Pairs that count for the verdict, in the order in which they were measured.
pub(super) struct CountedPairs {
    /// Natural logarithm of the improvement, by pair.
    pub effects: Vec<f64>,
    /// Natural logarithm of the worsening, by guardrail and pair.
    pub guards: Vec<Vec<f64>>,
    /// Work of A and of B in the same time, by pair.
    pub work: Vec<[f64; 2]>,
}

impl CountedPairs {
    /// Collects the pairs. Pairs that failed, are void or have no finite figures are excluded.
    pub(super) fn collect(rule: &TrialRule, pairs: &[PairOutcome]) -> Self {
        let mut measured = Self {
            effects: Vec::new(),
            guards: vec![Vec::new(); rule.guards.len()],
            work: Vec::new(),
        };
        let sound = |pair| read_sound_pair(pair, rule.guards.len());
        for (effect, guards, work) in pairs.iter().filter_map(sound) {
            measured.effects.push(effect);
            measured.work.push(work);
            for (all, guard) in measured.guards.iter_mut().zip(guards) {
                all.push(*guard);
            }
        }
        measured
    }

    /// Returns the number of pairs that count for the verdict.
    pub(super) fn count_pairs(&self) -> usize {
        self.effects.len()
    }
}

fn read_sound_pair(pair: &PairOutcome, expected: usize) -> Option<(f64, &[f64], [f64; 2])> {
    let PairOutcome::Measured {
        effect,
        guards,
        work,
    } = pair
    else {
        return None;
    };
    let finite = effect.is_finite() && guards.iter().all(|guard| guard.is_finite());
    let works = work.iter().all(|work| work.is_finite() && *work > 0.0);
    (finite && works && guards.len() == expected).then_some((*effect, guards, *work))
}

/// Number of consecutive pairs without a figure after which a trial ends early.
pub const FRUITLESS: usize = 3;

/// Returns the reason to end the trial early, or `None`. A trial ends early if each of the last [`FRUITLESS`] pairs is
/// void or failed on the baseline too.
#[must_use]
pub fn find_reason_to_give_up(outcomes: &[PairOutcome]) -> Option<String> {
    let last = outcomes.len().checked_sub(FRUITLESS)?;
    let mut why = None;
    for outcome in &outcomes[last..] {
        why = match outcome {
            PairOutcome::Measured { .. } | PairOutcome::FailedChanged { .. } => return None,
            PairOutcome::Failed { error } => Some(error.clone()),
            PairOutcome::Void { reason } => Some(reason.clone()),
        };
    }
    why
}

//! What the pairs measured.

use super::rule::Rule;
use assay_model::trial::PairOutcome;

/// The pairs that count, in the order in which they were measured.
pub(super) struct Measured {
    /// ln of the improvement.
    pub effects: Vec<f64>,
    /// ln of the worsening, per guardrail.
    pub guards: Vec<Vec<f64>>,
    /// Work of A and of B in the same time.
    pub work: Vec<[f64; 2]>,
}

impl Measured {
    /// Pairs that failed, are void or are no numbers are left out.
    pub(super) fn of(rule: &Rule, pairs: &[PairOutcome]) -> Self {
        let mut measured = Self {
            effects: Vec::new(),
            guards: vec![Vec::new(); rule.guards.len()],
            work: Vec::new(),
        };
        let sound = |pair| sound(pair, rule.guards.len());
        for (effect, guards, work) in pairs.iter().filter_map(sound) {
            measured.effects.push(effect);
            measured.work.push(work);
            for (all, guard) in measured.guards.iter_mut().zip(guards) {
                all.push(*guard);
            }
        }
        measured
    }

    /// How many count.
    pub(super) fn pairs(&self) -> usize {
        self.effects.len()
    }
}

fn sound(pair: &PairOutcome, expected: usize) -> Option<(f64, &[f64], [f64; 2])> {
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

/// Pairs in a row without a figure after which going on is pointless.
pub const FRUITLESS: usize = 3;

/// Why going on is pointless: the last pairs gave no figure, and it was not the change alone.
#[must_use]
pub fn fruitless(outcomes: &[PairOutcome]) -> Option<String> {
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

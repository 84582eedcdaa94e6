//! What the pairs measured.

use super::rule::Rule;
use assay_model::trial::PairOutcome;

/// The pairs that count, in the order in which they were measured.
pub(super) struct Measured {
    /// ln of the improvement.
    pub effects: Vec<f64>,
    /// ln of the worsening, per guardrail.
    pub guards: Vec<Vec<f64>>,
}

impl Measured {
    /// Pairs that failed, are void or are no numbers are left out.
    pub(super) fn of(rule: &Rule, pairs: &[PairOutcome]) -> Self {
        let mut measured = Self {
            effects: Vec::new(),
            guards: vec![Vec::new(); rule.guards.len()],
        };
        let sound = |pair| sound(pair, rule.guards.len());
        for (effect, guards) in pairs.iter().filter_map(sound) {
            measured.effects.push(effect);
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

fn sound(pair: &PairOutcome, expected: usize) -> Option<(f64, &[f64])> {
    let PairOutcome::Measured { effect, guards } = pair else {
        return None;
    };
    let finite = effect.is_finite() && guards.iter().all(|guard| guard.is_finite());
    (finite && guards.len() == expected).then_some((*effect, guards))
}

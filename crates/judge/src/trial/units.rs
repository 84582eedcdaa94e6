//! What the pairs measured, in units that had a coin each.

use super::rule::Rule;
use assay_model::trial::PairOutcome;

/// Units in the order in which they were measured.
pub(super) struct Units {
    /// ln of the improvement.
    pub effects: Vec<f64>,
    /// ln of the worsening, per guardrail.
    pub guards: Vec<Vec<f64>>,
    /// Pairs measured.
    pub pairs: u32,
}

impl Units {
    /// Pairs that failed, are void or are no numbers are left out. A unit counts when all its pairs
    /// were tried and one of them was measured: with the mean of those.
    pub(super) fn of(rule: &Rule, pairs: &[PairOutcome]) -> Self {
        let mut units = Self {
            effects: Vec::new(),
            guards: vec![Vec::new(); rule.guards.len()],
            pairs: 0,
        };
        for unit in pairs.chunks(rule.unit()) {
            let measured: Vec<(f64, &[f64])> = unit
                .iter()
                .filter_map(|pair| sound(pair, rule.guards.len()))
                .collect();
            units.pairs += measured.len() as u32;
            if measured.is_empty() || unit.len() < rule.unit() {
                continue;
            }
            let n = measured.len() as f64;
            let sum: f64 = measured.iter().map(|(effect, _)| effect).sum();
            units.effects.push(sum / n);
            for (at, guard) in units.guards.iter_mut().enumerate() {
                let sum: f64 = measured.iter().map(|(_, guards)| guards[at]).sum();
                guard.push(sum / n);
            }
        }
        units
    }
}

fn sound(pair: &PairOutcome, expected: usize) -> Option<(f64, &[f64])> {
    let PairOutcome::Measured { effect, guards } = pair else {
        return None;
    };
    let finite = effect.is_finite() && guards.iter().all(|guard| guard.is_finite());
    (finite && guards.len() == expected).then_some((*effect, guards))
}

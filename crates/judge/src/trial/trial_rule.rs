//! The rule of a trial, fixed before its first pair. `verdict` applies the rule.

use assay_model::advice::{Guard, SafetyRule};
use assay_model::trial::{DurabilityProof, MAX_PAIRS, Side, TrialPlan};

/// Default probability of a false verdict, in each direction, of a single trial.
pub const ALPHA: f64 = 0.05;

/// The rule that a trial is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialRule {
    /// Smallest relative difference that matters: 0.03 for 3 %.
    pub margin: f64,
    /// Guardrails: figures that must not get worse.
    pub guards: Vec<Guard>,
    /// Maximum number of pairs. Above [`MAX_PAIRS`] the trial is open-ended and judged by the e-process.
    pub max_pairs: u32,
    /// Maximum probability of a false "better", and of a false "worse".
    pub alpha: f64,
    /// Seed of the random sign flips.
    pub seed: u64,
    /// Description of a safety rule that the change breaks; `None` if it breaks none.
    pub safety_broken: Option<String>,
    /// Description of a safety rule whose proof is missing. Without the proof the change must not be kept.
    pub unproved: Option<String>,
    /// Whether both sides are the same (A/A trial): the trial measures noise, and nothing can be better.
    pub aa: bool,
    /// Whether the deciding figure is a latency, which does not include all the work (see `work_total`).
    pub by_latency: bool,
    /// Numbers of pairs at which the test looks at the results, fixed before the first pair; the last one is
    /// `max_pairs`. Empty for the default looks. With a single look the time at which the trial stopped does not bias
    /// the centre of the pairs.
    pub looks: Vec<u32>,
}

impl TrialRule {
    /// Returns the rule of a plan. The proofs of durability determine the safety rules.
    #[must_use]
    pub fn from_plan(plan: &TrialPlan, durability: &[DurabilityProof]) -> Self {
        let lost = |side: Side| durability.iter().find(|p| p.side == side && p.lost > 0);
        let safety_broken = lost(Side::Changed).map(|proof| {
            let mut sentence = format!(
                "{} of {} writes acknowledged as durable were lost with the change ({})",
                proof.lost, proof.acknowledged, proof.method
            );
            if let Some(now) = lost(Side::Now) {
                sentence.push_str(&format!(
                    "; without it {} of {} were lost as well",
                    now.lost, now.acknowledged
                ));
            }
            sentence
        });
        let proved = durability
            .iter()
            .any(|proof| proof.side == Side::Changed && proof.acknowledged > 0);
        let unproved = match plan.safety {
            Some(SafetyRule::AcknowledgedWrites) if !proved && !plan.aa => Some(
                "it was not proved that writes acknowledged with the change are durable".to_owned(),
            ),
            _ => None,
        };
        Self {
            margin: plan.margin,
            guards: plan.guards.clone(),
            max_pairs: plan.max_pairs,
            alpha: plan.alpha,
            seed: plan.seed,
            safety_broken,
            unproved,
            aa: plan.aa,
            by_latency: plan.metric.quantity.is_lower_better(),
            looks: Vec::new(),
        }
    }

    /// Whether the trial has no planned end within [`MAX_PAIRS`].
    #[must_use]
    pub fn is_open_ended(&self) -> bool {
        self.max_pairs > MAX_PAIRS
    }

    /// Returns the level; for an invalid level, the default.
    pub(super) fn usable_level(&self) -> f64 {
        if self.alpha > 0.0 && self.alpha < 0.5 {
            self.alpha
        } else {
            ALPHA
        }
    }
}

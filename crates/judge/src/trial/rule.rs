//! What a trial is judged by, settled before its first pair.

use assay_model::advice::{Guard, SafetyRule};
use assay_model::trial::{DurabilityProof, MAX_PAIRS, Side, TrialPlan};

/// Level of a false verdict, in each direction, of a trial on its own.
pub const ALPHA: f64 = 0.05;

/// What a trial is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Smallest ratio that matters: 0.03 for 3 %.
    pub margin: f64,
    /// What must not get worse.
    pub guards: Vec<Guard>,
    /// Pairs at most. Above [`MAX_PAIRS`] the trial is open-ended and judged by the e-process.
    pub max_pairs: u32,
    /// Level of a false "better" and of a false "worse", each.
    pub alpha: f64,
    /// Seed of the sign flips.
    pub seed: u64,
    /// A safety rule that is broken, in words.
    pub safety_broken: Option<String>,
    /// A safety rule whose proof is missing, in words: nothing may be kept without it.
    pub unproved: Option<String>,
    /// Both sides are the same: what is measured is noise, and nothing can be better.
    pub aa: bool,
    /// A latency decides, which does not see all the work: see `total`.
    pub by_latency: bool,
    /// Numbers of pairs at which the judge looks, settled before the first pair; the last one is
    /// `max_pairs`. Empty for the usual looks. With a single look the centre of the pairs is not
    /// biased by when the trial stopped.
    pub looks: Vec<u32>,
}

impl Rule {
    /// The rule that a plan asks for, with what is known of durability.
    #[must_use]
    pub fn of(plan: &TrialPlan, durability: &[DurabilityProof]) -> Self {
        let lost = |side: Side| durability.iter().find(|p| p.side == side && p.lost > 0);
        let safety_broken = lost(Side::Changed).map(|proof| {
            let mut said = format!(
                "{} of {} writes acknowledged as durable were lost with the change ({})",
                proof.lost, proof.acknowledged, proof.method
            );
            if let Some(now) = lost(Side::Now) {
                said.push_str(&format!(
                    "; without it {} of {} were lost as well",
                    now.lost, now.acknowledged
                ));
            }
            said
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
            by_latency: plan.metric.quantity.is_latency(),
            looks: Vec::new(),
        }
    }

    /// Whether the trial has no planned end within [`MAX_PAIRS`].
    #[must_use]
    pub fn open_ended(&self) -> bool {
        self.max_pairs > MAX_PAIRS
    }

    /// Level that arithmetic can stand: what is not a level at all becomes the usual one.
    pub(super) fn level(&self) -> f64 {
        if self.alpha > 0.0 && self.alpha < 0.5 {
            self.alpha
        } else {
            ALPHA
        }
    }
}

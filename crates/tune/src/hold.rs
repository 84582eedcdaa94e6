//! A hold: after their last proof, the accepted changes stay in effect for a while, several times. Every slot of a
//! proof is short and follows a change, so that a gain that wears off within a minute looks like one that lasts.
//! `session/holding.rs` decides for how long.
//!
//! Each pair of a hold ends with slots of B, then measures A in the next slots: neighbours, as in a proof. If the gain
//! lasts, these pairs come from the same distribution as the pairs of the last proof, whatever the noise. A rank-sum
//! test compares the two.

use crate::budget::Row;
use crate::proof::Proof;
use crate::step::{PairOrder, Stage};
use assay_judge::trial::{compute_centre, compute_probability_below};
use assay_model::Nanos;
use assay_model::trial::{PairOutcome, Side};
use serde::{Deserialize, Serialize};

/// Maximum probability that a gain that lasts is taken for a gain that does not.
pub const HOLD_ERROR: f64 = 0.01;
/// Maximum probability that a gain that is gone is reported as a gain that lasts.
const SHOWN: f64 = 0.05;
/// Number of failed pairs after which the load counts as broken by changes that stay in effect.
const FAILURES: usize = 2;

/// A hold, which is running or has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Candidates that are held.
    pub row: Row,
    /// Number of slots with the changes in effect before the measured slots of a pair.
    pub slots: u32,
    /// Number of measured slots of each side of a pair.
    pub alternations: u32,
    /// Number of pairs, fixed before the first pair.
    pub planned: u32,
    /// Outcomes of the measured pairs, in order.
    pub pairs: Vec<PairOutcome>,
    /// How long the changes were in effect before they were measured, in the shortest pair; 0 before the first pair.
    pub lasted: Nanos,
    /// What the hold showed; `None` while it runs.
    pub end: Option<HoldEnd>,
}

/// What a hold showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "end")]
pub enum HoldEnd {
    /// The changes still help at the end of the hold.
    Lasts,
    /// A part of the gain wears off: the gain is smaller than in the proof, but still relevant.
    Fades,
    /// The gain wears off: it is smaller than in the proof, and smaller than the margin.
    WearsOff,
    /// The load fails after the changes were in effect for a while.
    Fails {
        /// Error message of the load.
        error: String,
    },
    /// The pairs are too few or too noisy to decide.
    Open,
}

impl Hold {
    /// Returns the sides and candidates of the next pair.
    pub(crate) fn order(&self) -> PairOrder {
        PairOrder {
            stage: Stage::Hold,
            number: self.pairs.len() as u32 + 1,
            now: Row::new(),
            changed: self.row.clone(),
            first: Side::Changed,
            alternations: self.alternations,
            held: self.slots,
        }
    }

    /// Adds a pair that took `took`.
    pub(crate) fn add(&mut self, outcome: PairOutcome, took: Nanos) {
        let share = f64::from(self.slots) / f64::from(self.slots + 2 * self.alternations);
        let lasted = Nanos((took.0 as f64 * share) as u64);
        if matches!(outcome, PairOutcome::Measured { .. }) {
            self.lasted = match self.lasted {
                Nanos(0) => lasted,
                shortest => shortest.min(lasted),
            };
        }
        self.pairs.push(outcome);
    }

    /// Returns the gain at the end of the hold as a natural logarithm; `None` without a pair that counts.
    #[must_use]
    pub fn gain(&self) -> Option<f64> {
        compute_centre(&self.effects())
    }

    fn effects(&self) -> Vec<f64> {
        let effect = |pair: &PairOutcome| match pair {
            PairOutcome::Measured { effect, .. } => Some(*effect),
            _ => None,
        };
        self.pairs.iter().filter_map(effect).collect()
    }

    /// Judges the pairs against the last proof; `None` while the hold continues. `is_late`: there is no time for
    /// another pair.
    pub(crate) fn examine(&self, whole: &Proof, margin: f64, is_late: bool) -> Option<HoldEnd> {
        let failed = |pair: &PairOutcome| match pair {
            PairOutcome::FailedChanged { error } => Some(error.clone()),
            _ => None,
        };
        if let Some(error) = self.pairs.iter().filter_map(failed).nth(FAILURES - 1) {
            return Some(HoldEnd::Fails { error });
        }
        let over = is_late || self.pairs.len() >= self.planned as usize;
        over.then(|| self.compare(whole, margin))
    }

    fn compare(&self, whole: &Proof, margin: f64) -> HoldEnd {
        let held = self.effects();
        let Some(left) = self.gain() else {
            return HoldEnd::Open;
        };
        let gain = whole.effect();
        // A pair of more alternations has less noise. Neighbouring slots share a part of it, so the other way is not
        // certain.
        let fewer = f64::from(whole.alternations) / f64::from(self.alternations.max(1));
        let scale = fewer.sqrt().max(1.0);
        let noise: Vec<f64> = (whole.effects().iter())
            .map(|effect| scale * (effect - gain))
            .collect();
        let lasting: Vec<f64> = noise.iter().map(|noise| gain + noise).collect();
        if compute_probability_below(&held, &lasting) <= HOLD_ERROR {
            return match left < margin.ln_1p() {
                true => HoldEnd::WearsOff,
                false => HoldEnd::Fades,
            };
        }
        // The same test in the other direction: above what a gain of zero would show.
        let lost: Vec<f64> = noise.iter().map(|noise| -noise).collect();
        let held: Vec<f64> = held.iter().map(|effect| -effect).collect();
        match compute_probability_below(&held, &lost) <= SHOWN {
            true => HoldEnd::Lasts,
            false => HoldEnd::Open,
        }
    }
}

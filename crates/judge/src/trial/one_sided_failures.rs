//! Decides whether failures are caused by the change or by chance.
//!
//! If the change has no effect, a failure on one side only is equally likely on either side, because the order of each
//! pair is randomised. Consider a random walk that rises by one for each failure with the change, and falls by three
//! for each other failure. The probability that it ever reaches 5 is x⁵, where x = (1 + x⁴) / 2, that is 4.75 %. This
//! needs no bound on the number of pairs, and no assumption on how often or in what clusters failures occur.

use assay_model::trial::PairOutcome;

/// Number of failures with the change alone that prove that the change causes them, if there are no other failures.
pub(super) const CONVICT: u32 = 5;
/// Number of additional failures with the change that are required for each other failure.
pub(super) const EACH_OTHER: u32 = 3;
/// Number of consecutive left-out pairs after which a trial gives up.
pub(super) const STUCK: usize = 10;

/// Counts of a trial's failures, and what they prove.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrialFailures {
    /// Failures with the change only, on side B.
    pub changed: u32,
    /// Failures on side A, or on both sides.
    pub other: u32,
    /// Whether the random walk once reached its end, which proves that the change causes the failures.
    pub convicted: bool,
    /// Error of the last failure with the change.
    pub last_error: Option<String>,
}

impl TrialFailures {
    /// Counts the failures of the pairs.
    pub(super) fn count(pairs: &[PairOutcome]) -> Self {
        let mut failures = Self::default();
        for pair in pairs {
            match pair {
                PairOutcome::FailedChanged { error } => {
                    failures.changed += 1;
                    failures.last_error = Some(error.clone());
                }
                PairOutcome::Failed { .. } => failures.other += 1,
                _ => {}
            }
            failures.convicted |= failures.changed >= CONVICT + EACH_OTHER * failures.other;
        }
        failures
    }

    /// Whether more failures occurred with the change than without it. This does not prove that the change causes the
    /// failures, but such a change must not be kept.
    pub(super) fn is_excessive(&self) -> bool {
        self.changed > self.other
    }
}

/// Whether all of the most recent pairs were excluded.
pub(super) fn is_stuck(pairs: &[PairOutcome]) -> bool {
    let measured = |pair: &&PairOutcome| matches!(pair, PairOutcome::Measured { .. });
    pairs.len() >= STUCK && !pairs.iter().rev().take(STUCK).any(|pair| measured(&pair))
}

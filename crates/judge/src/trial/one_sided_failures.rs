//! Decides whether failures are the change's fault or chance.
//!
//! If the change has no effect, a failure on one side only is equally likely on either side,
//! because the order of each pair is randomised. A walk that rises by one for each failure with the
//! change and falls by three for each other failure therefore ever reaches 5 with probability x⁵,
//! where x = (1 + x⁴) / 2, that is 4.75 %. This needs no bound on the number of pairs, and no
//! assumption on how often or in what clusters failures occur.

use assay_model::trial::PairOutcome;

/// Failures with the change alone that prove it to blame, if nothing else fails.
pub(super) const CONVICT: u32 = 5;
/// Additional failures with the change that each other failure requires.
pub(super) const EACH_OTHER: u32 = 3;
/// Consecutive left-out pairs after which a trial gives up.
pub(super) const STUCK: usize = 10;

/// Failures of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrialFailures {
    /// Failures with the change only.
    pub changed: u32,
    /// Failures without the change, or on both sides.
    pub other: u32,
    /// Whether the walk once reached its end: the change is to blame.
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

    /// Whether there were more failures with the change than without: too few to blame it, too many
    /// to keep it.
    pub(super) fn is_excessive(&self) -> bool {
        self.changed > self.other
    }
}

/// Whether the most recent pairs were all left out.
pub(super) fn is_stuck(pairs: &[PairOutcome]) -> bool {
    let measured = |pair: &&PairOutcome| matches!(pair, PairOutcome::Measured { .. });
    pairs.len() >= STUCK && !pairs.iter().rev().take(STUCK).any(|pair| measured(&pair))
}

//! When failures are the change's fault, and not chance.
//!
//! If the change does nothing, a failure on one side only is as likely to hit either: the order of
//! each pair is a coin. So one-sided failures are themselves coin throws, and a walk that goes up
//! by one for each failure with the change and down by three for each other one reaches 5 at any
//! time with probability x⁵, where x = (1 + x⁴) / 2, that is 4.75 %. No bound on the number of
//! pairs is needed, nor an assumption on how often or in what clusters things fail.

use assay_model::trial::PairOutcome;

/// Failures with the change alone that convict it, when nothing else fails.
pub(super) const CONVICT: u32 = 5;
/// How many more for each other failure.
pub(super) const EACH_OTHER: u32 = 3;
/// Pairs left out in a row after which going on is pointless.
pub(super) const STUCK: usize = 10;

/// Failures of a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Failures {
    /// Only with the change.
    pub changed: u32,
    /// Without it, or on both sides.
    pub other: u32,
    /// The walk once reached its end: the change is to blame.
    pub convicted: bool,
    /// What the last failure with the change said.
    pub said: Option<String>,
}

impl Failures {
    /// Counts them.
    pub(super) fn of(pairs: &[PairOutcome]) -> Self {
        let mut failures = Self::default();
        for pair in pairs {
            match pair {
                PairOutcome::FailedChanged { error } => {
                    failures.changed += 1;
                    failures.said = Some(error.clone());
                }
                PairOutcome::Failed { .. } => failures.other += 1,
                _ => {}
            }
            failures.convicted |= failures.changed >= CONVICT + EACH_OTHER * failures.other;
        }
        failures
    }

    /// More failures with the change than without: too few to blame it, too many to keep it.
    pub(super) fn excess(&self) -> bool {
        self.changed > self.other
    }
}

/// Whether the last pairs were all left out.
pub(super) fn stuck(pairs: &[PairOutcome]) -> bool {
    let measured = |pair: &&PairOutcome| matches!(pair, PairOutcome::Measured { .. });
    pairs.len() >= STUCK && !pairs.iter().rev().take(STUCK).any(|pair| measured(&pair))
}

//! Doubts: reasons to distrust a figure of a sample, each with its evidence.

use serde::{Deserialize, Serialize};

/// Consequence of a doubt for the figures of its sample.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The figures of the sample count, but may be misleading.
    Suspect,
    /// The sample did not measure what it should have measured. Estimates and verdicts ignore it.
    Void,
}

crate::named!(Severity, "severity": Suspect = "suspect", Void = "void");

/// A doubt: a reason to distrust a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Doubt {
    /// Stable name of the rule in `kebab-case`. The rule's page in the book has the same name.
    pub code: String,
    /// Whether the sample is ignored, or only suspect.
    pub severity: Severity,
    /// Evidence as figures and options, without interpretation.
    pub evidence: String,
    /// How the user can avoid the doubt in the next measurement.
    pub remedy: String,
}

/// Combined consequence of all doubts of a sample.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Validity {
    /// The sample has no doubts.
    Valid,
    /// The sample counts, but its figures may be misleading.
    Suspect,
    /// The sample does not count.
    Void,
}

impl Validity {
    /// Returns the validity that results from the most severe doubt.
    #[must_use]
    pub fn of(doubts: &[Doubt]) -> Self {
        match doubts.iter().map(|doubt| doubt.severity).max() {
            None => Self::Valid,
            Some(Severity::Suspect) => Self::Suspect,
            Some(Severity::Void) => Self::Void,
        }
    }
}

//! A doubt: a reason why a sample may be misleading, with its evidence.

use serde::{Deserialize, Serialize};

/// Consequence of a doubt for its sample.
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
    /// The figures of the sample count, but the reader should consider the doubt.
    Suspect,
    /// The sample did not measure what it should; estimates and verdicts ignore it.
    Void,
}

crate::named!(Severity, "severity": Suspect = "suspect", Void = "void");

/// A reason not to believe a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Doubt {
    /// Stable name of the rule, `kebab-case`; its page in the book has the same name.
    pub code: String,
    /// Consequence for the sample.
    pub severity: Severity,
    /// Evidence: figures and options, no opinions.
    pub evidence: String,
    /// How the user avoids the doubt in the next measurement.
    pub remedy: String,
}

/// Combined consequence of the doubts of a sample.
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
    /// The sample counts, but a doubt should be considered.
    Suspect,
    /// The sample did not measure what it should.
    Void,
}

impl Validity {
    /// Returns the worst severity among the doubts.
    #[must_use]
    pub fn of(doubts: &[Doubt]) -> Self {
        match doubts.iter().map(|doubt| doubt.severity).max() {
            None => Self::Valid,
            Some(Severity::Suspect) => Self::Suspect,
            Some(Severity::Void) => Self::Void,
        }
    }
}

//! A doubt: a reason why a sample may not mean what it seems to, with its evidence.

use serde::{Deserialize, Serialize};

/// What a doubt does to the sample that carries it.
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
    /// The figure may be read, with the doubt in mind.
    Suspect,
    /// The sample did not measure what it claims; it reaches no estimate and no verdict.
    Void,
}

crate::named!(Severity, "severity": Suspect = "suspect", Void = "void");

/// A reason not to believe a figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Doubt {
    /// Stable name of the rule, `kebab-case`; its page in the book has the same name.
    pub code: String,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen: figures and options, not opinions.
    pub evidence: String,
    /// What to do instead.
    pub remedy: String,
}

/// What the doubts of a sample add up to.
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
    /// Nothing speaks against it.
    Valid,
    /// It may be read with a doubt in mind.
    Suspect,
    /// It did not measure what it claims.
    Void,
}

impl Validity {
    /// The worst severity among the doubts.
    #[must_use]
    pub fn of(doubts: &[Doubt]) -> Self {
        match doubts.iter().map(|doubt| doubt.severity).max() {
            None => Self::Valid,
            Some(Severity::Suspect) => Self::Suspect,
            Some(Severity::Void) => Self::Void,
        }
    }
}

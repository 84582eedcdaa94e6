//! Coverage of a check: which rules of each service were evaluated, and which could not be. `assay-advice` creates it
//! together with the findings. A reader then understands "nothing found" as "nothing found by these rules".

use serde::{Deserialize, Serialize};

/// Outcome of one rule on one machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The service of the rule does not exist on this machine.
    #[default]
    NoService,
    /// The rule was evaluated and has findings.
    Found,
    /// The rule was evaluated and has no findings.
    Fine,
    /// The service exists, but no part of it meets the condition of the rule.
    DoesNotApply,
    /// A source that the rule needs could not be read.
    Unknown,
    /// The rule can only be evaluated by assay on the machine itself, not remotely.
    NotAsked,
}

impl Outcome {
    /// Returns whether the rule was evaluated.
    #[must_use]
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Found | Self::Fine | Self::DoesNotApply)
    }
}

/// A service that was found and read, with the number of its rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Service {
    /// Its name, such as `sshd`.
    pub service: String,
    /// Number of evaluated rules: with findings, without findings, or not applicable.
    pub asked: usize,
    /// Number of rules with findings, including accepted findings.
    pub found: usize,
    /// Number of rules that need an unreadable source.
    pub unknown: usize,
    /// Number of rules that only assay on the machine itself can evaluate, not remotely.
    pub not_asked: usize,
}

/// A running program for which assay has no rule.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct WithoutRules {
    /// Name of the process in `/proc/PID/comm`.
    pub program: String,
    /// Description, such as `DNS server`.
    pub what: String,
}

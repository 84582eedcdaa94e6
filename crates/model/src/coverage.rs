//! Coverage of a check: which rules of each service were evaluated, and which could not be. `assay-advice` computes it
//! together with the findings. It shows users to which rules the result "nothing found" refers.

use serde::{Deserialize, Serialize};

/// Outcome of evaluating one rule on one machine.
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
    /// Only assay on the machine itself can evaluate the rule, so it was not evaluated remotely.
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
    /// Name of the service, such as `sshd`.
    pub service: String,
    /// Number of evaluated rules: those with findings, without findings, and not applicable.
    pub asked: usize,
    /// Number of rules with findings, including accepted findings.
    pub found: usize,
    /// Number of rules that need a source that could not be read.
    pub unknown: usize,
    /// Number of rules that were not evaluated, because only assay on the machine itself can evaluate them.
    pub not_asked: usize,
}

/// A running server program for which assay has no rule.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct WithoutRules {
    /// Name of the process in `/proc/PID/comm`.
    pub program: String,
    /// What the program is, such as `DNS server`.
    pub what: String,
}

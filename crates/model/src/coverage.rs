//! Coverage of a check: the evaluated rules of each service, and the rules that could not be evaluated.
//! `assay-advice` creates it with the findings, so that "nothing found" is understood as "nothing found by these
//! rules".

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
    /// Only assay on the machine itself can evaluate it.
    NotAsked,
}

impl Outcome {
    /// Whether the rule was evaluated.
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
    /// Evaluated rules: with findings, without findings, or not applicable.
    pub asked: usize,
    /// Rules with findings, including accepted ones.
    pub found: usize,
    /// Rules that need an unreadable source.
    pub unknown: usize,
    /// Rules that only assay on the machine itself can evaluate.
    pub not_asked: usize,
}

/// A running program without any rule.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct WithoutRules {
    /// Name of the process in `/proc/PID/comm`.
    pub program: String,
    /// Description, such as `DNS server`.
    pub what: String,
}

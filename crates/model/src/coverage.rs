//! What a check asked: per service, per rule, and what it could not ask. Made by `assay-advice` beside the
//! findings, so that "nothing found" is read as "nothing found in these questions".

use serde::{Deserialize, Serialize};

/// What became of one rule on one machine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The service of the rule was not found on this machine.
    #[default]
    NoService,
    /// The rule was asked, and has findings.
    Found,
    /// The rule was asked, and has no findings.
    Fine,
    /// The service is here, but nothing of it meets the condition of the rule.
    DoesNotApply,
    /// Something that the rule needs could not be read.
    Unknown,
    /// Only assay on the machine itself can ask it.
    NotAsked,
}

impl Outcome {
    /// Whether the rule got an answer.
    #[must_use]
    pub fn is_answered(self) -> bool {
        matches!(self, Self::Found | Self::Fine | Self::DoesNotApply)
    }
}

/// A service that was found and read, and how many rules were asked about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Service {
    /// Its name, such as `sshd`.
    pub service: String,
    /// Rules with an answer: found, fine, or not applicable.
    pub asked: usize,
    /// Rules with findings; those that somebody accepted count too.
    pub found: usize,
    /// Rules that need something that could not be read.
    pub unknown: usize,
    /// Rules that only assay on the machine itself asks.
    pub not_asked: usize,
}

/// A program that runs here, and of which no rule speaks.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct WithoutRules {
    /// Name of the process, as `/proc/PID/comm` has it.
    pub program: String,
    /// What it is, such as `DNS server`.
    pub what: String,
}

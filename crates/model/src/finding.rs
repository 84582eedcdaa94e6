//! Findings: differences between a machine and the advice. `assay-advice` creates them from facts and the `[check]`
//! tables of pages; findings are not stored.

use crate::coverage::{Outcome, Service, WithoutRules};
use crate::fact::FactKind;
use crate::fact_source::FactPlace;
use crate::fact_subject::{Pattern, Subject};
use crate::trial::{TrialId, Verdict};
use serde::{Deserialize, Serialize};

mod configured_program;
mod setting_edit;

pub use configured_program::Configured;
pub use setting_edit::{Edit, ModeBits, Words};

/// Severity of a finding.
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
    /// Information that requires no action.
    Info,
    /// Untidy or without effect.
    Low,
    /// It has a cost now or later.
    Medium,
    /// Data, access or the service is at risk under realistic conditions.
    High,
    /// Data, access or the service is exposed or being lost now.
    Critical,
}

impl Severity {
    /// All severities, the worst first.
    pub const ALL: [Self; 5] = [
        Self::Critical,
        Self::High,
        Self::Medium,
        Self::Low,
        Self::Info,
    ];

    /// Returns the name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

/// Rule of a page: the `[check]` table of its front matter. Conditions are CEL over `facts`, `this`
/// (properties of the subject), `kinds` (`default`, `configured` or `runtime` for each of these)
/// and `parent` (properties of the enclosing subject).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Subjects that are evaluated; without any, the machine as a whole.
    #[serde(default)]
    pub about: Vec<Pattern>,
    /// Condition under which the rule applies; always if absent.
    #[serde(default)]
    pub applies: Option<String>,
    /// Condition that is true if the machine violates the rule.
    pub violated: String,
    /// Severity of a violation.
    pub severity: Severity,
    /// Message. `{property}` is replaced by a value of the subject, `{name}` by its name,
    /// `{parent.property}` by a value of the enclosing subject, `{facts.KEY}` by any fact.
    pub say: Say,
    /// Reason why nothing can be done on this machine. Then there is no remedy.
    #[serde(default)]
    pub not_actionable: Option<String>,
    /// The remedy.
    #[serde(default)]
    pub remedy: Option<Remedy>,
    /// Versions that change the answer, for people: `OpenSSH 6.8: no is the default`.
    #[serde(default)]
    pub flips: Vec<String>,
    /// Keys of facts that are unknown if a configuration was not read completely, such as `nginx`.
    /// The rule looks for a missing setting, so it cannot be evaluated while one of them is
    /// unknown.
    #[serde(default)]
    pub needs_whole: Vec<String>,
}

/// Texts of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Title on one line.
    pub title: String,
    /// Explanation in a few sentences.
    pub text: String,
    /// Fact whose line is marked, if the condition does not determine it: a property of the
    /// subject, `parent.PROPERTY` or `facts.KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Remedy of a finding, and how to revert it. Each step is a command or an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Steps in order.
    pub steps: Vec<String>,
    /// Steps that revert the remedy.
    pub undo: Vec<String>,
    /// The remedy as changes of configuration files that assay can apply (`assay check --fix`);
    /// `None` if it must be applied by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// Certainty of a finding.
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
pub enum Certainty {
    /// The machine violates the rule.
    Violated,
    /// Unknown, which is not the same as no violation.
    Unknown,
}

/// A fact that supports a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seen {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Default, configured or run-time.
    pub kind: FactKind,
    /// Source of the fact.
    pub place: FactPlace,
}

/// Remedy of a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fix {
    /// These steps.
    Steps(Remedy),
    /// Nothing can be done on this machine: the reason.
    NotHere(String),
    /// Nothing needs to be done until the fact is known.
    AfterReading,
}

/// A violation of a page by a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// Id of the page.
    pub rule: String,
    /// Its domain, such as `ssh`.
    pub domain: String,
    /// Subject.
    pub subject: Subject,
    /// Severity; for an unknown finding the severity of a violation.
    pub severity: Severity,
    /// Certainty.
    pub certainty: Certainty,
    /// Title on one line.
    pub title: String,
    /// Explanation; for an unknown finding the source that could not be read.
    pub text: String,
    /// Places in the machine's configuration, the deciding place first.
    pub places: Vec<FactPlace>,
    /// Supporting facts.
    pub evidence: Vec<Seen>,
    /// Remedy.
    pub fix: Fix,
    /// Advice that `assay trial` can test here; `None` if a measurement cannot decide it.
    pub trial: Option<String>,
    /// Result of the newest trial of the advice on this machine; `None` without a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Tried>,
}

/// Result of a trial of a piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// The verdict.
    pub verdict: Verdict,
    /// Number of the trial in the store: `assay trial --show` prints the trial.
    pub trial: TrialId,
    /// Day on which it began, `2026-11-23`.
    pub day: String,
    /// Target as the user named it.
    pub target: String,
}

impl Finding {
    /// Returns the identity of the finding across checks. The line is not part of it, because lines
    /// move.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self.subject.is_machine() {
            true => self.rule.clone(),
            false => format!("{}@{}", self.rule, self.subject),
        }
    }
}

/// An accepted finding, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Accepted {
    /// The finding.
    pub finding: Finding,
    /// Reason of the acceptance.
    pub reason: String,
    /// Person who accepted it.
    pub owner: Option<String>,
    /// Last day of the acceptance, `2027-01-31`; `None` for unlimited.
    pub expires: Option<String>,
}

/// Result of a check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    /// Findings that count, the most urgent first.
    pub findings: Vec<Finding>,
    /// Accepted findings.
    pub accepted: Vec<Accepted>,
    /// Faults in the file of accepted findings: entries that are malformed, expired, or match no
    /// finding. They have no effect.
    pub remarks: Vec<String>,
    /// Evaluated rules, each with the number of its subjects.
    pub rules: Vec<Looked>,
    /// Rules that could not be evaluated remotely. A missing finding of these rules does not mean
    /// that all is well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_asked: Vec<NotAsked>,
    /// Services that were found and read, with the number of their rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Running programs without any rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_rules: Vec<WithoutRules>,
    /// Whether no service with rules was found; then the absence of findings means nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_read: bool,
}

/// A rule that was not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotAsked {
    /// Its id.
    pub rule: String,
    /// The reason.
    pub why: String,
}

/// An evaluated rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Looked {
    /// Its id.
    pub rule: String,
    /// Its domain.
    pub domain: String,
    /// The page's statement.
    pub statement: String,
    /// Severity of its findings.
    pub severity: Severity,
    /// Number of subjects to which it applied.
    pub applied: usize,
    /// Service of the rule, such as `sshd`.
    #[serde(default)]
    pub service: String,
    /// References of its page.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Outcome on this machine.
    #[serde(default)]
    pub outcome: Outcome,
    /// Reason why the rule has no answer, or the condition that no subject meets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Checked {
    /// Returns the worst severity among violations; `None` without violations.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        let violated = self.findings.iter();
        violated
            .filter(|finding| finding.certainty == Certainty::Violated)
            .map(|finding| finding.severity)
            .max()
    }

    /// Whether the answer of some or all rules is unknown.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        let mut all = self.findings.iter();
        let none_asked = !self.not_asked.is_empty() && self.not_asked.len() == self.rules.len();
        self.nothing_read
            || none_asked
            || all.any(|finding| finding.certainty == Certainty::Unknown)
    }

    /// Returns the number of violations of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let violated = self.findings.iter();
        violated
            .filter(|finding| finding.certainty == Certainty::Violated)
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

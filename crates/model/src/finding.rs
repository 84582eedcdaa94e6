//! Findings: faults of a machine, each with the advice that it violates. `assay-advice` computes them from facts and
//! from the `[check]` tables of pages. Findings are not stored.

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

/// How serious a finding is.
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
    /// Untidy, or a setting without effect.
    Low,
    /// The fault costs performance, space or work, now or later.
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

    /// Returns the name in lower case, such as `high`.
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

/// Rule of `assay check`: the `[check]` table in the front matter of a page. Conditions are CEL expressions. They can
/// use `facts`, `this` (the properties of the subject), `kinds` (`default`, `configured` or `runtime` for each
/// property) and `parent` (the properties of the enclosing subject).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Kinds of subjects for which the rule is evaluated. If empty, the rule is evaluated once for the machine.
    #[serde(default)]
    pub about: Vec<Pattern>,
    /// Condition under which the rule applies. If absent, the rule always applies.
    #[serde(default)]
    pub applies: Option<String>,
    /// Condition that is true for a violation of the rule.
    pub violated: String,
    /// Severity of the findings of this rule.
    pub severity: Severity,
    /// Texts of the finding. `{property}` is replaced by a value of the subject, `{name}` by the subject's name,
    /// `{parent.property}` by a value of the enclosing subject, and `{facts.KEY}` by the fact with this key.
    pub say: Say,
    /// Reason why nothing can be done on this machine. If present, there is no remedy.
    #[serde(default)]
    pub not_actionable: Option<String>,
    /// How the user can fix the finding.
    #[serde(default)]
    pub remedy: Option<Remedy>,
    /// Versions from which on the answer is different, as text for users: `OpenSSH 6.8: no is the default`.
    #[serde(default)]
    pub flips: Vec<String>,
    /// Keys such as `nginx` of facts that are unknown if a configuration was not read completely. Rules that look for a
    /// missing setting list these keys, because they cannot be evaluated while such a fact is unknown.
    #[serde(default)]
    pub needs_whole: Vec<String>,
}

/// Texts of a finding, before placeholders are replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// Title of the finding on one line.
    pub title: String,
    /// Explanation in a few sentences.
    pub text: String,
    /// Fact whose line the output marks, if it is not the fact in the condition: a property of the subject,
    /// `parent.PROPERTY` or `facts.KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// Remedy of a finding, and how to revert it. Each step is a command or an instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Steps that fix the finding, in order.
    pub steps: Vec<String>,
    /// Steps that revert the remedy.
    pub undo: Vec<String>,
    /// The remedy as changes of configuration files, which assay can apply (`assay check --fix`). Empty if the user
    /// must apply the remedy by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// Whether a violation is certain.
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
    /// It is unknown whether the machine violates the rule, because a source could not be read.
    Unknown,
}

/// A fact that is evidence for a finding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seen {
    /// Key of the fact, such as `sshd.scope.everywhere.usedns`.
    pub key: String,
    /// Value of the fact on this machine.
    pub value: serde_json::Value,
    /// Whether the value is a default, a configured value, or the current value of the running system.
    pub kind: FactKind,
    /// Where the value was read.
    pub place: FactPlace,
}

/// What can be done about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fix {
    /// These steps fix the finding. The user or assay can apply them.
    Steps(Remedy),
    /// Nothing can be done on this machine; the text is the reason.
    NotHere(String),
    /// The unknown fact must become readable before there is anything to fix.
    AfterReading,
}

/// A violation of a page of the catalogue. If a fact is unknown, it is only a possible violation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// Id of the violated page.
    pub rule: String,
    /// Domain of the violated page, such as `ssh`.
    pub domain: String,
    /// Object of the machine that violates the rule.
    pub subject: Subject,
    /// Severity of the violation. If the violation is not certain, the severity that it would have.
    pub severity: Severity,
    /// Whether the violation is certain, or a fact is unknown.
    pub certainty: Certainty,
    /// Title of the finding on one line.
    pub title: String,
    /// Explanation. If the violation is not certain, the text describes the source that could not be read.
    pub text: String,
    /// Lines or files of the configuration that cause the finding, the most relevant first.
    pub places: Vec<FactPlace>,
    /// Facts that prove the violation.
    pub evidence: Vec<Seen>,
    /// What can be done about the finding.
    pub fix: Fix,
    /// Id of the advice that `assay trial` can test on this machine; `None` if a measurement cannot decide whether the
    /// advice is right.
    pub trial: Option<String>,
    /// Result of the newest trial of this advice on this machine; `None` if there was no trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Tried>,
}

/// Result of a trial of a piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// Verdict of the trial.
    pub verdict: Verdict,
    /// Number of the trial in the store: `assay trial --show` prints the trial.
    pub trial: TrialId,
    /// Day on which the trial began, such as `2026-11-23`.
    pub day: String,
    /// Target as the user named it.
    pub target: String,
}

impl Finding {
    /// Returns a key that identifies the finding in different checks. The key does not contain the line number, because
    /// lines may move.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self.subject.is_machine() {
            true => self.rule.clone(),
            false => format!("{}@{}", self.rule, self.subject),
        }
    }
}

/// A finding that the user accepts, with the reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Accepted {
    /// The finding that the user accepts.
    pub finding: Finding,
    /// Reason why the finding is accepted.
    pub reason: String,
    /// Person who accepted the finding.
    pub owner: Option<String>,
    /// Last day on which the acceptance is valid, such as `2027-01-31`; `None` for unlimited.
    pub expires: Option<String>,
}

/// Result of a check of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    /// Findings that are not accepted, the most urgent first.
    pub findings: Vec<Finding>,
    /// Findings that the user accepts, with the reasons.
    pub accepted: Vec<Accepted>,
    /// Faults in the file of accepted findings: entries that are malformed or expired, or that match no finding. These
    /// entries have no effect.
    pub remarks: Vec<String>,
    /// Evaluated rules, each with the number of subjects (such as disks or services) to which it applied.
    pub rules: Vec<Looked>,
    /// Rules that could not be evaluated remotely. The check does not show whether the machine violates these rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_asked: Vec<NotAsked>,
    /// Services that were found and read, with the number of their rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Running programs without any rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_rules: Vec<WithoutRules>,
    /// Whether no service was found for which there are rules. In this case, a check without findings means nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_read: bool,
}

/// A rule that was not evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotAsked {
    /// Id of the rule that was not evaluated.
    pub rule: String,
    /// Reason why the rule was not evaluated.
    pub why: String,
}

/// A rule that was evaluated, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Looked {
    /// Id of the rule.
    pub rule: String,
    /// Domain of the rule.
    pub domain: String,
    /// Statement of the page, as one sentence.
    pub statement: String,
    /// Severity of the rule's findings.
    pub severity: Severity,
    /// Number of subjects to which the rule applied.
    pub applied: usize,
    /// Service of the rule, such as `sshd`.
    #[serde(default)]
    pub service: String,
    /// References of the rule's page.
    #[serde(default)]
    pub sources: Vec<String>,
    /// Outcome of the rule on this machine.
    #[serde(default)]
    pub outcome: Outcome,
    /// Reason why the outcome is unknown, or the condition that no subject meets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Checked {
    /// Returns the highest severity among violations; `None` without violations.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        let violated = self.findings.iter();
        violated
            .filter(|finding| finding.certainty == Certainty::Violated)
            .map(|finding| finding.severity)
            .max()
    }

    /// Returns whether it is unknown for at least one rule if the machine violates it.
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

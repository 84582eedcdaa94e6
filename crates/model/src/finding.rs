//! Findings: where a machine and a piece of advice do not agree. Made by `assay-advice` from facts and
//! the `[check]` tables of pages; nothing here is stored.

use crate::change::ConfigLanguage;
use crate::coverage::{Outcome, Service, WithoutRules};
use crate::fact::FactKind;
use crate::fact_source::FactPlace;
use crate::fact_subject::{Pattern, Subject};
use crate::trial::{TrialId, Verdict};
use serde::{Deserialize, Serialize};

/// How bad it is.
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
    /// Worth knowing; nothing needs to be done.
    Info,
    /// Untidy, or without effect.
    Low,
    /// It costs something, or will.
    Medium,
    /// Data, access or the service is at risk under conditions that do occur.
    High,
    /// Data, access or the service is open or being lost now.
    Critical,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 5] = [
        Self::Critical,
        Self::High,
        Self::Medium,
        Self::Low,
        Self::Info,
    ];

    /// Its name in lower case.
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

/// How a page is held against a machine: the `[check]` table of its front matter. Conditions are CEL
/// over `facts`, `this` (what is known of the subject), `kinds` (`default`, `configured` or `runtime` for
/// each of these) and `parent` (what is known of what it is a part of).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Which subjects are looked at; without any the machine as a whole.
    #[serde(default)]
    pub about: Vec<Pattern>,
    /// Where the page has something to say; everywhere without it.
    #[serde(default)]
    pub applies: Option<String>,
    /// When the machine does not follow it.
    pub violated: String,
    /// How bad that is.
    pub severity: Severity,
    /// What to say. `{property}` stands for a value of the subject, `{name}` for its name,
    /// `{parent.property}` for one of what it is a part of, `{facts.KEY}` for any fact.
    pub say: Say,
    /// Why nothing can be done on this machine. Then there is no remedy.
    #[serde(default)]
    pub not_actionable: Option<String>,
    /// What to do.
    #[serde(default)]
    pub remedy: Option<Remedy>,
    /// Versions at which the answer changes, for people: `OpenSSH 6.8: no is the default`.
    #[serde(default)]
    pub flips: Vec<String>,
    /// Facts under which it is noted that a configuration could not be read as a whole, such as
    /// `nginx`. While one is there nothing can be said: the rule looks for what is missing.
    #[serde(default)]
    pub needs_whole: Vec<String>,
}

/// What a finding says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Say {
    /// One line.
    pub title: String,
    /// Why it matters, in a few sentences.
    pub text: String,
    /// The fact whose line is marked, where the condition does not tell which one is at fault: a property of
    /// the subject, `parent.PROPERTY` or `facts.KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
}

/// How a finding is put right, and how that is taken back. Each step is a command or one thing to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// What to do, in order.
    pub steps: Vec<String>,
    /// How to take it back.
    pub undo: Vec<String>,
    /// The same as changes of configuration files that assay can make itself (`assay check --fix`); none
    /// where it has to be done by hand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edits: Vec<Edit>,
}

/// A change of one setting, where the fact that a finding rests on was read: set to a value, or some words
/// of it dropped; with neither, its line is taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The fact whose line says which file and which block: a property of the subject, or a key of the
    /// machine where the check is about no subject.
    pub fact: String,
    /// Whose configuration it is.
    pub program: Configured,
    /// The directive as that configuration writes it. `{property}` stands for a value of the subject.
    pub key: String,
    /// Only where the fact is this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<serde_json::Value>,
    /// What it is set to; the line is made where the block has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Words of its value that are dropped. When no word is left, the line is taken away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<Words>,
}

/// Words of a list in a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// What stands between them.
    pub between: char,
    /// Every word that contains one of these is dropped, but for words that exclude something: those
    /// that begin with `!` or `-`.
    pub with: Vec<String>,
}

/// Programs whose configuration `assay check --fix` changes. How each is asked whether it takes its
/// configuration, and told to read it, is the business of `assay-changes`.
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
#[serde(rename_all = "kebab-case")]
pub enum Configured {
    /// OpenSSH's server.
    Sshd,
    /// OpenSSH's client, for the whole machine.
    Ssh,
    /// nginx.
    Nginx,
    /// Postfix.
    Postfix,
    /// Dovecot.
    Dovecot,
    /// Samba.
    Samba,
}

impl Configured {
    /// The language of its files.
    #[must_use]
    pub fn language(self) -> ConfigLanguage {
        match self {
            Self::Sshd | Self::Ssh => ConfigLanguage::Ssh,
            Self::Nginx => ConfigLanguage::Nginx,
            Self::Postfix => ConfigLanguage::Postfix,
            Self::Dovecot => ConfigLanguage::Dovecot,
            Self::Samba => ConfigLanguage::Ini,
        }
    }
}

/// Whether it is so.
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
    /// The machine does not follow the advice.
    Violated,
    /// It could not be found out. That is not the same as fine.
    Unknown,
}

/// A fact that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Seen {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: serde_json::Value,
    /// Default, configured or run-time.
    pub kind: FactKind,
    /// Where it was read.
    pub place: FactPlace,
}

/// What can be done about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Fix {
    /// This.
    Steps(Remedy),
    /// Nothing on this machine: why.
    NotHere(String),
    /// Nothing has to be done before it is known.
    AfterReading,
}

/// One disagreement between a machine and a page of the catalogue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Finding {
    /// Id of the page.
    pub rule: String,
    /// Its domain, such as `ssh`.
    pub domain: String,
    /// What it is about.
    pub subject: Subject,
    /// How bad it is, or would be.
    pub severity: Severity,
    /// Whether it is so.
    pub certainty: Certainty,
    /// One line.
    pub title: String,
    /// Why it matters; where it is unknown, what could not be read.
    pub text: String,
    /// Where the machine says so, the deciding place first.
    pub places: Vec<FactPlace>,
    /// The facts it rests on.
    pub evidence: Vec<Seen>,
    /// What can be done.
    pub fix: Fix,
    /// The advice that `assay trial` can test here; none when it is no matter of measuring.
    pub trial: Option<String>,
    /// What the newest trial of it on this machine said; none while there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Tried>,
}

/// What a trial of a piece of advice said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// The verdict.
    pub verdict: Verdict,
    /// Number of the trial in the store: `assay trial --show` tells all of it.
    pub trial: TrialId,
    /// The day on which it began, `2026-11-23`.
    pub day: String,
    /// What it was pointed at, as the user named it.
    pub target: String,
}

impl Finding {
    /// What names this finding from one check to the next: not the line, which moves.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        match self.subject.is_machine() {
            true => self.rule.clone(),
            false => format!("{}@{}", self.rule, self.subject),
        }
    }
}

/// A finding that somebody accepted, and on what grounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Accepted {
    /// The finding.
    pub finding: Finding,
    /// Why it is accepted.
    pub reason: String,
    /// Who said so.
    pub owner: Option<String>,
    /// The last day on which it holds, `2027-01-31`; none for ever.
    pub expires: Option<String>,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checked {
    /// What counts, the most urgent first.
    pub findings: Vec<Finding>,
    /// What somebody accepted.
    pub accepted: Vec<Accepted>,
    /// What is wrong with the file of what is accepted: entries that are malformed, expired, or match
    /// nothing any more. They accept nothing.
    pub remarks: Vec<String>,
    /// Rules that were held against the machine, each with the number of subjects it looked at.
    pub rules: Vec<Looked>,
    /// Rules among those that could not be asked, because the machine was looked at from elsewhere. Silence about
    /// them is not fine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_asked: Vec<NotAsked>,
    /// Services that were found and read, each with the number of its rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Programs that run here, and of which no rule speaks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_rules: Vec<WithoutRules>,
    /// Whether no service was found that any rule speaks of: then silence means nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nothing_read: bool,
}

/// A rule that was not asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct NotAsked {
    /// Its id.
    pub rule: String,
    /// Why not.
    pub why: String,
}

/// A rule that was held against the machine.
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
    /// To how many subjects it applied.
    pub applied: usize,
    /// The service that it is about, such as `sshd`.
    #[serde(default)]
    pub service: String,
    /// Where the advice comes from: the references of its page.
    #[serde(default)]
    pub sources: Vec<String>,
    /// What became of it on this machine.
    #[serde(default)]
    pub outcome: Outcome,
    /// Why it has no answer, or the condition that nothing here meets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Checked {
    /// The worst severity among what is violated; none when nothing is.
    #[must_use]
    pub fn worst(&self) -> Option<Severity> {
        let violated = self.findings.iter();
        violated
            .filter(|finding| finding.certainty == Certainty::Violated)
            .map(|finding| finding.severity)
            .max()
    }

    /// Whether something could not be found out: what a rule asks, or all of the rules.
    #[must_use]
    pub fn has_unknown(&self) -> bool {
        let mut all = self.findings.iter();
        let none_asked = !self.not_asked.is_empty() && self.not_asked.len() == self.rules.len();
        self.nothing_read
            || none_asked
            || all.any(|finding| finding.certainty == Certainty::Unknown)
    }

    /// How many findings of a severity are violated.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        let violated = self.findings.iter();
        violated
            .filter(|finding| finding.certainty == Certainty::Violated)
            .filter(|finding| finding.severity == severity)
            .count()
    }
}

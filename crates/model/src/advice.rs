//! Advice: an entry of the catalogue. `assay-advice` parses it from a Markdown page with TOML front matter.

mod acts;
mod acts_text;

pub use acts::{
    AccessOrder, ActsOn, Between, CachePath, ExpectedGain, LoadName, MachinePart, MovedOperation,
    MovedOperations, ToggleCost,
};

use crate::change::Change;
use crate::criterion::{Metric, Quantity};
use crate::finding::Check;
use crate::load::Load;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A piece of advice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// Name of the page's file, such as `qcow2-cluster-size`: letters, digits and `-`.
    pub id: String,
    /// Folder of the page: `images`, `filesystems`, `ssh`, `web`, `mail`, `zfs`, ….
    pub domain: String,
    /// Title of a few words.
    pub title: String,
    /// The advice as one plain sentence.
    pub statement: String,
    /// Author of the claim, and what the author measured.
    pub source: Source,
    /// Conditions under which the advice applies; all must hold.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// Effect on the metric that is expected if the advice is right, as a sentence.
    pub predicts: String,
    /// Possible damage.
    pub risk: Risk,
    /// What the literature says about the advice today.
    pub literature: Literature,
    /// Parameters that the user may set with `--set NAME=VALUE`.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Test of the advice, still with placeholders; `assay-advice` converts it to a [`TrialSpec`]. Absent if the advice
    /// cannot be tested, only explained.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub trial: Option<toml::Table>,
    /// What the change of the trial acts on. `assay tune` selects and orders candidates by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acts: Option<ActsOn>,
    /// Properties of a machine that may influence the gain. Trials of many machines are grouped by these properties
    /// only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moderators: Vec<Moderator>,
    /// Rule of `assay check` for the advice. Absent if the check has nothing to inspect.
    #[serde(default)]
    pub check: Option<Check>,
    /// Synonyms by which `assay advice --search` finds the page. They are neither stored nor
    /// published.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    pub synonyms: Vec<String>,
    /// The Markdown page below the front matter.
    #[serde(default)]
    pub page: String,
}

/// A condition, and a message for the case that the condition does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// CEL expression over facts and parameters.
    pub cel: String,
    /// Reason why the advice does not apply if the condition is false, as text for users.
    pub otherwise: String,
}

/// A property of a machine that may influence the gain of a change. These properties can be published, because each has
/// few values and none is a name.
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
pub enum Moderator {
    /// File system of the target, if it is a common one.
    FileSystem,
    /// Whether a disk under the target rotates.
    RotatingDisk,
    /// Memory, rounded up to a power of two of GiB.
    Memory,
    /// Whether the machine is a virtual machine.
    VirtualMachine,
}

impl Moderator {
    /// Returns the property as words for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::FileSystem => "file system",
            Self::RotatingDisk => "rotating disk",
            Self::Memory => "memory",
            Self::VirtualMachine => "virtual machine",
        }
    }
}

/// Source of a piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title or author of the collection, with the year.
    pub who: String,
    /// Claim of the source, in our words.
    pub claimed: String,
    /// The author's own figure, if there is one.
    #[serde(default)]
    pub figure: Option<String>,
}

/// Severity of the possible damage.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RiskLevel {
    /// Changes only objects that assay creates.
    None,
    /// A setting is changed; it is reverted at once.
    Low,
    /// A service may stop working until the change is reverted.
    Service,
    /// The user may lose access to the machine.
    Lockout,
    /// Acknowledged data may be lost.
    DataLoss,
}

/// A risk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Severity.
    pub level: RiskLevel,
    /// Description.
    pub text: String,
}

/// Verdict of the literature on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// True as stated.
    Confirmed,
    /// True only under specified conditions.
    Conditional,
    /// Was true or necessary, but not on current versions.
    Obsolete,
    /// Was already false when it was written, or its reasoning is invalid.
    Wrong,
    /// Following it costs data, security or space.
    Dangerous,
}

/// What the literature says about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Literature {
    /// Verdict.
    pub standing: Standing,
    /// Explanation, with the versions at which the answer changes.
    pub text: String,
    /// Primary sources: file and version, man page, URL.
    pub references: Vec<String>,
}

/// A value that the user may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Meaning of the value.
    pub about: String,
    /// Default value; without it the user must set the parameter.
    #[serde(default)]
    pub default: Option<String>,
    /// Type of the value.
    #[serde(default)]
    pub kind: ParameterKind,
    /// Permitted values, if there are few.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// Type of a parameter. If a string of the trial consists only of a placeholder, the value replaces the string with
/// this type.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// Any text.
    #[default]
    Text,
    /// An integer or decimal number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Words separated by spaces and quoted as in a shell: a command and its arguments. If an item of a list consists
    /// only of the placeholder, each word becomes an item of the list.
    Words,
}

/// Kind of target of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory in which assay may create scratch files.
    Directory,
    /// A mounted file system, named by any directory on it.
    Mount,
    /// A block device that is read but not written.
    Device,
    /// A ZFS dataset.
    Dataset,
    /// An address: URL or `HOST:PORT`.
    Address,
}

/// A guardrail: a figure that must not get worse by more than its margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The figure.
    pub metric: Metric,
    /// Permitted worsening as a fraction: 0.10 for 10 %.
    pub margin: f64,
}

impl Guard {
    /// Default margin of a tail latency, as a fraction. It is larger than other margins because the latency of the
    /// slowest 1 % varies by more than 10 % between slots on most machines.
    pub const TAIL_MARGIN: f64 = 0.25;

    /// Returns whether a metric is a tail latency.
    #[must_use]
    pub fn is_tail(metric: Metric) -> bool {
        matches!(
            metric.quantity,
            Quantity::P99 | Quantity::P999 | Quantity::P9999 | Quantity::Max
        )
    }

    /// Returns the default guardrail, the p99 of the deciding metric's operations. `None` if the deciding metric or a
    /// guardrail is already a tail latency.
    #[must_use]
    pub fn default_tail(decides: Metric, guards: &[Self]) -> Option<Self> {
        let looked_at = guards.iter().map(|guard| guard.metric).chain([decides]);
        let none = !looked_at.into_iter().any(Self::is_tail);
        none.then_some(Self {
            metric: Metric {
                direction: decides.direction,
                quantity: Quantity::P99,
            },
            margin: Self::TAIL_MARGIN,
        })
    }
}

/// A safety rule: a change that violates it is rejected, whatever its gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SafetyRule {
    /// Acknowledged writes must be durable; a flush test verifies it.
    AcknowledgedWrites,
}

/// Test of a piece of advice. The catalogue's text may contain placeholders: `{name}` for a parameter, `{target}`, and
/// `{mountpoint}`, `{source}`, `{device}` and `{disk}` for the storage layers below the target. In this type the
/// placeholders are replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Kind of target.
    pub target: TargetKind,
    /// Default target; `None` if the user must name one.
    #[serde(default)]
    pub default_target: Option<String>,
    /// The change.
    pub change: Change,
    /// The load.
    pub load: Load,
    /// The deciding metric.
    pub metric: Metric,
    /// Guardrails. If none is a tail latency, p99 is added.
    #[serde(default)]
    pub guards: Vec<Guard>,
    /// Reason why no guardrail is a tail latency; if it is given, p99 is not added.
    #[serde(default)]
    pub no_tail_guard: Option<String>,
    /// Smallest relative difference that matters in practice: 0.03 for 3 %.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// Measured time of a slot in seconds.
    #[serde(default = "slot_seconds")]
    pub slot_seconds: f64,
    /// Minimum time of a slot in seconds; absent if slots must not be shorter than `slot_seconds`. The noise then
    /// determines the length. Only for changes without effects that carry over to the next slot, such as writeback of a
    /// cache.
    #[serde(default)]
    pub slot_seconds_min: Option<f64>,
    /// Seconds of load after the change and before measuring.
    #[serde(default = "washout_seconds")]
    pub washout_seconds: f64,
    /// Whether the cache is part of the test. If so, reads from the cache count.
    #[serde(default)]
    pub cached: bool,
    /// A safety rule that the change must not violate, whatever its gain.
    #[serde(default)]
    pub safety: Option<SafetyRule>,
    /// Change by which the user's machine gets the tested state, if the trial works on copies. If absent, the user must
    /// apply the change by hand.
    #[serde(default)]
    pub keep: Option<Change>,
}

fn default_margin() -> f64 {
    0.03
}
fn slot_seconds() -> f64 {
    5.0
}
fn washout_seconds() -> f64 {
    1.0
}

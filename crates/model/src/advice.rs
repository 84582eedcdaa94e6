//! Advice: one entry of the catalogue. `assay-advice` parses it from a Markdown page with TOML front matter.

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

/// A page of advice about one setting or practice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Advice {
    /// File name of the page without its ending, such as `qcow2-cluster-size`: letters, digits and `-`.
    pub id: String,
    /// Folder of the page, such as `images`, `filesystems`, `ssh`, `web`, `mail` or `zfs`.
    pub domain: String,
    /// Title of a few words, for lists.
    pub title: String,
    /// The advice as one plain sentence.
    pub statement: String,
    /// Who made the claim, and which measurement supports it.
    pub source: Source,
    /// Conditions that a machine must meet for the advice to apply. All of them must be true.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// Expected effect on the metric if the advice is right, as a sentence.
    pub predicts: String,
    /// Possible damage by the change, and its severity.
    pub risk: Risk,
    /// What primary sources say about the advice today.
    pub literature: Literature,
    /// Parameters that the user may set with `--set NAME=VALUE`.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// Test of the advice, with placeholders; `assay-advice` converts it to a [`TrialSpec`]. Absent if the advice can
    /// only be explained, not tested.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub trial: Option<toml::Table>,
    /// Parts of the machine and limits that the change affects. `assay tune` uses them to select and order candidates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acts: Option<ActsOn>,
    /// Properties of a machine that may influence the gain. Results of trials on many machines are grouped only by
    /// these properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moderators: Vec<Moderator>,
    /// Rule of `assay check` for the advice. Absent if a check cannot find out whether a machine follows the advice.
    #[serde(default)]
    pub check: Option<Check>,
    /// Synonyms by which `assay advice --search` finds the page. Stored and published copies of the page do not contain
    /// them.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    pub synonyms: Vec<String>,
    /// Markdown text of the page below the front matter.
    #[serde(default)]
    pub page: String,
}

/// A condition, and a message for users if the condition is not met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// CEL expression over facts and parameters.
    pub cel: String,
    /// Text for users: the reason why the advice does not apply if the condition is false.
    pub otherwise: String,
}

/// A property of a machine that may influence the gain of a change. These properties can be published without
/// identifying a machine, because each has few values and none is a name.
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
    /// Type of the target's file system, if it is a common type.
    FileSystem,
    /// Whether one of the disks under the target is a hard disk.
    RotatingDisk,
    /// Memory in GiB, rounded up to a power of two.
    Memory,
    /// Whether the machine is a virtual machine.
    VirtualMachine,
}

impl Moderator {
    /// Returns a description of the property for people.
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

/// Origin of a piece of advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title or author of the source, with the year.
    pub who: String,
    /// Claim of the source, in the words of assay's authors.
    pub claimed: String,
    /// Gain that the source itself measured, if it published one.
    #[serde(default)]
    pub figure: Option<String>,
}

/// Severity of the damage that a change may cause.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RiskLevel {
    /// No risk: the change affects only objects that assay creates.
    None,
    /// A setting is changed, but can be reverted at once.
    Low,
    /// A service may not work until the change is reverted.
    Service,
    /// The user may lose access to the machine.
    Lockout,
    /// Acknowledged data may be lost.
    DataLoss,
}

/// The risk of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// Severity of the possible damage.
    pub level: RiskLevel,
    /// What may happen, as text for users.
    pub text: String,
}

/// Verdict of primary sources on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The claim is true as stated.
    Confirmed,
    /// The claim is true only under specified conditions.
    Conditional,
    /// The claim was true or necessary, but is not on current versions.
    Obsolete,
    /// The claim was already false when it was written, or its reasoning is invalid.
    Wrong,
    /// Following the claim costs data, security or space.
    Dangerous,
}

/// What primary sources say about a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Literature {
    /// Verdict of the sources on the claim.
    pub standing: Standing,
    /// Explanation, with the versions from which on the verdict is different.
    pub text: String,
    /// Primary sources of the verdict: file and version, man page, URL.
    pub references: Vec<String>,
}

/// A parameter of a page, which the user may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Meaning of the parameter, as text for users.
    pub about: String,
    /// Default value. Without a default, the user must set the parameter.
    #[serde(default)]
    pub default: Option<String>,
    /// Type that the value must have.
    #[serde(default)]
    pub kind: ParameterKind,
    /// Permitted values, if there are only a few. Empty if any value of the type is permitted.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// Type of a parameter. If a string of the trial consists only of a placeholder, the value replaces the whole string
/// and has this type.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// Any text, without further checks.
    #[default]
    Text,
    /// An integer or decimal number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Words separated by spaces and quoted as in a shell, such as a command with its arguments. If an item of a list
    /// consists only of the placeholder, each word becomes an item of the list.
    Words,
}

/// Kind of object that a trial measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory in which assay may create scratch files.
    Directory,
    /// A mounted file system, given by any directory on it.
    Mount,
    /// A block device that is read but not written.
    Device,
    /// A ZFS dataset.
    Dataset,
    /// An address: URL or `HOST:PORT`.
    Address,
}

/// A guardrail: a figure that may become worse by at most a margin, whatever the gain in other figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Guard {
    /// The guarded figure.
    pub metric: Metric,
    /// How much worse the figure may become, as a fraction: 0.10 for 10 %.
    pub margin: f64,
}

impl Guard {
    /// Default margin of a tail latency, as a fraction. It is larger than other margins because on most machines the
    /// latency of the slowest 1 % varies between slots by more than 10 %.
    pub const TAIL_MARGIN: f64 = 0.25;

    /// Returns whether a metric is a tail latency.
    #[must_use]
    pub fn is_tail(metric: Metric) -> bool {
        matches!(
            metric.quantity,
            Quantity::P99 | Quantity::P999 | Quantity::P9999 | Quantity::Max
        )
    }

    /// Returns the default guardrail: the p99 latency of the operations that the deciding metric counts. `None` if the
    /// deciding metric or one of the guardrails is already a tail latency.
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
    /// Acknowledged writes must be durable. A flush test verifies this.
    AcknowledgedWrites,
}

/// Test of a piece of advice, after its placeholders were replaced. In the catalogue, the text may contain `{name}` for
/// a parameter, `{target}`, and `{mountpoint}`, `{source}`, `{device}` and `{disk}` for the storage layers below the
/// target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// Kind of target that the trial needs.
    pub target: TargetKind,
    /// Default target; `None` if the user must give one.
    #[serde(default)]
    pub default_target: Option<String>,
    /// The change that the trial tests.
    pub change: Change,
    /// The load under which both sides are measured.
    pub load: Load,
    /// The metric that decides the verdict.
    pub metric: Metric,
    /// Guardrails of the trial. If none of them is a tail latency, p99 is added.
    #[serde(default)]
    pub guards: Vec<Guard>,
    /// Reason why no guardrail is a tail latency. If this reason is given, p99 is not added.
    #[serde(default)]
    pub no_tail_guard: Option<String>,
    /// Smallest relative difference that matters in practice: 0.03 for 3 %.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// Duration of the measurement in a slot in seconds.
    #[serde(default = "slot_seconds")]
    pub slot_seconds: f64,
    /// Minimum time of a slot in seconds; the noise of the machine then determines the length. Absent if slots must not
    /// be shorter than `slot_seconds`. Permitted only for changes without carry-over effects, such as delayed writeback
    /// of a cache.
    #[serde(default)]
    pub slot_seconds_min: Option<f64>,
    /// Seconds of load between the change and the measurement.
    #[serde(default = "washout_seconds")]
    pub washout_seconds: f64,
    /// Whether a cache is part of what is tested. If so, reads from the cache count.
    #[serde(default)]
    pub cached: bool,
    /// A safety rule that the change must not violate, whatever its gain.
    #[serde(default)]
    pub safety: Option<SafetyRule>,
    /// Change that the user keeps after a better verdict, if the trial itself works on copies. If absent, the user must
    /// make the change by hand.
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

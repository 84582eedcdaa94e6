//! Advice: an entry of the catalogue. Read from a Markdown page with TOML front matter by
//! `assay-advice`.

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
    /// `qcow2-cluster-size`: letters, digits and `-`; the file's name.
    pub id: String,
    /// Folder it lies in: `images`, `filesystems`, `ssh`, `web`, `mail`, `zfs`, ….
    pub domain: String,
    /// A few words.
    pub title: String,
    /// What is advised, in one plain sentence.
    pub statement: String,
    /// Who says so, and what they saw.
    pub source: Source,
    /// Where the advice applies: all of these must hold.
    #[serde(default)]
    pub when: Vec<Condition>,
    /// What should happen to the metric if the advice is right, in words.
    pub predicts: String,
    /// What can go wrong.
    pub risk: Risk,
    /// What the literature says today.
    pub literature: Literature,
    /// Values the user may set with `--set NAME=VALUE`.
    #[serde(default)]
    pub parameters: BTreeMap<String, Parameter>,
    /// How it is tested here, with its placeholders; `assay-advice` makes a [`TrialSpec`] of it.
    /// Absent when it can only be explained.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub trial: Option<toml::Table>,
    /// What the change of the trial acts on. `assay tune` chooses and orders candidates by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acts: Option<ActsOn>,
    /// What may decide how much it gains: trials of many machines are looked at apart by these, and by
    /// nothing else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moderators: Vec<Moderator>,
    /// How a machine is held against it. Absent when `assay check` has nothing to look at.
    #[serde(default)]
    pub check: Option<Check>,
    /// Other words for it, by which `assay advice --search` finds it. Not part of what is stored or published.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    pub synonyms: Vec<String>,
    /// The Markdown page below the front matter.
    #[serde(default)]
    pub page: String,
}

/// One condition and what to say when it does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// CEL expression over facts and parameters.
    pub cel: String,
    /// Why the advice does not apply otherwise, for people.
    pub otherwise: String,
}

/// A property of a machine that may decide how much a change gains. These few can be told to others: each
/// has few values, and none is a name.
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
    /// File system of the target, where it is a usual one.
    FileSystem,
    /// Whether a disk under the target rotates.
    RotatingDisk,
    /// Memory, as the next power of two of GiB.
    Memory,
    /// Whether the machine is a guest.
    VirtualMachine,
}

impl Moderator {
    /// In words.
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

/// Where a piece of advice was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Title or author of the collection, with the year.
    pub who: String,
    /// What was claimed, in our words.
    pub claimed: String,
    /// The author's own figure, when there was one.
    #[serde(default)]
    pub figure: Option<String>,
}

/// How bad it can get.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum RiskLevel {
    /// Nothing outside what assay makes itself.
    None,
    /// A setting that is set back at once.
    Low,
    /// A service may stop working until it is set back.
    Service,
    /// The user may lock themselves out.
    Lockout,
    /// Data that was acknowledged may be lost.
    DataLoss,
}

/// A risk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Risk {
    /// How bad.
    pub level: RiskLevel,
    /// In words.
    pub text: String,
}

/// Verdict of the literature on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// True as it stands.
    Confirmed,
    /// True only under named facts.
    Conditional,
    /// Was true, or needed; not on today's versions.
    Obsolete,
    /// False when written, or the inference is invalid.
    Wrong,
    /// Following it costs data, security or space.
    Dangerous,
}

/// What the literature says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Literature {
    /// Verdict.
    pub standing: Standing,
    /// In words, with version boundaries.
    pub text: String,
    /// Primary sources: file and version, man page, URL.
    pub references: Vec<String>,
}

/// A value the user may set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// What it is.
    pub about: String,
    /// Its value when nobody sets it; without one it must be given.
    #[serde(default)]
    pub default: Option<String>,
    /// What its value may be.
    #[serde(default)]
    pub kind: ParameterKind,
    /// The values it may take, when they are few.
    #[serde(default)]
    pub choices: Vec<String>,
}

/// What the value of a parameter may be. Where a string of the trial is a placeholder alone, the
/// value takes its place with this type.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// Anything.
    #[default]
    Text,
    /// A whole or decimal number.
    Number,
    /// `true` or `false`.
    Flag,
    /// Words separated by spaces, with the shell's quotes: a command and its arguments. Where an
    /// item of a list is its placeholder alone, each word becomes an item.
    Words,
}

/// What a trial of this advice is pointed at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory in which assay may make scratch files.
    Directory,
    /// A mounted file system: any directory on it.
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
    /// Which figure.
    pub metric: Metric,
    /// Share by which it may get worse: 0.10 for 10 %.
    pub margin: f64,
}

impl Guard {
    /// Margin of the guardrail that a trial has by default: latencies of the slowest hundredth
    /// swing by more than a tenth from slot to slot on most machines.
    pub const TAIL_MARGIN: f64 = 0.25;

    /// Whether a figure is about the slowest operations.
    #[must_use]
    pub fn is_tail(metric: Metric) -> bool {
        matches!(
            metric.quantity,
            Quantity::P99 | Quantity::P999 | Quantity::P9999 | Quantity::Max
        )
    }

    /// The guardrail of a trial that looks at the slowest operations nowhere: p99 of what decides.
    /// None when the deciding figure or a guardrail is one.
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

/// A rule no figure can outweigh.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SafetyRule {
    /// What was acknowledged as durable must be durable: proved by a flush test.
    AcknowledgedWrites,
}

/// How a piece of advice is tested. In the catalogue its text may hold `{name}` for a parameter,
/// `{target}` for the target, `{mountpoint}`, `{source}`, `{device}` and `{disk}` for what lies under
/// it; here they are filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrialSpec {
    /// What it is pointed at.
    pub target: TargetKind,
    /// The target when none is named; none means that one must be named.
    #[serde(default)]
    pub default_target: Option<String>,
    /// What is changed.
    pub change: Change,
    /// What is done to it.
    pub load: Load,
    /// Which figure decides.
    pub metric: Metric,
    /// What must not get worse. Without a figure of the slowest operations among them, p99 is added.
    #[serde(default)]
    pub guards: Vec<Guard>,
    /// Why no guardrail looks at the slowest operations; then none is added.
    #[serde(default)]
    pub no_tail_guard: Option<String>,
    /// Smallest ratio that matters in practice: 0.03 for 3 %.
    #[serde(default = "default_margin")]
    pub margin: f64,
    /// Seconds one slot measures.
    #[serde(default = "slot_seconds")]
    pub slot_seconds: f64,
    /// Seconds of a slot at least, where slots may be shorter than that: nothing of one may be carried into
    /// the next, as what a cache writes back later is. The noise then decides how long they are.
    #[serde(default)]
    pub slot_seconds_min: Option<f64>,
    /// Seconds of load before a slot is measured, after the change.
    #[serde(default = "washout_seconds")]
    pub washout_seconds: f64,
    /// The cache is part of what is tried: reads that come from it count.
    #[serde(default)]
    pub cached: bool,
    /// A rule no figure can outweigh.
    #[serde(default)]
    pub safety: Option<SafetyRule>,
    /// How the change is made for good, where the trial works on copies. Without it, such a change
    /// is left to the user.
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

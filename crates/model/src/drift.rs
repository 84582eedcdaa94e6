//! What changed on a machine between two times at which it was looked at.

use crate::criterion::Metric;
use crate::finding::Severity;
use crate::machine::Machine;
use crate::result::{self, Interval};
use jiff::Timestamp;
use serde::Serialize;

/// What kind of change it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A finding that was not there.
    FindingCame,
    /// A finding that is not there any more.
    FindingGone,
    /// Something is as it was not before.
    Fact,
}

/// A change and its cause.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// What kind.
    pub kind: Kind,
    /// The key of the fact, or what names the finding.
    pub what: String,
    /// For findings: how bad it is, or was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// For findings: what they say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// As it was; none when it was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// As it is; none when it is not there any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A figure of a plan that is another one from a run on.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FigureChange {
    /// Where it was measured; null where that is not known.
    pub machine: Option<Machine>,
    /// The plan.
    pub plan: String,
    /// The workload.
    pub workload: String,
    /// What it was measured on.
    pub target: String,
    /// Which figure.
    pub metric: Metric,
    /// Number of the first run of the new level, most likely.
    pub run: i64,
    /// When that run began.
    pub since: Timestamp,
    /// When the first and the last of the runs began with which it may have changed (95 % of the weight).
    pub between: [Timestamp; 2],
    /// When the run began with which it was noticed.
    pub noticed: Timestamp,
    /// Runs before it, and from it on, up to the changes before and after this one.
    pub runs: [usize; 2],
    /// New level ÷ old one.
    pub ratio: f64,
    /// Where the ratio lies.
    pub interval: Option<Interval>,
    /// Whether that is better.
    pub verdict: result::Change,
    /// How much was won by betting against "nothing changed".
    pub evidence: f64,
    /// How often anything is ever told of a plan of which nothing changed, at most.
    pub level: f64,
    /// What else changed on the machine between the last run that may be of the old level and the first that
    /// must be of the new one.
    pub causes: Vec<Change>,
    /// The figure of each run, the oldest first: when it began, and the value.
    pub curve: Vec<(Timestamp, f64)>,
}

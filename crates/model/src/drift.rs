//! Changes of a machine between two surveys, and shifts in the results of its plans.

use crate::criterion::Metric;
use crate::finding::Severity;
use crate::machine::Machine;
use crate::result::{self, Interval};
use jiff::Timestamp;
use serde::Serialize;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A new finding.
    FindingCame,
    /// A finding that disappeared.
    FindingGone,
    /// A fact with another value.
    Fact,
}

/// A change and its cause.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Kind.
    pub kind: Kind,
    /// Key of the fact, or identity of the finding.
    pub what: String,
    /// Severity of a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Title of a finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Previous value; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Current value; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Cause, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A figure of a plan that shifted at some run.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FigureChange {
    /// Machine of the runs; null if unknown.
    pub machine: Option<Machine>,
    /// The plan.
    pub plan: String,
    /// The workload.
    pub workload: String,
    /// The target.
    pub target: String,
    /// The metric.
    pub metric: Metric,
    /// Number of the run at which the shift most likely happened.
    pub run: i64,
    /// When that run began.
    pub since: Timestamp,
    /// Start of the first and the last run at which the shift may have happened (95 % of the
    /// weight).
    pub between: [Timestamp; 2],
    /// Start of the run at which the shift was detected.
    pub noticed: Timestamp,
    /// Number of runs before and from the shift on, up to the neighbouring shifts.
    pub runs: [usize; 2],
    /// New level ÷ old one.
    pub ratio: f64,
    /// Interval of the ratio.
    pub interval: Option<Interval>,
    /// Whether the shift is an improvement.
    pub verdict: result::Change,
    /// Evidence against "no change": the factor by which a fair bet against it would have
    /// multiplied its stake.
    pub evidence: f64,
    /// Bound on the probability that any shift is ever reported for a plan without a change.
    pub level: f64,
    /// Other changes of the machine between the last run that may have the old level and the first
    /// run that must have the new level.
    pub causes: Vec<Change>,
    /// Start and value of each run, oldest first.
    pub curve: Vec<(Timestamp, f64)>,
}

//! Changes of a machine between two surveys of its facts and findings, and shifts in the results of its plans over
//! time.

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
    /// Value before the change; `None` if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value after the change; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Cause of the change, if known.
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
    /// Start time of that run.
    pub since: Timestamp,
    /// Earliest and latest start of a run at which the shift may have happened (95 % of the probability).
    pub between: [Timestamp; 2],
    /// Start of the run at which the shift was detected.
    pub noticed: Timestamp,
    /// Number of runs before the shift, and from the shift on; each counted only up to the neighbouring shift.
    pub runs: [usize; 2],
    /// Level after the shift ÷ level before it.
    pub ratio: f64,
    /// Confidence interval of `ratio`.
    pub interval: Option<Interval>,
    /// Whether the shift is an improvement or a deterioration.
    pub verdict: result::Change,
    /// Evidence that the level changed: the factor by which a fair bet against "no change" would have multiplied its
    /// stake.
    pub evidence: f64,
    /// Upper bound of the probability that a plan without any change ever gets a false report of a shift.
    pub level: f64,
    /// Other changes of the machine that may be the cause. They happened after the last run that may have the old
    /// level, and before the first run that must have the new level.
    pub causes: Vec<Change>,
    /// Start and value of each run, oldest first.
    pub curve: Vec<(Timestamp, f64)>,
}

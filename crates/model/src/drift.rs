//! Changes of a machine between two surveys of its facts and findings, and shifts in the results of its plans.

use crate::criterion::Metric;
use crate::finding::Severity;
use crate::machine::Machine;
use crate::result::{self, Interval};
use jiff::Timestamp;
use serde::Serialize;

/// Kind of a change between two surveys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A finding that the earlier survey did not have.
    FindingCame,
    /// A finding that the later survey does not have.
    FindingGone,
    /// A fact whose value changed.
    Fact,
}

/// A change between two surveys, with its cause.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Change {
    /// Whether a finding or a fact changed.
    pub kind: Kind,
    /// Key of the fact, or identity of the finding.
    pub what: String,
    /// Severity of the finding; `None` for a fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// Title of the finding; `None` for a fact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Value before the change; `None` if the fact did not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Value after the change; `None` if the fact does not exist any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Cause of the change, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A shift in a figure of a plan: from some run on, the figure has another level.
#[derive(Clone, Debug, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FigureChange {
    /// Machine on which the runs were measured; null if unknown.
    pub machine: Option<Machine>,
    /// Name of the plan of the runs.
    pub plan: String,
    /// Name of the workload in the plan.
    pub workload: String,
    /// Target on which the runs were measured.
    pub target: String,
    /// Metric whose level shifted.
    pub metric: Metric,
    /// Number of the run at which the shift most likely happened.
    pub run: i64,
    /// Start time of that run.
    pub since: Timestamp,
    /// Earliest and latest start of a run at which the shift may have happened. The shift is between them with a
    /// probability of 95 %.
    pub between: [Timestamp; 2],
    /// Start of the run at which the shift was detected.
    pub noticed: Timestamp,
    /// Number of runs before the shift, and number of runs from the shift on. Only runs up to the neighbouring shifts
    /// count.
    pub runs: [usize; 2],
    /// Level after the shift ÷ level before the shift.
    pub ratio: f64,
    /// Confidence interval of `ratio`.
    pub interval: Option<Interval>,
    /// Whether the shift is an improvement or a deterioration.
    pub verdict: result::Change,
    /// Evidence that the level changed, as an e-value: the factor by which a fair bet against "no change" would have
    /// multiplied its stake.
    pub evidence: f64,
    /// Upper bound of the probability that a false shift is ever reported for a plan without any change.
    pub level: f64,
    /// Other changes of the machine that may be the cause. They happened after the last run that may still have the old
    /// level, and before the first run that has the new level with certainty.
    pub causes: Vec<Change>,
    /// Start time and value of each run, oldest first.
    pub curve: Vec<(Timestamp, f64)>,
}

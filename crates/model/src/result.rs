//! Results that are derived from samples whenever samples are read. They are never stored.

use crate::criterion::{Criterion, Metric};
use crate::doubt::{Doubt, Validity};
use crate::histogram::Histogram;
use crate::sample::RatePoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A confidence interval of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
    /// Confidence level: 0.95 for 95 %.
    pub confidence: f64,
}

/// A figure with its confidence interval over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Value in base units (ns, bytes per second, I/Os per second), pooled over all rounds.
    pub value: f64,
    /// Confidence interval; `None` with fewer than two rounds.
    pub interval: Option<Interval>,
    /// Number of rounds in the estimate.
    pub rounds: u32,
}

/// Values of one sample by metric.
pub type Figures = BTreeMap<Metric, f64>;

/// A sample with its figures and the doubts (reasons to distrust a figure) about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedSample {
    /// Name of the workload.
    pub workload: String,
    /// Name of the target.
    pub target: String,
    /// Number of the round, counted from 1.
    pub round: u32,
    /// Position in the plan's order, counted from 0.
    pub slot: u32,
    /// Validity that results from the doubts: the most severe consequence among them.
    pub validity: Validity,
    /// Doubts (reasons to distrust a figure) about the sample.
    pub doubts: Vec<Doubt>,
    /// Figures of the sample; empty if the sample failed.
    pub figures: Figures,
}

/// A doubt (a reason to distrust a figure), and the number of samples that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CountedDoubt {
    /// The doubt, with the evidence from the first sample that has it.
    #[serde(flatten)]
    pub doubt: Doubt,
    /// Number of samples that have the doubt.
    pub samples: u32,
}

/// Whether the rate of a workload reached a steady state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Steadiness {
    /// Whether the last five rounds meet both SNIA criteria. If not, the figure describes a burst.
    pub steady: bool,
    /// (max − min) ÷ mean over the window. At most 0.20 in a steady state.
    pub range: Option<f64>,
    /// |rise of the fitted line over the window| ÷ mean. At most 0.10 in a steady state.
    pub slope: Option<f64>,
    /// Explanation on one line, for users.
    pub reason: String,
}

/// Cause that limits the rate of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Only one request is in flight, so rate = 1 / latency.
    OneAtATime,
    /// The flush after each write takes most of the time.
    Flush,
    /// The CPU of the load generator is busy.
    ToolCpu,
    /// The CPUs of the machine are busy.
    MachineCpu,
    /// The hypervisor takes CPU time for other guests.
    Steal,
    /// The number of requests in flight is too low: at a higher queue depth, the device serves more requests per
    /// second.
    Depth,
    /// The device is saturated: a higher queue depth does not increase the rate.
    Device,
    /// The link or bus below the device is saturated.
    Link,
    /// A rate limit applies (cloud volume, cgroup, hypervisor).
    RateLimit,
    /// Heat or a reduced frequency slows the hardware down.
    Throttling,
    /// Memory bandwidth, because the data come from RAM.
    Memory,
    /// The requested rate, which the load achieved. Nothing else limits the load.
    RateAsked,
    /// The web server or another service under load.
    Server,
    /// Another server to which the server sends requests.
    Backend,
    /// The server's queue of connections that it has not yet accepted is full.
    AcceptQueue,
    /// The network link to the server is saturated.
    Network,
    /// The load generator could not send the requests of an open loop at their scheduled times.
    Schedule,
    /// The load generator's machine has no free local port.
    Ports,
    /// The cause is unknown, because there is no evidence.
    Unknown,
}

crate::named!(LimitKind, "limit": OneAtATime = "one-at-a-time", Flush = "flush",
    ToolCpu = "tool-cpu", MachineCpu = "machine-cpu", Steal = "steal", Depth = "depth",
    Device = "device", Link = "link", RateLimit = "rate-limit", Throttling = "throttling",
    Memory = "memory", RateAsked = "rate-asked", Server = "server", Backend = "backend",
    AcceptQueue = "accept-queue", Network = "network", Schedule = "schedule", Ports = "ports",
    Unknown = "unknown");

/// What limits the rate of a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limit {
    /// Cause that limits the rate.
    pub what: LimitKind,
    /// Evidence in one sentence, with figures.
    pub evidence: String,
}

/// Results of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadResult {
    /// Name of the workload.
    pub workload: String,
    /// Name of the target.
    pub target: String,
    /// Description of the workload on one line (`Workload::describe`).
    pub description: String,
    /// Number of valid rounds.
    pub rounds: u32,
    /// Number of rounds without a result, because their sample is void or failed.
    pub rounds_void: u32,
    /// Worst validity among the rounds that count. Void if no round counts.
    pub validity: Validity,
    /// Doubts (reasons to distrust a figure) about the samples.
    pub doubts: Vec<CountedDoubt>,
    /// Estimates by metric. Void samples are excluded.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// Whether the rate reached a steady state.
    pub steadiness: Steadiness,
    /// Cause that limits the rate.
    pub limit: Limit,
    /// Latency of all operations over all counted rounds (see `Direction::All`).
    pub latency: Histogram,
    /// Rate over time of each counted round, as (number of the round, points).
    pub series: Vec<(u32, Vec<RatePoint>)>,
}

/// A criterion, and whether the run meets it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CriterionResult {
    /// The criterion that was evaluated.
    pub criterion: Criterion,
    /// Name of the target for which the criterion was evaluated.
    pub target: String,
    /// Measured value. `None` without a valid figure; the criterion is then not met.
    pub value: Option<Estimate>,
    /// Whether the value meets the criterion.
    pub met: bool,
    /// Whether more rounds could hardly change the result. False if the interval of the value contains the threshold.
    pub clear: bool,
}

/// A run with all results that are derived from its samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// All samples of the run, in stored order.
    pub samples: Vec<JudgedSample>,
    /// Results of each workload × target in plan order.
    pub results: Vec<WorkloadResult>,
    /// Results of each criterion for each target.
    pub criteria: Vec<CriterionResult>,
}

/// Comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunComparison {
    /// Whether the loads are HTTP loads, so that operations are called requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// Id of the first run.
    pub a: crate::run::RunId,
    /// Id of the second run.
    pub b: crate::run::RunId,
    /// Whether workloads were paired by pattern, block size and queue depth, because no workload name occurs in both
    /// runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_shape: bool,
    /// Rate of B ÷ rate of A for each block size, smallest block first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<SizeFactor>,
    /// Facts that differ between the runs.
    pub environment: Vec<FactDifference>,
    /// Reasons why the comparison may be invalid, such as a different plan, a different file size, or runs that were
    /// not interleaved.
    pub cautions: Vec<String>,
    /// Figures of both runs, one row for each workload × target × metric.
    pub rows: Vec<ComparisonRow>,
    /// Workloads that only the first run contains, as `WORKLOAD on TARGET`.
    pub only_a: Vec<String>,
    /// Workloads that only the second run contains, as `WORKLOAD on TARGET`.
    pub only_b: Vec<String>,
}

/// Rate of B ÷ rate of A, over the workloads with one block size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SizeFactor {
    /// Block size of the workloads.
    pub block_size: crate::Bytes,
    /// Number of workloads with this block size that both runs contain.
    pub workloads: usize,
    /// Geometric mean of the ratios of IOPS over the workloads.
    pub factor: f64,
    /// Lowest ratio of IOPS of a workload.
    pub lowest: f64,
    /// Highest ratio of IOPS of a workload.
    pub highest: f64,
}

/// A fact that differs between the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FactDifference {
    /// Key of the fact that differs.
    pub key: String,
    /// Value in the first run; `None` if the run lacks the fact.
    pub a: Option<serde_json::Value>,
    /// Value in the second run; `None` if the run lacks the fact.
    pub b: Option<serde_json::Value>,
}

/// One figure of both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComparisonRow {
    /// Name of the workload in the plan.
    pub workload: String,
    /// Target in the first run.
    pub target: String,
    /// Metric of the figure.
    pub metric: Metric,
    /// Estimate in the first run.
    pub a: Estimate,
    /// Estimate in the second run.
    pub b: Estimate,
    /// Value in the second run ÷ value in the first run.
    pub ratio: f64,
    /// Confidence interval of the ratio. `None` if one of the runs has only one round.
    pub interval: Option<Interval>,
    /// Whether the second run is better or worse than the first run.
    pub verdict: Change,
}

/// Result of comparing B with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The whole interval is on the better side of 1.
    Better,
    /// The whole interval is on the worse side of 1.
    Worse,
    /// The whole interval is within a margin that is too small to matter. Only loads on web servers have this result.
    Same,
    /// The interval contains 1, or there is no interval.
    Unclear,
}

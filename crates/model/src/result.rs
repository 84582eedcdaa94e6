//! Results derived from samples. They are derived on read and never stored.

use crate::criterion::{Criterion, Metric};
use crate::doubt::{Doubt, Validity};
use crate::histogram::Histogram;
use crate::sample::RatePoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An interval that contains the true value with this confidence (level 0 to 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
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

/// Figures by metric.
pub type Figures = BTreeMap<Metric, f64>;

/// A sample with its doubts and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedSample {
    /// Workload name.
    pub workload: String,
    /// Target name.
    pub target: String,
    /// 1-based round.
    pub round: u32,
    /// Position in the plan's order, from 0.
    pub slot: u32,
    /// Validity after its doubts: the worst consequence among them.
    pub validity: Validity,
    /// Its doubts.
    pub doubts: Vec<Doubt>,
    /// Figures of the sample; empty if the sample failed.
    pub figures: Figures,
}

/// A doubt, and the number of samples that have it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CountedDoubt {
    /// The doubt, with the evidence from the first sample that has it.
    #[serde(flatten)]
    pub doubt: Doubt,
    /// Number of samples.
    pub samples: u32,
}

/// Whether the rate reached a steady state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Steadiness {
    /// Whether both SNIA criteria hold for the last five rounds; if not, the figure describes a burst.
    pub steady: bool,
    /// (max − min) ÷ mean over the window; at most 0.20 to be steady.
    pub range: Option<f64>,
    /// |rise of the fitted line over the window| ÷ mean; at most 0.10 to be steady.
    pub slope: Option<f64>,
    /// Explanation in one line, for users.
    pub reason: String,
}

/// Cause that limits a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// Only one request is in flight: rate = 1 / latency.
    OneAtATime,
    /// The flush after each write.
    Flush,
    /// CPU of the load generator.
    ToolCpu,
    /// CPUs of the machine.
    MachineCpu,
    /// CPU time taken by the hypervisor.
    Steal,
    /// The number of requests in flight: the device serves more requests per second at a higher depth.
    Depth,
    /// The device is saturated: a higher depth does not increase the rate.
    Device,
    /// The link or bus below the device.
    Link,
    /// A rate limit (cloud volume, cgroup, hypervisor).
    RateLimit,
    /// Heat or frequency.
    Throttling,
    /// Memory bandwidth: the data is served from RAM.
    Memory,
    /// The requested rate, which the load reached.
    RateAsked,
    /// The web server or other service under load.
    Server,
    /// Another server that the server calls.
    Backend,
    /// The server's queue of connections that are not accepted yet.
    AcceptQueue,
    /// The network link to the server.
    Network,
    /// The load generator could not keep the schedule of an open loop.
    Schedule,
    /// The number of local ports on the load generator's machine.
    Ports,
    /// Unknown: there is no evidence.
    Unknown,
}

crate::named!(LimitKind, "limit": OneAtATime = "one-at-a-time", Flush = "flush",
    ToolCpu = "tool-cpu", MachineCpu = "machine-cpu", Steal = "steal", Depth = "depth",
    Device = "device", Link = "link", RateLimit = "rate-limit", Throttling = "throttling",
    Memory = "memory", RateAsked = "rate-asked", Server = "server", Backend = "backend",
    AcceptQueue = "accept-queue", Network = "network", Schedule = "schedule", Ports = "ports",
    Unknown = "unknown");

/// What limits a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limit {
    /// Cause.
    pub what: LimitKind,
    /// Evidence in one sentence, with figures.
    pub evidence: String,
}

/// Results of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadResult {
    /// Workload name.
    pub workload: String,
    /// Target name.
    pub target: String,
    /// Description of the workload in one line (`Workload::describe`).
    pub description: String,
    /// Number of valid rounds.
    pub rounds: u32,
    /// Number of rounds without a result, because the sample is void or failed.
    pub rounds_void: u32,
    /// Worst validity among the rounds that count; void if no round counts.
    pub validity: Validity,
    /// Doubts of all its samples.
    pub doubts: Vec<CountedDoubt>,
    /// Estimates by metric, without void samples.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// Whether the rate reached a steady state.
    pub steadiness: Steadiness,
    /// Limiting cause.
    pub limit: Limit,
    /// Latency of all operations over all counted rounds (see `Direction::All`).
    pub latency: Histogram,
    /// Rate over time for each counted round: number of the round and its points.
    pub series: Vec<(u32, Vec<RatePoint>)>,
}

/// A criterion and whether it is met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CriterionResult {
    /// The criterion.
    pub criterion: Criterion,
    /// Target to which the result belongs.
    pub target: String,
    /// Measured value; `None` without a valid figure, in which case the criterion is not met.
    pub value: Option<Estimate>,
    /// Whether the value meets the criterion.
    pub met: bool,
    /// Whether the result is clear. False if the interval contains the threshold: more rounds could change the result.
    pub clear: bool,
}

/// A run with its judgement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Samples in stored order.
    pub samples: Vec<JudgedSample>,
    /// Results of each workload × target in plan order.
    pub results: Vec<WorkloadResult>,
    /// Results of each criterion × target.
    pub criteria: Vec<CriterionResult>,
}

/// Comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunComparison {
    /// Whether the loads are HTTP loads, so that operations are requests.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// First run.
    pub a: crate::run::RunId,
    /// Second run.
    pub b: crate::run::RunId,
    /// Whether workloads were paired by pattern, block size and depth, because the two runs have no workload name in
    /// common.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_shape: bool,
    /// Rate of B ÷ rate of A by block size, smallest block first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<SizeFactor>,
    /// Facts that differ between the runs.
    pub environment: Vec<FactDifference>,
    /// Reasons why the comparison may be invalid: different plan, different file size, runs not interleaved.
    pub cautions: Vec<String>,
    /// Workload × target × metric of both runs.
    pub rows: Vec<ComparisonRow>,
    /// Workloads that only the first run has, as `WORKLOAD on TARGET`.
    pub only_a: Vec<String>,
    /// Workloads that only the second run has, as `WORKLOAD on TARGET`.
    pub only_b: Vec<String>,
}

/// Rate of B ÷ rate of A over the workloads with one block size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SizeFactor {
    /// Block size of the workloads.
    pub block_size: crate::Bytes,
    /// Number of workloads that both runs contain.
    pub workloads: usize,
    /// Geometric mean of the workloads' ratios of IOPS.
    pub factor: f64,
    /// Lowest ratio of a workload.
    pub lowest: f64,
    /// Highest ratio of a workload.
    pub highest: f64,
}

/// A fact that differs between the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FactDifference {
    /// Fact key.
    pub key: String,
    /// In the first run; `None` if absent.
    pub a: Option<serde_json::Value>,
    /// In the second run; `None` if absent.
    pub b: Option<serde_json::Value>,
}

/// One figure in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ComparisonRow {
    /// Workload name.
    pub workload: String,
    /// Target in the first run.
    pub target: String,
    /// Metric.
    pub metric: Metric,
    /// Estimate in the first run.
    pub a: Estimate,
    /// Estimate in the second run.
    pub b: Estimate,
    /// Value in B ÷ value in A.
    pub ratio: f64,
    /// Interval of the ratio; `None` if A or B has only one round.
    pub interval: Option<Interval>,
    /// `better`, `worse` or `unclear`, for B compared with A.
    pub verdict: Change,
}

/// Result of B compared with A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The whole interval is on the better side of 1.
    Better,
    /// The whole interval is on the worse side of 1.
    Worse,
    /// The whole interval is within a margin that is too small to matter. Only for loads on web
    /// servers.
    Same,
    /// The interval contains 1, or there is no interval.
    Unclear,
}

//! What samples add up to. Everything here is derived on read, never stored.

use crate::criterion::{Criterion, Metric};
use crate::doubt::{Doubt, Validity};
use crate::histogram::Histogram;
use crate::sample::RatePoint;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An interval that holds the true value with the stated confidence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// 0.95 for 95 %.
    pub confidence: f64,
}

/// A figure with its interval over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Estimate {
    /// Value in base units (ns, bytes per second, I/Os per second), over all rounds pooled.
    pub value: f64,
    /// None with fewer than two rounds.
    pub interval: Option<Interval>,
    /// Rounds it rests on.
    pub rounds: u32,
}

/// Figures by metric.
pub type Figures = BTreeMap<Metric, f64>;

/// A sample as judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct JudgedSample {
    /// Workload name.
    pub workload: String,
    /// Target name.
    pub target: String,
    /// 1-based round.
    pub round: u32,
    /// 0-based slot in the plan's order.
    pub slot: u32,
    /// Worst of its doubts.
    pub validity: Validity,
    /// Its doubts.
    pub doubts: Vec<Doubt>,
    /// Its figures; empty when it failed.
    pub figures: Figures,
}

/// A doubt and how many of the samples carry it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CountedDoubt {
    /// The doubt with the evidence of the first sample that carries it.
    #[serde(flatten)]
    pub doubt: Doubt,
    /// How many samples carry it.
    pub samples: u32,
}

/// Whether the rate had settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Steadiness {
    /// True when both SNIA criteria hold over the last five rounds; else the figure is a burst.
    pub steady: bool,
    /// (max − min) ÷ mean over the window; at most 0.20 to be steady.
    pub range: Option<f64>,
    /// |rise of the fitted line over the window| ÷ mean; at most 0.10 to be steady.
    pub slope: Option<f64>,
    /// One line for people.
    pub reason: String,
}

/// What kept a workload from going faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// One request at a time: rate = 1 / latency.
    OneAtATime,
    /// The flush after each write.
    Flush,
    /// The load generator's CPU.
    ToolCpu,
    /// The machine's CPUs.
    MachineCpu,
    /// CPU time taken by the hypervisor.
    Steal,
    /// The requests in flight: the device takes more at once, and gives more then.
    Depth,
    /// The device works at full queue and more depth does not help.
    Device,
    /// The link or bus below the device.
    Link,
    /// A rate limit (cloud volume, cgroup, hypervisor).
    RateLimit,
    /// Heat or frequency.
    Throttling,
    /// Memory bandwidth: the data came from or went to RAM.
    Memory,
    /// Nothing: the rate that was asked for was served.
    RateAsked,
    /// The server.
    Server,
    /// Another server that the server waits for.
    Backend,
    /// The server's queue of connections that wait to be accepted.
    AcceptQueue,
    /// The link to the server.
    Network,
    /// The times of an open loop could not be kept.
    Schedule,
    /// Local ports of the generator's machine.
    Ports,
    /// Evidence does not say.
    Unknown,
}

crate::named!(LimitKind, "limit": OneAtATime = "one-at-a-time", Flush = "flush",
    ToolCpu = "tool-cpu", MachineCpu = "machine-cpu", Steal = "steal", Depth = "depth",
    Device = "device", Link = "link", RateLimit = "rate-limit", Throttling = "throttling",
    Memory = "memory", RateAsked = "rate-asked", Server = "server", Backend = "backend",
    AcceptQueue = "accept-queue", Network = "network", Schedule = "schedule", Ports = "ports",
    Unknown = "unknown");

/// The answer to "why not more?".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limit {
    /// What.
    pub what: LimitKind,
    /// One sentence with the figures it rests on.
    pub evidence: String,
}

/// All that is known of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WorkloadResult {
    /// Workload name.
    pub workload: String,
    /// Target name.
    pub target: String,
    /// `Workload::describe`.
    pub description: String,
    /// Rounds that count.
    pub rounds: u32,
    /// Rounds left out because their sample is void or failed.
    pub rounds_void: u32,
    /// Worst validity among the rounds that count; void when none counts.
    pub validity: Validity,
    /// Doubts of all its samples.
    pub doubts: Vec<CountedDoubt>,
    /// Estimates by metric; void samples are left out.
    pub estimates: BTreeMap<Metric, Estimate>,
    /// Steady or burst.
    pub steadiness: Steadiness,
    /// Why not more.
    pub limit: Limit,
    /// Latency of all operations over all rounds that count (see `Direction::All`).
    pub latency: Histogram,
    /// Rate over time of each round that counts: round and its points.
    pub series: Vec<(u32, Vec<RatePoint>)>,
}

/// A criterion and whether it was met.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CriterionResult {
    /// The criterion.
    pub criterion: Criterion,
    /// Target it was held against.
    pub target: String,
    /// None when there is no valid figure: then it is not met.
    pub value: Option<Estimate>,
    /// Whether the value satisfies it.
    pub met: bool,
    /// False when the interval contains the threshold: more rounds could turn it.
    pub clear: bool,
}

/// A run as judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Each sample in stored order.
    pub samples: Vec<JudgedSample>,
    /// Each workload × target in plan order.
    pub results: Vec<WorkloadResult>,
    /// Each criterion × target.
    pub criteria: Vec<CriterionResult>,
}

/// Two runs side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RunComparison {
    /// The operations are requests to web servers.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub requests: bool,
    /// First run.
    pub a: crate::run::RunId,
    /// Second run.
    pub b: crate::run::RunId,
    /// Workloads were paired by pattern, block size and depth, because no names are the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_shape: bool,
    /// Rate of B ÷ rate of A by block size, smallest block first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub factors: Vec<SizeFactor>,
    /// What differs in the environment.
    pub environment: Vec<FactDifference>,
    /// What speaks against comparing them (different plan, file size, not interleaved).
    pub cautions: Vec<String>,
    /// Workload × target × metric in both.
    pub rows: Vec<ComparisonRow>,
    /// `workload on target` only in the first.
    pub only_a: Vec<String>,
    /// `workload on target` only in the second.
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

/// A fact that is not the same in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FactDifference {
    /// Fact key.
    pub key: String,
    /// In the first run; none when absent.
    pub a: Option<serde_json::Value>,
    /// In the second run; none when absent.
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
    /// In the first run.
    pub a: Estimate,
    /// In the second run.
    pub b: Estimate,
    /// B ÷ A.
    pub ratio: f64,
    /// Interval of the ratio; none when either side has a single round.
    pub interval: Option<Interval>,
    /// `better`, `worse` or `unclear`, for B against A.
    pub verdict: Change,
}

/// B against A.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The whole interval lies on the good side of 1.
    Better,
    /// The whole interval lies on the bad side of 1.
    Worse,
    /// The whole interval lies within a margin in which nobody sees a difference. Of loads on web servers alone.
    Same,
    /// It contains 1, or there is no interval.
    Unclear,
}

//! Results of the steps of a load. They are derived when a run is read.

use super::{Failures, Pace, Point, StatusCount};
use crate::doubt::Doubt;
use crate::histogram::Histogram;
use crate::result::{Estimate, Interval};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Cause that limited a load.
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
pub enum Limited {
    /// Nothing limited the load: the requested rate was reached.
    Rate,
    /// The server.
    Server,
    /// The server's queue of connections that are not accepted yet (`listen` backlog).
    AcceptQueue,
    /// Another server that the server waits for, such as a backend or a database.
    Backend,
    /// A CPU quota of the server's control group.
    Quota,
    /// The load generator itself.
    Generator,
    /// The network link of the generator.
    Network,
    /// The schedule could not be kept: too few connections, or a late generator.
    Schedule,
    /// The number of local ports on the generator's machine.
    Ports,
    /// The limiting cause is unknown: the observations do not show it.
    NotKnown,
}

impl Limited {
    /// Returns the name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rate => "the rate asked for",
            Self::Server => "server",
            Self::AcceptQueue => "accept queue",
            Self::Backend => "backend",
            Self::Quota => "CPU quota",
            Self::Generator => "generator",
            Self::Network => "network",
            Self::Schedule => "schedule",
            Self::Ports => "local ports",
            Self::NotKnown => "not known",
        }
    }
}

/// The limiting cause with evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limit {
    /// Cause.
    pub who: Limited,
    /// Evidence: figures, no interpretation.
    pub evidence: String,
}

/// Latency percentiles of all requests. A percentile is `None` if it falls among the failed requests, or if there are
/// too few requests.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<Nanos>,
    /// 90th percentile; needs ten requests.
    pub p90: Option<Nanos>,
    /// 99th percentile; needs a hundred requests.
    pub p99: Option<Nanos>,
    /// 99.9th percentile; needs a thousand requests.
    pub p999: Option<Nanos>,
}

/// Results of a step, combined over all rounds that repeated it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepResult {
    /// Index of the target's URL.
    pub target: usize,
    /// Maximum number of connections.
    pub connections: u32,
    /// Schedule of the first round.
    pub pace: Pace,
    /// Rate as a fraction of the capacity; only in an open loop.
    pub share: Option<f64>,
    /// Number of valid rounds.
    pub rounds: u32,
    /// Number of void rounds.
    pub rounds_void: u32,
    /// Successful responses per second; `None` without a valid round.
    pub rate: Option<Estimate>,
    /// Bytes of bodies per second.
    pub bytes_per_s: f64,
    /// Latency. In an open loop it is measured from the intended send time, so it includes delays by earlier requests.
    pub latency: Percentiles,
    /// Latency from the first byte sent until the complete response.
    pub service: Percentiles,
    /// All latencies of the valid rounds.
    pub histogram: Histogram,
    /// Rate and latency over time of each round in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<OverTime>,
    /// Number of requests that were due.
    pub due: u64,
    /// Number of requests that failed or were never sent.
    pub failed: u64,
    /// Failures by kind.
    pub failures: Vec<Failures>,
    /// Responses with an unexpected status, by status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// Contributions of the load generators, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<Given>,
    /// Mean number of CPUs that the server used.
    pub server_cpus: Option<f64>,
    /// Mean number of CPUs that the load generator used.
    pub generator_cpus: f64,
    /// Successful responses per second of CPU time that the server used.
    pub per_cpu_second: Option<Estimate>,
    /// Successful responses per second, divided by the CPU use of the server in percent of all CPUs of its machine.
    /// Published studies use this figure.
    pub per_percent: Option<f64>,
    /// Bits per second on the link in the busier direction.
    pub link: Option<f64>,
    /// Limiting cause.
    pub limit: Limit,
    /// Doubts of all rounds, each listed once.
    pub doubts: Vec<Doubt>,
}

/// Rate and latency of one round over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OverTime {
    /// Round, from 0.
    pub round: u32,
    /// Successful responses per second of the whole round.
    #[serde(default)]
    pub rate: f64,
    /// About forty points. Empty for runs stored by versions before 0.3.
    pub points: Vec<Point>,
}

/// Contribution of one of several generators, averaged over the rounds in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Given {
    /// Machine of the generator, as the user named it.
    pub generator: String,
    /// Successful responses per second to this generator.
    pub rate: f64,
    /// Fraction of all successful responses that this generator received, 0 to 1.
    pub share: f64,
    /// Mean number of CPUs that the generator used.
    pub cpus: f64,
    /// Number of the generator's requests that failed or were never sent, in all rounds.
    pub failed: u64,
}

/// Capacity of a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Smallest number of connections with a rate within 5 % of the capacity.
    pub connections: u32,
    /// Successful responses per second with this number of connections.
    pub rate: f64,
    /// Interval of the rate over the rounds; `None` with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Whether the rate was still rising: the largest tested number of connections gave over 5 % more than fewer
    /// connections. Then the capacity is at least `rate`.
    #[serde(default)]
    pub rising: bool,
}

/// Figure by which targets are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankedBy {
    /// Successful responses per second at capacity.
    Capacity,
    /// Successful responses per CPU-second at capacity.
    Efficiency,
}

/// A place in a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// Index of the target's URL.
    pub target: usize,
    /// Figure of the target.
    pub value: Estimate,
    /// Whether the figure differs significantly from that of the next place; `None` for the last place.
    pub apart: Option<bool>,
}

/// Ranking of targets by one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// The figure.
    pub by: RankedBy,
    /// The targets, best first.
    pub places: Vec<Place>,
}

/// Results of all steps of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Each kind of step on each target, in the order of the first round.
    pub steps: Vec<StepResult>,
    /// Capacity of each target from its closed loops; `None` without a valid round.
    pub capacity: Vec<Option<Capacity>>,
    /// Rankings, if there are several targets.
    pub rankings: Vec<Ranking>,
}

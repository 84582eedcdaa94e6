//! Results of the steps of a load, derived on read.

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
    /// None: the requested rate was reached.
    Rate,
    /// The server.
    Server,
    /// The server's queue of connections that are not accepted yet (`listen` backlog).
    AcceptQueue,
    /// Another server that the server waits for, such as a backend or a database.
    Backend,
    /// A CPU quota of the server's control group.
    Quota,
    /// assay itself.
    Generator,
    /// The network link.
    Network,
    /// The schedule could not be kept: too few connections, or a late generator.
    Schedule,
    /// Local ports of the generator's machine.
    Ports,
    /// Unknown: the observations do not show it.
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
    /// Evidence: figures, no opinions.
    pub evidence: String,
}

/// Latency percentiles of all requests. A percentile is missing if it falls among the failed
/// requests, or if there are too few.
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

/// One kind of step on one target, over its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepResult {
    /// Index of the URL.
    pub target: usize,
    /// Most connections.
    pub connections: u32,
    /// Schedule of the first round.
    pub pace: Pace,
    /// In an open loop: fraction of the capacity.
    pub share: Option<f64>,
    /// Number of valid rounds.
    pub rounds: u32,
    /// Number of void rounds.
    pub rounds_void: u32,
    /// Successful responses per second; `None` without a valid round.
    pub rate: Option<Estimate>,
    /// Bytes of bodies per second.
    pub bytes_per_s: f64,
    /// Latency from the intended time in an open loop.
    pub latency: Percentiles,
    /// Latency from the first byte sent.
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
    /// Contributions of several generators.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<Given>,
    /// CPUs that the server used on average.
    pub server_cpus: Option<f64>,
    /// CPUs that the generator used.
    pub generator_cpus: f64,
    /// Successful responses per second of the server's CPU time.
    pub per_cpu_second: Option<Estimate>,
    /// Successful responses per second for each percent of all CPUs of the machine that the server
    /// used; studies publish this figure.
    pub per_percent: Option<f64>,
    /// Bits per second on the link in the busier direction.
    pub link: Option<f64>,
    /// Limiting cause.
    pub limit: Limit,
    /// Doubts of all rounds without duplicates.
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
    /// About forty points; none in runs stored before 0.3.
    pub points: Vec<Point>,
}

/// Contribution of one of several generators, averaged over the rounds in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Given {
    /// The machine, as the user names it.
    pub generator: String,
    /// Its successful responses per second.
    pub rate: f64,
    /// Its fraction of all successful responses.
    pub share: f64,
    /// CPUs that it used.
    pub cpus: f64,
    /// Its requests that failed or were never sent, in all rounds.
    pub failed: u64,
}

/// Capacity of a server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Smallest number of connections that reaches it within 5 %.
    pub connections: u32,
    /// Successful responses per second at that number.
    pub rate: f64,
    /// Interval of the rate over the rounds; `None` with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Whether the largest tested number of connections gave over 5 % more than fewer ones: then
    /// the capacity is at least `rate`.
    #[serde(default)]
    pub rising: bool,
}

/// Figure of a ranking.
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
    /// Index of the URL.
    pub target: usize,
    /// Its figure.
    pub value: Estimate,
    /// Whether it differs significantly from the next place; `None` for the last.
    pub apart: Option<bool>,
}

/// Targets in order, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// The figure.
    pub by: RankedBy,
    /// Best first.
    pub places: Vec<Place>,
}

/// Results of all steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Each kind of step on each target, in the order of the first round.
    pub steps: Vec<StepResult>,
    /// Capacity of each target from its closed loops; `None` without a valid round.
    pub capacity: Vec<Option<Capacity>>,
    /// Rankings of several targets.
    pub rankings: Vec<Ranking>,
}

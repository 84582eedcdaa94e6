//! Results of the steps of a load, derived whenever a run is read.

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
    /// Nothing limited the load, because the requested rate was reached.
    Rate,
    /// The server under load.
    Server,
    /// The server's queue of connections that it has not yet accepted (`listen` backlog) was full.
    AcceptQueue,
    /// Another server for which the server waits, such as a backend or a database.
    Backend,
    /// A CPU quota of the server's control group was used up.
    Quota,
    /// The load generator itself could not send more requests.
    Generator,
    /// The network link of the generator.
    Network,
    /// The schedule could not be kept, because there were too few connections or the generator was late.
    Schedule,
    /// The generator's machine had no free local port.
    Ports,
    /// Unknown, because the observations do not show the cause.
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

/// The limiting cause with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limit {
    /// Cause that limited the load.
    pub who: Limited,
    /// Evidence as figures, without interpretation.
    pub evidence: String,
}

/// Latency percentiles of all requests. A percentile is `None` if it falls among the failed requests, or if there are
/// too few requests.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Percentiles {
    /// Median latency.
    pub p50: Option<Nanos>,
    /// 90th percentile of the latency; needs ten requests.
    pub p90: Option<Nanos>,
    /// 99th percentile of the latency; needs a hundred requests.
    pub p99: Option<Nanos>,
    /// 99.9th percentile of the latency; needs a thousand requests.
    pub p999: Option<Nanos>,
}

/// Results of a step, combined over all its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepResult {
    /// Index of the target's URL among the URLs of the load.
    pub target: usize,
    /// Maximum number of connections to the server.
    pub connections: u32,
    /// Schedule of the first round.
    pub pace: Pace,
    /// Rate as a fraction of the measured capacity; present only in an open loop.
    pub share: Option<f64>,
    /// Number of rounds that count.
    pub rounds: u32,
    /// Number of rounds that are excluded, because they are void.
    pub rounds_void: u32,
    /// Successful responses per second; `None` without a valid round.
    pub rate: Option<Estimate>,
    /// Bytes of response bodies per second.
    pub bytes_per_s: f64,
    /// Latency percentiles. In an open loop, the latency starts at the intended send time, so it includes delays by
    /// earlier requests.
    pub latency: Percentiles,
    /// Percentiles of the latency from the first byte sent until the complete response.
    pub service: Percentiles,
    /// All latencies of the valid rounds.
    pub histogram: Histogram,
    /// Rate and latency over time, for each round in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<OverTime>,
    /// Number of requests that were due.
    pub due: u64,
    /// Number of requests that failed or were never sent.
    pub failed: u64,
    /// Failed requests in all rounds, by kind of failure.
    pub failures: Vec<Failures>,
    /// Responses with an unexpected status, by status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// Contributions of the load generators; empty if there is only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<Given>,
    /// Mean number of CPUs that the server used.
    pub server_cpus: Option<f64>,
    /// Mean number of CPUs that the load generator used.
    pub generator_cpus: f64,
    /// Successful responses for each second of CPU time that the server used.
    pub per_cpu_second: Option<Estimate>,
    /// Successful responses per second, divided by the CPU use of the server in percent of all CPUs of its machine.
    /// Some published studies report this figure.
    pub per_percent: Option<f64>,
    /// Bits per second on the link, in the direction with more traffic.
    pub link: Option<f64>,
    /// Cause that limited the load.
    pub limit: Limit,
    /// Doubts (reasons to distrust a figure) of all rounds, each listed once.
    pub doubts: Vec<Doubt>,
}

/// Rate and latency of one round over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OverTime {
    /// Number of the round, counted from 0.
    pub round: u32,
    /// Successful responses per second of the whole round.
    #[serde(default)]
    pub rate: f64,
    /// About forty points over the measured window. Empty for runs stored by versions before 0.3.
    pub points: Vec<Point>,
}

/// Contribution of one of several generators, averaged over the rounds in the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Given {
    /// Machine of the generator, as the user wrote it.
    pub generator: String,
    /// Successful responses per second that this generator received.
    pub rate: f64,
    /// Fraction of all successful responses that this generator received, 0 to 1.
    pub share: f64,
    /// Mean number of CPUs that the generator used.
    pub cpus: f64,
    /// Number of requests of this generator that failed or were never sent, over all rounds.
    pub failed: u64,
}

/// Capacity of a server: its highest rate of successful responses in a closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Smallest number of connections whose rate is within 5 % of the capacity.
    pub connections: u32,
    /// Successful responses per second with this number of connections.
    pub rate: f64,
    /// Confidence interval of the rate over the rounds; `None` with fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Whether the rate was still rising: the largest tested number of connections gave over 5 % more than any smaller
    /// number. The capacity is then at least `rate`.
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

/// A target's place in a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// Index of the target's URL among the URLs of the load.
    pub target: usize,
    /// Figure by which the target is ranked.
    pub value: Estimate,
    /// Whether the figure differs significantly from the figure of the next place; `None` for the last place.
    pub apart: Option<bool>,
}

/// Ranking of targets by one figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// Figure by which the targets are ranked.
    pub by: RankedBy,
    /// Places of the targets, best first.
    pub places: Vec<Place>,
}

/// Results of all steps of a run, computed from its samples.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Results of each kind of step on each target, in the order of the first round.
    pub steps: Vec<StepResult>,
    /// Capacity of each target from its closed loops; `None` without a valid round.
    pub capacity: Vec<Option<Capacity>>,
    /// Rankings of the targets; empty if there is only one target.
    pub rankings: Vec<Ranking>,
}

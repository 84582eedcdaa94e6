//! What the steps of a load mean, derived from them on read.

use super::{Failures, Pace, Point, StatusCount};
use crate::doubt::Doubt;
use crate::histogram::Histogram;
use crate::result::{Estimate, Interval};
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Who kept a load from going faster.
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
    /// Nobody: the rate that was asked for was served.
    Rate,
    /// The server.
    Server,
    /// The server's queue of connections that wait to be accepted (`listen` backlog).
    AcceptQueue,
    /// What the server waits for: another server, such as a backend or a database.
    Backend,
    /// A CPU quota of the server's control group.
    Quota,
    /// assay itself.
    Generator,
    /// The link.
    Network,
    /// The schedule could not be kept: too few connections, or a generator that was not there in time.
    Schedule,
    /// Local ports of the generator's machine.
    Ports,
    /// It cannot be told from what was seen.
    NotKnown,
}

impl Limited {
    /// For people.
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

/// Who limited, and what shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Limit {
    /// Who.
    pub who: Limited,
    /// Figures, not opinions.
    pub evidence: String,
}

/// Latencies that shares of all requests did not exceed. One that is missing falls among the requests
/// that failed, or rests on too few.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Percentiles {
    /// Half of the requests.
    pub p50: Option<Nanos>,
    /// Nine in ten; at least ten requests.
    pub p90: Option<Nanos>,
    /// At least a hundred.
    pub p99: Option<Nanos>,
    /// At least a thousand.
    pub p999: Option<Nanos>,
}

/// One shape of a load on one target, over its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StepResult {
    /// Which of the URLs, from 0.
    pub target: usize,
    /// Connections, at most.
    pub connections: u32,
    /// When requests were sent; of the first round.
    pub pace: Pace,
    /// In an open loop: the share of the capacity.
    pub share: Option<f64>,
    /// Rounds that count.
    pub rounds: u32,
    /// Rounds that are void.
    pub rounds_void: u32,
    /// Good answers per second; none when no round counts.
    pub rate: Option<Estimate>,
    /// Bytes of bodies per second.
    pub bytes_per_s: f64,
    /// From the intended time in an open loop.
    pub latency: Percentiles,
    /// From the first byte out.
    pub service: Percentiles,
    /// All latencies of the rounds that count.
    pub histogram: Histogram,
    /// Rate and latency over time, of each round that is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<OverTime>,
    /// Requests due.
    pub due: u64,
    /// Of these, failed or never sent.
    pub failed: u64,
    /// By kind.
    pub failures: Vec<Failures>,
    /// Answers with an unexpected status, by status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statuses: Vec<StatusCount>,
    /// What each of several generators gave.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<Given>,
    /// CPUs that the server used, on average.
    pub server_cpus: Option<f64>,
    /// CPUs that the generator used.
    pub generator_cpus: f64,
    /// Good answers for each second of the server's CPU time.
    pub per_cpu_second: Option<Estimate>,
    /// Good answers per second for each percent of all CPUs of the machine that the server used, the
    /// figure that studies publish.
    pub per_percent: Option<f64>,
    /// Bits per second on the link, the busier direction.
    pub link: Option<f64>,
    /// Who limited.
    pub limit: Limit,
    /// Doubts of all rounds, each once.
    pub doubts: Vec<Doubt>,
}

/// Rate and latency of one round over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OverTime {
    /// From 0.
    pub round: u32,
    /// About forty; none in runs stored before 0.3.
    pub points: Vec<Point>,
}

/// What one of several generators gave, on average over the rounds that are shown.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Given {
    /// Which machine, as the user calls it.
    pub generator: String,
    /// Good answers per second that it had.
    pub rate: f64,
    /// Share of all good answers.
    pub share: f64,
    /// CPUs that it used for it.
    pub cpus: f64,
    /// Requests of its that failed or were never sent, in all rounds.
    pub failed: u64,
}

/// How much a server can do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Capacity {
    /// Fewest connections that reach it within 5 %.
    pub connections: u32,
    /// Good answers per second there.
    pub rate: f64,
    /// Interval of that rate over the rounds; none with fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The most connections that were tried brought more than 5 % over fewer: the server can do more than
    /// `rate`, which then is a lower bound.
    #[serde(default)]
    pub rising: bool,
}

/// What a ranking goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RankedBy {
    /// Good answers per second at capacity.
    Capacity,
    /// Good answers per CPU-second at capacity.
    Efficiency,
}

/// A place in a ranking.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Place {
    /// Which of the URLs.
    pub target: usize,
    /// Its figure.
    pub value: Estimate,
    /// Whether it is told apart from the next place; none for the last.
    pub apart: Option<bool>,
}

/// Targets in order, best first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Ranking {
    /// By what.
    pub by: RankedBy,
    /// Best first.
    pub places: Vec<Place>,
}

/// All that steps mean.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Judged {
    /// Each shape on each target, in the order of the first round.
    pub steps: Vec<StepResult>,
    /// Of each target, from its closed loops; none when no round counts.
    pub capacity: Vec<Option<Capacity>>,
    /// Of several targets.
    pub rankings: Vec<Ranking>,
}

//! A sample: one execution of one workload on one target, stored raw.

mod counters;
mod written;

pub use counters::{ArcDelta, Counters, CpuDelta, DeviceDelta, Throttle, ZilDelta};

use crate::histogram::Histogram;
use crate::target::FileState;
use crate::units::{Bytes, Nanos};
use crate::web::Step;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One execution of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sample {
    /// `Workload::name` within the plan; the job name for an imported result.
    pub workload: String,
    /// `TargetInfo::name`.
    pub target: String,
    /// 1-based round.
    pub round: u32,
    /// 0-based position in `Plan::order`.
    pub slot: u32,
    /// Wall clock when the load generator was started.
    pub started: jiff::Timestamp,
    /// From the start of the process to its end, by the monotonic clock.
    pub wall: Nanos,
    /// How it ended.
    pub outcome: Outcome,
    /// Load generator and version as it says itself: `fio-3.33`.
    pub tool: String,
    /// One entry per fio job (thread), never grouped; one for a load of assay's own.
    #[serde(alias = "jobs")]
    pub workers: Vec<Worker>,
    /// Kernel counters over the sample; empty for imported results.
    #[serde(default)]
    pub counters: Counters,
    /// What the tested file looked like before the sample, when it could be seen.
    #[serde(default)]
    pub file: Option<FileState>,
    /// Rate over time, all jobs together.
    #[serde(default)]
    pub series: Vec<RatePoint>,
}

/// How a sample ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Outcome {
    /// The load generator ended by itself without error.
    Completed,
    /// The user interrupted it.
    Interrupted,
    /// It failed.
    Failed {
        /// One line: what, and the way out.
        error: String,
    },
    /// It was killed because it ran far longer than asked.
    TimedOut {
        /// Wall time until it was killed.
        after: Nanos,
    },
}

/// What an operation is.
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
pub enum Operation {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A trim.
    Trim,
    /// An fsync or fdatasync call that follows writes.
    Flush,
    /// A request that was answered.
    Request,
    /// A login, from connecting to logging out.
    Login,
    /// A file that was made.
    File,
    /// A command, from start to end.
    Run,
    /// Nothing at all.
    Nothing,
}

impl Operation {
    /// Whether it moves data from or to a file or device.
    #[must_use]
    pub fn is_io(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Trim | Self::Flush)
    }
}

/// What one worker of a load did: an fio job (thread), or all connections of a load of assay's own.
/// In base units, whatever the load generator printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "written::Worker")]
#[schemars(!from)]
pub struct Worker {
    /// fio's job name; the load's for others.
    pub name: String,
    /// Measured time.
    pub runtime: Nanos,
    /// What was done, by kind; a kind of which there was nothing is not there.
    pub operations: BTreeMap<Operation, Operations>,
    /// CPU time of the worker in user mode, percent of one CPU; 0 when nobody says.
    pub usr_cpu: f64,
    /// CPU time of the worker in the kernel, percent of one CPU.
    pub sys_cpu: f64,
    /// What fio alone tells; empty for other loads.
    #[serde(skip_serializing_if = "FioJob::is_empty")]
    pub fio: FioJob,
    /// What a load of HTTP requests saw of the server, the link, this machine and itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<Step>>,
}

impl Worker {
    /// The same with these operations.
    #[must_use]
    pub fn with(mut self, kind: Operation, done: Operations) -> Self {
        self.operations.insert(kind, done);
        self
    }

    /// Operations of a kind, when there were any.
    #[must_use]
    pub fn of(&self, kind: Operation) -> Option<&Operations> {
        self.operations.get(&kind)
    }

    /// Reads, when there were any.
    #[must_use]
    pub fn read(&self) -> Option<&Operations> {
        self.of(Operation::Read)
    }

    /// Writes, when there were any.
    #[must_use]
    pub fn write(&self) -> Option<&Operations> {
        self.of(Operation::Write)
    }

    /// Trims, when there were any.
    #[must_use]
    pub fn trim(&self) -> Option<&Operations> {
        self.of(Operation::Trim)
    }

    /// Flushes, when there were any. They have a count and a latency alone.
    #[must_use]
    pub fn flush(&self) -> Option<&Operations> {
        self.of(Operation::Flush)
    }

    /// What the load was asked to do: everything but the flushes that follow writes, and trims.
    pub fn asked(&self) -> impl Iterator<Item = (Operation, &Operations)> {
        let follows = |kind: &Operation| matches!(kind, Operation::Flush | Operation::Trim);
        self.operations
            .iter()
            .map(|(kind, done)| (*kind, done))
            .filter(move |(kind, _)| !follows(kind))
    }
}

/// What fio alone tells of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FioJob {
    /// Effective options: global section, then the job's own. Values as fio echoes them; an option
    /// without a value maps to an empty string.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Options that are not in `options` are unknown: the result was not JSON, which echoes them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// errno, 0 when fine.
    #[serde(default)]
    pub error: i32,
    /// Context switches.
    #[serde(default)]
    pub ctx: u64,
    /// Share of I/Os (percent) submitted while this many were in flight: keys `1`, `2`, `4`, …,
    /// `>=64`, as fio prints them.
    #[serde(default)]
    pub iodepth_level: BTreeMap<String, f64>,
    /// `groupid` of fio's JSON.
    #[serde(default)]
    pub group: u32,
}

impl FioJob {
    /// Whether fio told nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Operations {
    /// How many ended well.
    #[serde(alias = "ios")]
    pub count: u64,
    /// Bytes moved.
    #[serde(default)]
    pub bytes: Bytes,
    /// How many failed; they are in no other figure.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Time in which they were done.
    #[serde(default)]
    pub runtime: Nanos,
    /// Operations per second; 0 when the load generator does not say.
    #[serde(default, alias = "iops")]
    pub per_s: f64,
    /// Bytes per second; 0 when the load generator does not say.
    #[serde(default)]
    pub bytes_per_s: f64,
    /// Submission latency.
    #[serde(default)]
    pub slat: Latency,
    /// Completion latency: from submission to completion.
    #[serde(default)]
    pub clat: Latency,
    /// Total latency.
    #[serde(default)]
    pub lat: Latency,
    /// Those that moved less than asked.
    #[serde(default, alias = "short_ios", skip_serializing_if = "is_zero")]
    pub short: u64,
    /// Those that were dropped.
    #[serde(default, alias = "drop_ios", skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Summary of a latency, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Latency {
    /// How many; 0 when fio did not say.
    pub n: u64,
    /// Smallest.
    pub min: u64,
    /// Largest: exact, also above the 17.1 s where fio's histogram ends.
    pub max: u64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Percentiles as fio prints them: percent and nanoseconds. Used when there is no histogram.
    #[serde(default)]
    pub percentiles: Vec<(f64, u64)>,
    /// Histogram (JSON+ only).
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub histogram: Histogram,
}

impl Latency {
    /// The percentile from the histogram when there is one, else the printed one.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        self.histogram.percentile(percent).or_else(|| {
            self.percentiles
                .iter()
                .find(|(p, _)| (p - percent).abs() < 1e-6)
                .map(|&(_, ns)| ns)
        })
    }
}

/// One point of rate over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "written::RatePoint")]
#[schemars(!from)]
pub struct RatePoint {
    /// Milliseconds since measuring began, end of the interval.
    pub at_ms: u64,
    /// What was done in the interval, by operation.
    pub rates: BTreeMap<Operation, Rate>,
}

/// How fast operations of a kind were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rate {
    /// Operations per second.
    pub per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

impl RatePoint {
    /// Operations per second, of all kinds.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        self.sum(|rate| rate.per_s)
    }

    /// Bytes per second, of all kinds.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.sum(|rate| rate.bytes_per_s)
    }

    fn sum(&self, of: impl Fn(&Rate) -> f64) -> f64 {
        self.rates.values().map(of).fold(0.0, |all, one| all + one)
    }
}

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
    /// Name of the workload in the plan (`Workload::name`). For an imported result, the name of the job.
    pub workload: String,
    /// Name of the target (`TargetInfo::name`).
    pub target: String,
    /// Number of the round, counted from 1.
    pub round: u32,
    /// Position in `Plan::order`, counted from 0.
    pub slot: u32,
    /// Wall-clock time at which the load generator started.
    pub started: jiff::Timestamp,
    /// Duration of the load generator's process, by the monotonic clock.
    pub wall: Nanos,
    /// How the sample ended.
    pub outcome: Outcome,
    /// Load generator with its version, such as `fio-3.33`.
    pub tool: String,
    /// Workers of the load. For fio, there is one for each job (thread), never grouped. assay's own loads have exactly
    /// one.
    #[serde(alias = "jobs")]
    pub workers: Vec<Worker>,
    /// Kernel counters during the sample; empty for imported results.
    #[serde(default)]
    pub counters: Counters,
    /// State of the tested file before the sample; `None` if it could not be read.
    #[serde(default)]
    pub file: Option<FileState>,
    /// Rate over time, summed over all jobs.
    #[serde(default)]
    pub series: Vec<RatePoint>,
}

/// How a sample ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "state")]
pub enum Outcome {
    /// The load generator ended without an error.
    Completed,
    /// The user interrupted the sample.
    Interrupted,
    /// The load ended with an error.
    Failed {
        /// Cause of the failure and how to avoid it, on one line.
        error: String,
    },
    /// assay killed the load because it ran much longer than requested.
    TimedOut {
        /// Wall time until the load was killed.
        after: Nanos,
    },
}

/// Kind of operation.
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
    /// A trim (discard) request.
    Trim,
    /// An fsync or fdatasync call after writes.
    Flush,
    /// An HTTP request with its response.
    Request,
    /// A login, from connect to logout.
    Login,
    /// The creation of a file.
    File,
    /// A run of a command, from start to end.
    Run,
    /// No operation, because the load does nothing.
    Nothing,
}

impl Operation {
    /// Returns whether the operation transfers data from or to a file or device.
    #[must_use]
    pub fn is_io(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Trim | Self::Flush)
    }
}

/// Operations of one worker of a load. A worker is a fio job (thread), or all connections of one of assay's own loads.
/// Values are in base units, whatever the load generator is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "written::Worker")]
#[schemars(!from)]
pub struct Worker {
    /// Name of the fio job, or of the load.
    pub name: String,
    /// Duration of the measurement.
    pub runtime: Nanos,
    /// Operations by kind; kinds without operations are absent.
    pub operations: BTreeMap<Operation, Operations>,
    /// CPU time of the worker in user mode, as a percentage of one CPU; 0 if unknown.
    pub usr_cpu: f64,
    /// CPU time of the worker in the kernel, as a percentage of one CPU; 0 if unknown.
    pub sys_cpu: f64,
    /// Values that only fio reports; empty for other load generators.
    #[serde(skip_serializing_if = "FioJob::is_empty")]
    pub fio: FioJob,
    /// Observations during an HTTP load about the server, the network connection, this machine and the load generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Box<Step>>,
}

impl Worker {
    /// Returns the worker with operations of one more kind.
    #[must_use]
    pub fn with(mut self, kind: Operation, done: Operations) -> Self {
        self.operations.insert(kind, done);
        self
    }

    /// Returns the operations of a kind, if there were any.
    #[must_use]
    pub fn of(&self, kind: Operation) -> Option<&Operations> {
        self.operations.get(&kind)
    }

    /// Returns the reads, if there were any.
    #[must_use]
    pub fn read(&self) -> Option<&Operations> {
        self.of(Operation::Read)
    }

    /// Returns the writes, if there were any.
    #[must_use]
    pub fn write(&self) -> Option<&Operations> {
        self.of(Operation::Write)
    }

    /// Returns the trims, if there were any.
    #[must_use]
    pub fn trim(&self) -> Option<&Operations> {
        self.of(Operation::Trim)
    }

    /// Returns the flushes, if there were any. They have only a count and a latency.
    #[must_use]
    pub fn flush(&self) -> Option<&Operations> {
        self.of(Operation::Flush)
    }

    /// Returns the operations that the workload requests: all kinds except trims, and except the flushes after writes.
    pub fn asked(&self) -> impl Iterator<Item = (Operation, &Operations)> {
        let follows = |kind: &Operation| matches!(kind, Operation::Flush | Operation::Trim);
        self.operations
            .iter()
            .map(|(kind, done)| (*kind, done))
            .filter(move |(kind, _)| !follows(kind))
    }
}

/// Values of a job that only fio reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FioJob {
    /// Effective options: options of the job override those of the global section. Values are as fio prints them; an
    /// option without a value has an empty string.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// Whether an option that is missing in `options` is unknown. This is the case if the result was not JSON, because
    /// only JSON contains the options.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Error number (errno); 0 for success.
    #[serde(default)]
    pub error: i32,
    /// Number of context switches.
    #[serde(default)]
    pub ctx: u64,
    /// Percentage of I/Os that were submitted at each queue depth. Keys are as fio prints them: `1`, `2`, `4`, …,
    /// `>=64`.
    #[serde(default)]
    pub iodepth_level: BTreeMap<String, f64>,
    /// Number of the reporting group to which the job belongs (`groupid` of fio's JSON).
    #[serde(default)]
    pub group: u32,
}

impl FioJob {
    /// Returns whether fio reported none of these values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Counts, rates and latencies of the operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Operations {
    /// Number of successful operations.
    #[serde(alias = "ios")]
    pub count: u64,
    /// Number of transferred bytes.
    #[serde(default)]
    pub bytes: Bytes,
    /// Number of failed operations. No other figure includes them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors: u64,
    /// Duration in which the operations were counted.
    #[serde(default)]
    pub runtime: Nanos,
    /// Operations per second; 0 if the load generator does not report this rate.
    #[serde(default, alias = "iops")]
    pub per_s: f64,
    /// Bytes per second; 0 if the load generator does not report this rate.
    #[serde(default)]
    pub bytes_per_s: f64,
    /// Submission latency: time to submit an I/O to the kernel.
    #[serde(default)]
    pub slat: Latency,
    /// Completion latency: from submission to completion.
    #[serde(default)]
    pub clat: Latency,
    /// Total latency: from the creation of the I/O to its completion.
    #[serde(default)]
    pub lat: Latency,
    /// Number of operations that transferred fewer bytes than requested.
    #[serde(default, alias = "short_ios", skip_serializing_if = "is_zero")]
    pub short: u64,
    /// Number of operations that fio dropped (`drop_ios`).
    #[serde(default, alias = "drop_ios", skip_serializing_if = "is_zero")]
    pub dropped: u64,
    /// Figures that a command printed, in base units, one for each run of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<f64>,
    /// First error message that a command printed in a run that succeeded by its exit status. `None` without such a
    /// message, and for loads that run no command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complaint: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Summary of a latency in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Latency {
    /// Number of measured latencies; 0 if fio reported none.
    pub n: u64,
    /// Smallest latency.
    pub min: u64,
    /// Largest latency. It is exact even above 17.1 s, where fio's histogram ends.
    pub max: u64,
    /// Mean latency.
    pub mean: f64,
    /// Standard deviation of the latency.
    pub stddev: f64,
    /// Percentiles as fio prints them, as (percentage, nanoseconds). Used only if there is no histogram.
    #[serde(default)]
    pub percentiles: Vec<(f64, u64)>,
    /// Histogram of the latencies; only fio's JSON+ contains one.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub histogram: Histogram,
}

impl Latency {
    /// Returns a percentile in nanoseconds, from the histogram if there is one, else as fio printed it.
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

/// Rates in one interval of a sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "written::RatePoint")]
#[schemars(!from)]
pub struct RatePoint {
    /// End of the interval, in milliseconds since the measurement started.
    pub at_ms: u64,
    /// Rates during the interval by kind of operation.
    pub rates: BTreeMap<Operation, Rate>,
}

/// Rate of operations of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Rate {
    /// Operations per second.
    pub per_s: f64,
    /// Bytes per second.
    pub bytes_per_s: f64,
}

impl RatePoint {
    /// Returns the operations per second, summed over all kinds.
    #[must_use]
    pub fn per_s(&self) -> f64 {
        self.sum(|rate| rate.per_s)
    }

    /// Returns the bytes per second, summed over all kinds.
    #[must_use]
    pub fn bytes_per_s(&self) -> f64 {
        self.sum(|rate| rate.bytes_per_s)
    }

    fn sum(&self, of: impl Fn(&Rate) -> f64) -> f64 {
        self.rates.values().map(of).fold(0.0, |all, one| all + one)
    }
}

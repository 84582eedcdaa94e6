//! A sample: one execution of one workload on one target, stored raw.

use crate::histogram::Histogram;
use crate::target::FileState;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One execution of one workload on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    /// One entry per fio job (thread); never grouped.
    pub jobs: Vec<JobResult>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// What one fio job reports, in base units whatever the fio version printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JobResult {
    /// fio's job name.
    pub name: String,
    /// Effective options: global section, then the job's own. Values as fio echoes them; an option
    /// without a value maps to an empty string.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// errno, 0 when fine.
    #[serde(default)]
    pub error: i32,
    /// Measured time of the job.
    #[serde(default)]
    pub runtime: Nanos,
    /// Reads, when there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<IoStats>,
    /// Writes, when there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write: Option<IoStats>,
    /// Trims, when there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trim: Option<IoStats>,
    /// fsync/fdatasync calls, when there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync: Option<Latency>,
    /// CPU time of the job in user mode, percent of one CPU.
    #[serde(default)]
    pub usr_cpu: f64,
    /// CPU time of the job in the kernel, percent of one CPU.
    #[serde(default)]
    pub sys_cpu: f64,
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

/// One direction of a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IoStats {
    /// Bytes moved.
    pub bytes: Bytes,
    /// I/Os completed.
    pub ios: u64,
    /// Time in which they were.
    pub runtime: Nanos,
    /// I/Os per second.
    pub iops: f64,
    /// Bytes per second.
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
    /// I/Os that moved less than asked.
    #[serde(default)]
    pub short_ios: u64,
    /// I/Os dropped.
    #[serde(default)]
    pub drop_ios: u64,
}

/// Summary of a latency, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatePoint {
    /// Milliseconds since measuring began, end of the interval.
    pub at_ms: u64,
    /// Reads per second in the interval.
    pub read_iops: f64,
    /// Writes per second in the interval.
    pub write_iops: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub write_bytes_per_s: f64,
}

/// Kernel counters over one sample: differences between its start and its end (layout excluded,
/// ramp included).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Time between the two readings.
    #[serde(default)]
    pub elapsed: Nanos,
    /// The devices directly under the target (`TargetInfo::devices`), from /proc/diskstats.
    #[serde(default)]
    pub devices: Vec<DeviceDelta>,
    /// The whole machine's CPU, from /proc/stat.
    #[serde(default)]
    pub cpu: Option<CpuDelta>,
    /// CPU time of the load generator's process (user + system), from wait4.
    #[serde(default)]
    pub tool_cpu: Option<Nanos>,
    /// ARC counters, from /proc/spl/kstat/zfs/arcstats.
    #[serde(default)]
    pub arc: Option<ArcDelta>,
    /// ZFS intent log counters of all pools together, from /proc/spl/kstat/zfs/zil.
    #[serde(default)]
    pub zil: Option<ZilDelta>,
    /// Thermal and frequency evidence.
    #[serde(default)]
    pub throttle: Option<Throttle>,
    /// MemAvailable before the sample.
    #[serde(default)]
    pub mem_available: Option<Bytes>,
}

/// Differences of one line of /proc/diskstats (Documentation/admin-guide/iostats.rst).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceDelta {
    /// Kernel name.
    pub name: String,
    /// Reads completed.
    pub reads: u64,
    /// Bytes read (sectors × 512).
    pub read_bytes: Bytes,
    /// Milliseconds spent reading, summed over requests.
    pub read_ms: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub write_bytes: Bytes,
    /// Milliseconds spent writing, summed over requests.
    pub write_ms: u64,
    /// Milliseconds in which at least one request was in flight.
    pub busy_ms: u64,
    /// Milliseconds × requests in flight.
    pub weighted_ms: u64,
    /// Flush requests completed. Those of a partition are its whole disk's: the kernel counts them
    /// there alone (block/blk-flush.c, `blk_account_io_flush`).
    pub flushes: u64,
    /// Milliseconds spent flushing.
    pub flush_ms: u64,
    /// Discards completed.
    pub discards: u64,
}

/// CPU time of the whole machine as shares of all CPU time in the interval, 0–1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuDelta {
    /// CPUs online.
    pub cpus: u32,
    /// User, including nice.
    pub user: f64,
    /// Kernel.
    pub system: f64,
    /// Interrupts and soft interrupts.
    pub irq: f64,
    /// Idle with I/O outstanding.
    pub iowait: f64,
    /// Taken by the hypervisor.
    pub steal: f64,
    /// Idle.
    pub idle: f64,
    /// Busy share of the busiest single CPU.
    pub busiest: f64,
}

/// ZFS ARC counters over the sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArcDelta {
    /// Demand data hits.
    pub demand_data_hits: u64,
    /// Demand data misses.
    pub demand_data_misses: u64,
    /// Data read ahead of the demand.
    #[serde(default)]
    pub prefetch_data_misses: u64,
    /// Misses that a cache device (L2ARC) answered.
    #[serde(default)]
    pub l2_hits: u64,
    /// ARC size at the end.
    pub size: Bytes,
    /// ARC maximum (`c_max`).
    pub c_max: Bytes,
}

/// ZFS intent log (ZIL) counters over the sample (OpenZFS include/sys/zil.h, `zil_stats_t`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZilDelta {
    /// Times that somebody waited for what was logged to be durable.
    pub commits: u64,
    /// Transactions written to the log.
    pub itxs: u64,
    /// Bytes of them in log blocks on the pool's own devices.
    pub normal_bytes: Bytes,
    /// Bytes of them in log blocks on a log device.
    pub slog_bytes: Bytes,
    /// Bytes of them written in place, with a pointer in the log.
    pub indirect_bytes: Bytes,
}

/// Evidence of throttling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throttle {
    /// Increase of `thermal_throttle/core_throttle_count` over all CPUs.
    pub cpu_events: Option<u64>,
    /// Mean current over maximum frequency, 0–1.
    pub cpu_freq_share: Option<f64>,
    /// Hottest NVMe composite temperature seen, °C, with its limit (`temp1_max`).
    pub nvme_celsius: Option<(f64, f64)>,
}

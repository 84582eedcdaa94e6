//! Kernel counters during a sample.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Kernel counters of one sample: differences between the start and the end of the load, including the ramp but not the
/// layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counters {
    /// Time between the two readings of the counters.
    #[serde(default)]
    pub elapsed: Nanos,
    /// The devices directly under the target (`TargetInfo::devices`), from /proc/diskstats.
    #[serde(default)]
    pub devices: Vec<DeviceDelta>,
    /// CPU time of the whole machine, from /proc/stat.
    #[serde(default)]
    pub cpu: Option<CpuDelta>,
    /// CPU time of the load generator's process (user + system), from wait4.
    #[serde(default)]
    pub tool_cpu: Option<Nanos>,
    /// ARC counters, from /proc/spl/kstat/zfs/arcstats.
    #[serde(default)]
    pub arc: Option<ArcDelta>,
    /// Counters of the ZFS intent log, summed over all pools, from /proc/spl/kstat/zfs/zil.
    #[serde(default)]
    pub zil: Option<ZilDelta>,
    /// Evidence of thermal throttling and frequency limits.
    #[serde(default)]
    pub throttle: Option<Throttle>,
    /// Available memory (MemAvailable) before the sample, in bytes.
    #[serde(default)]
    pub mem_available: Option<Bytes>,
}

/// Differences of one line of /proc/diskstats (Documentation/admin-guide/iostats.rst).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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
    /// Number of requests in flight, summed over all milliseconds.
    pub weighted_ms: u64,
    /// Number of completed flush requests. For a partition: those of the whole disk, because the kernel counts flushes
    /// only there (block/blk-flush.c, `blk_account_io_flush`).
    pub flushes: u64,
    /// Milliseconds spent flushing.
    pub flush_ms: u64,
    /// Discards completed.
    pub discards: u64,
}

/// CPU time of the whole machine as fractions of all CPU time in the interval, 0–1.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuDelta {
    /// Number of CPUs online.
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
    /// Busy fraction of the busiest single CPU, 0–1.
    pub busiest: f64,
}

/// ZFS ARC counters over the sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ArcDelta {
    /// Demand data hits.
    pub demand_data_hits: u64,
    /// Demand data misses.
    pub demand_data_misses: u64,
    /// Prefetched data that was missing in the cache.
    #[serde(default)]
    pub prefetch_data_misses: u64,
    /// Misses that a cache device (L2ARC) served.
    #[serde(default)]
    pub l2_hits: u64,
    /// ARC size at the end.
    pub size: Bytes,
    /// ARC maximum (`c_max`).
    pub c_max: Bytes,
}

/// ZFS intent log (ZIL) counters over the sample (OpenZFS include/sys/zil.h, `zil_stats_t`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ZilDelta {
    /// Number of waits until logged data were durable.
    pub commits: u64,
    /// Transactions written to the log.
    pub itxs: u64,
    /// Bytes of these transactions in log blocks on the pool's own devices.
    pub normal_bytes: Bytes,
    /// Bytes of these transactions in log blocks on a separate log device (SLOG).
    pub slog_bytes: Bytes,
    /// Bytes of these transactions that were written in place, with only a pointer in the log.
    pub indirect_bytes: Bytes,
}

/// Evidence of throttling.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Throttle {
    /// Increase of `thermal_throttle/core_throttle_count` over all CPUs.
    pub cpu_events: Option<u64>,
    /// Mean current frequency ÷ maximum frequency, 0–1.
    pub cpu_freq_share: Option<f64>,
    /// Highest composite temperature of an NVMe device in °C, and the limit of this device (`temp1_max`).
    pub nvme_celsius: Option<(f64, f64)>,
}

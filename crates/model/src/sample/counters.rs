//! Kernel counters that are read before and after a sample.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Kernel counters of one sample: differences between the start and the end of the load. The ramp is included; the
/// creation of the test file is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counters {
    /// Time between reading the counters before and after the load.
    #[serde(default)]
    pub elapsed: Nanos,
    /// Devices directly under the target (`TargetInfo::devices`), from /proc/diskstats.
    #[serde(default)]
    pub devices: Vec<DeviceDelta>,
    /// CPU time of the whole machine, from /proc/stat.
    #[serde(default)]
    pub cpu: Option<CpuDelta>,
    /// CPU time of the load generator's process (user and system), from wait4.
    #[serde(default)]
    pub tool_cpu: Option<Nanos>,
    /// Counters of the ARC, from /proc/spl/kstat/zfs/arcstats.
    #[serde(default)]
    pub arc: Option<ArcDelta>,
    /// Counters of the ZFS intent log, summed over all pools, from /proc/spl/kstat/zfs/zil.
    #[serde(default)]
    pub zil: Option<ZilDelta>,
    /// Evidence of thermal throttling and of frequency limits.
    #[serde(default)]
    pub throttle: Option<Throttle>,
    /// Available memory (MemAvailable) before the sample, in bytes.
    #[serde(default)]
    pub mem_available: Option<Bytes>,
}

/// Differences between two readings of a line in /proc/diskstats (Documentation/admin-guide/iostats.rst).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DeviceDelta {
    /// Kernel name of the device.
    pub name: String,
    /// Number of completed reads.
    pub reads: u64,
    /// Number of bytes read (sectors × 512).
    pub read_bytes: Bytes,
    /// Milliseconds spent reading, summed over requests.
    pub read_ms: u64,
    /// Number of completed writes.
    pub writes: u64,
    /// Number of bytes written (sectors × 512).
    pub write_bytes: Bytes,
    /// Milliseconds spent writing, summed over requests.
    pub write_ms: u64,
    /// Milliseconds in which at least one request was in flight.
    pub busy_ms: u64,
    /// Number of requests in flight, summed over all milliseconds of the interval.
    pub weighted_ms: u64,
    /// Number of completed flush requests. A partition has the number of its whole disk, because the kernel counts
    /// flushes only there (block/blk-flush.c, `blk_account_io_flush`).
    pub flushes: u64,
    /// Milliseconds spent flushing.
    pub flush_ms: u64,
    /// Number of completed discard requests.
    pub discards: u64,
}

/// CPU time of the whole machine. Each kind is a fraction from 0 to 1 of all CPU time in the interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CpuDelta {
    /// Number of CPUs online.
    pub cpus: u32,
    /// Time in user mode, including niced processes.
    pub user: f64,
    /// Time in the kernel.
    pub system: f64,
    /// Time in interrupts and soft interrupts.
    pub irq: f64,
    /// Idle time while I/O was outstanding.
    pub iowait: f64,
    /// Time that the hypervisor took for other guests.
    pub steal: f64,
    /// Idle time without outstanding I/O.
    pub idle: f64,
    /// Busy fraction of the busiest CPU, from 0 to 1.
    pub busiest: f64,
}

/// Counters of the ZFS ARC during the sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ArcDelta {
    /// Number of demand reads of data that the ARC served.
    pub demand_data_hits: u64,
    /// Number of demand reads of data that the ARC did not contain.
    pub demand_data_misses: u64,
    /// Number of prefetch reads of data that the ARC did not contain.
    #[serde(default)]
    pub prefetch_data_misses: u64,
    /// Number of ARC misses that a cache device (L2ARC) served.
    #[serde(default)]
    pub l2_hits: u64,
    /// Size of the ARC at the end of the sample.
    pub size: Bytes,
    /// Maximum size of the ARC (`c_max`).
    pub c_max: Bytes,
}

/// Counters of the ZFS intent log (ZIL) during the sample (OpenZFS include/sys/zil.h, `zil_stats_t`).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct ZilDelta {
    /// Number of requests that waited until logged data were durable.
    pub commits: u64,
    /// Number of transactions that were written to the log.
    pub itxs: u64,
    /// Number of bytes of these transactions that were written to log blocks on the pool's own devices.
    pub normal_bytes: Bytes,
    /// Number of bytes of these transactions that were written to log blocks on a separate log device (SLOG).
    pub slog_bytes: Bytes,
    /// Number of bytes of these transactions that were written in place. The log contains only a pointer to them.
    pub indirect_bytes: Bytes,
}

/// Evidence of thermal throttling and of frequency limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Throttle {
    /// Increase of `thermal_throttle/core_throttle_count` over all CPUs.
    pub cpu_events: Option<u64>,
    /// Mean current frequency ÷ maximum frequency, from 0 to 1.
    pub cpu_freq_share: Option<f64>,
    /// Highest composite temperature of an NVMe device in °C, with the limit of this device (`temp1_max`).
    pub nvme_celsius: Option<(f64, f64)>,
}

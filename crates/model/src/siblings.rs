//! Siblings: disks that should have the same load, because they belong to the same vdev, array or file system. Defines
//! the result of comparing them.

use crate::sample::DeviceDelta;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Disks that should have the same load.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Siblings {
    /// Vdev, array or file system that contains the disks: `tank raidz1-0`, `md0`, `btrfs vdb`.
    pub name: String,
    /// Kernel names as in /proc/diskstats.
    pub disks: Vec<String>,
}

/// Counters of siblings in consecutive time windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Watched {
    /// The disks, in the order of their counters.
    pub siblings: Siblings,
    /// For each window, the counters of the disks that existed.
    pub windows: Vec<Vec<DeviceDelta>>,
}

/// Whether requests are reads or writes.
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
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Way")]
pub enum IoDirection {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl IoDirection {
    /// Returns the noun for sentences: `read` or `write`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Latency of one disk in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskLatency {
    /// Kernel name of the disk.
    pub disk: String,
    /// Number of windows in which this disk and at least one other disk had enough requests. Other windows are ignored.
    pub windows: u32,
    /// Number of requests in these windows.
    pub requests: u64,
    /// Mean time of a request in these windows, measured by the block layer until completion.
    pub mean: Nanos,
    /// Latency of the disk ÷ median latency of the active siblings. The result is the median over the windows.
    pub ratio: f64,
    /// Lower confidence bound of the typical `ratio` (5 %); `None` with too few windows.
    pub at_least: Option<f64>,
    /// Upper confidence bound of the typical `ratio` (5 %); `None` with too few windows, or if there is no upper bound.
    pub at_most: Option<f64>,
}

/// Result of comparing the latencies of siblings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "finding")]
pub enum SlowDisk {
    /// One disk is significantly and relevantly slower than its siblings.
    Slow {
        /// Index of the slow disk in [`Comparison::disks`].
        at: usize,
        /// Upper bound of the probability, from 0 to 1, of such a result if all disks are equally fast.
        chance: f64,
    },
    /// No disk is slow: each disk demonstrably takes less than twice the time of its siblings.
    Alike,
    /// The data are not sufficient: no disk is demonstrably slow, but at least one disk is not demonstrably fast.
    CannotTell {
        /// Index in [`Comparison::disks`] of the disk that is most likely slow.
        at: usize,
    },
    /// Two disks rarely or never had enough requests in the same window.
    TooLittle {
        /// Number of windows with enough requests on at least two disks that a result needs.
        needed: u32,
    },
}

/// Comparison of siblings for reads or for writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Vdev, array or file system that contains the disks.
    pub siblings: String,
    /// Whether reads or writes are compared.
    pub way: IoDirection,
    /// Number of windows in which at least two disks had enough requests.
    pub windows: u32,
    /// Latency of each disk.
    pub disks: Vec<DiskLatency>,
    /// Whether a disk is slow.
    #[serde(flatten)]
    pub finding: SlowDisk,
}

//! Siblings: disks that share the work of one vdev, array or file system. Defines the result of comparing them.

use crate::sample::DeviceDelta;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Disks that should have the same amount of work.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Siblings {
    /// Vdev, array or file system that contains the disks: `tank raidz1-0`, `md0`, `btrfs vdb`.
    pub name: String,
    /// Kernel names as in /proc/diskstats.
    pub disks: Vec<String>,
}

/// Siblings and their counters in consecutive windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Watched {
    /// The disks.
    pub siblings: Siblings,
    /// Counters of the disks that existed, for each window.
    pub windows: Vec<Vec<DeviceDelta>>,
}

/// Direction of requests.
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
pub enum Way {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl Way {
    /// Returns the noun for use in sentences: `read` or `write`.
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
    /// Number of windows in which this disk and another one had enough requests; other windows are
    /// ignored.
    pub windows: u32,
    /// Number of requests in these windows.
    pub requests: u64,
    /// Mean time of a request in these windows, from the block layer to completion.
    pub mean: Nanos,
    /// Latency of the disk ÷ median latency of the active siblings: the median over the windows.
    pub ratio: f64,
    /// Lower bound of the typical ratio at 5 %; `None` with too few windows.
    pub at_least: Option<f64>,
    /// Upper confidence bound of the typical `ratio` (5 %); `None` with too few windows, or if there is no upper bound.
    pub at_most: Option<f64>,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "finding")]
pub enum SlowDisk {
    /// One disk is significantly and relevantly slower than its siblings.
    Slow {
        /// Index in [`Comparison::disks`].
        at: usize,
        /// Upper bound of the probability of such a result if all disks are equally fast, 0 to 1.
        chance: f64,
    },
    /// No disk is slow: every disk demonstrably takes less than twice the time of its siblings.
    Alike,
    /// The data does not decide: no disk is demonstrably slow, but not every disk is demonstrably fast.
    CannotTell {
        /// Index in [`Comparison::disks`] of the disk that is most likely slow.
        at: usize,
    },
    /// At no time, or too rarely, two disks had enough requests.
    TooLittle {
        /// Number of windows, with work for at least two disks, that a result requires.
        needed: u32,
    },
}

/// Comparison of siblings for reads or for writes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Vdev, array or file system that contains the disks.
    pub siblings: String,
    /// Reads or writes.
    pub way: Way,
    /// Number of windows in which at least two disks had enough requests.
    pub windows: u32,
    /// The disks.
    pub disks: Vec<DiskLatency>,
    /// Result of the comparison.
    #[serde(flatten)]
    pub finding: SlowDisk,
}

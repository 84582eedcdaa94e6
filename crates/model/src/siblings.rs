//! Disks that share the work of one vdev, array or file system, and their comparison.

use crate::sample::DeviceDelta;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Disks with the same work.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Siblings {
    /// Object that contains them: `tank raidz1-0`, `md0`, `btrfs vdb`.
    pub name: String,
    /// Kernel names as in /proc/diskstats.
    pub disks: Vec<String>,
}

/// Siblings and their counters in consecutive windows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Watched {
    /// The disks.
    pub siblings: Siblings,
    /// Counters of the existing disks in each window.
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
    /// Returns the noun for sentences.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// One disk of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiskLatency {
    /// Its kernel name.
    pub disk: String,
    /// Number of windows in which this disk and another one had enough requests; other windows are
    /// ignored.
    pub windows: u32,
    /// Number of requests in these windows.
    pub requests: u64,
    /// Mean time of a request in these windows, from the block layer to completion.
    pub mean: Nanos,
    /// Median over the windows of its time divided by the median of the active siblings.
    pub ratio: f64,
    /// Lower bound of the typical ratio at 5 %; `None` with too few windows.
    pub at_least: Option<f64>,
    /// Upper bound of the typical ratio at 5 %; `None` with too few windows, or without a bound.
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
        /// Upper bound of the probability that any of equally fast disks gives this result.
        chance: f64,
    },
    /// No disk is slow: each is shown to take less than twice the time of its siblings.
    Alike,
    /// No disk is shown to be slow, and not all are shown to be fast.
    CannotTell {
        /// Index of the possibly slowest disk in [`Comparison::disks`].
        at: usize,
    },
    /// Too few requests on two disks at the same time.
    TooLittle {
        /// Number of windows with work for at least two disks that a finding needs.
        needed: u32,
    },
}

/// Comparison of siblings in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Object that contains them.
    pub siblings: String,
    /// Reads or writes.
    pub way: Way,
    /// Number of windows in which at least two disks had enough requests.
    pub windows: u32,
    /// The disks.
    pub disks: Vec<DiskLatency>,
    /// The finding.
    #[serde(flatten)]
    pub finding: SlowDisk,
}

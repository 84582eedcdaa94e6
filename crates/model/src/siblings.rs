//! Disks that share the work of one vdev, array or file system, watched while they work.

use crate::sample::DeviceDelta;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Disks that do the same work.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Siblings {
    /// What they are part of: `tank raidz1-0`, `md0`, `btrfs vdb`.
    pub name: String,
    /// Their kernel names, as /proc/diskstats has them.
    pub disks: Vec<String>,
}

/// Siblings and what was counted of them, window after window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Watched {
    /// Which disks.
    pub siblings: Siblings,
    /// For each window the counters of the disks that were there, by name.
    pub windows: Vec<Vec<DeviceDelta>>,
}

/// What is done to a disk.
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
    /// As a noun, for sentences.
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
    /// Windows in which it and another one of them had enough to do; the rest says nothing of it.
    pub windows: u32,
    /// Requests in those windows.
    pub requests: u64,
    /// Mean time of a request in those windows, from the block layer to its completion.
    pub mean: Nanos,
    /// Median over the windows of its time against the median of the siblings that worked in it.
    pub ratio: f64,
    /// Lowest and highest typical ratio that what was seen allows, each at 5 %; none when it worked in
    /// too few windows, no highest one when it has no bound.
    pub at_least: Option<f64>,
    /// See `at_least`.
    pub at_most: Option<f64>,
}

/// What became of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "finding")]
pub enum SlowDisk {
    /// One is slower than its siblings, beyond chance and by enough to matter.
    Slow {
        /// Which one of [`Comparison::disks`].
        at: usize,
        /// Chance that any of equal disks would have looked like that in the whole watch, at most.
        chance: f64,
    },
    /// None is: each is shown to take less than twice the time of its siblings.
    Alike,
    /// None is shown to be slow, and not all are shown not to be.
    CannotTell {
        /// Which one of [`Comparison::disks`] may be the slowest.
        at: usize,
    },
    /// Too little was done on two of them at once.
    TooLittle {
        /// Windows with work for two of them or more that a finding needs.
        needed: u32,
    },
}

/// Siblings compared in one way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Comparison {
    /// What they are part of.
    pub siblings: String,
    /// Reads or writes.
    pub way: Way,
    /// Windows in which two of them or more had enough to do.
    pub windows: u32,
    /// The disks.
    pub disks: Vec<DiskLatency>,
    /// The finding.
    #[serde(flatten)]
    pub finding: SlowDisk,
}

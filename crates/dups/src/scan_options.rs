//! How a root is scanned.

use crate::filter::Filter;
use serde::{Deserialize, Serialize};

/// Where a walk goes and where it does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkOptions {
    /// Which files are wanted.
    pub filter: Filter,
    /// Whether to enter folders on other file systems than their root's.
    pub other_filesystems: bool,
    /// Whether to enter `.zfs`, `.snapshot` and `.snapshots`.
    pub snapshots: bool,
}

/// What the index remembers of how a root was scanned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RootScanOptions {
    /// Which files were looked at.
    pub walk: WalkOptions,
    /// Whether all of them were hashed; see [`ScanOptions::hash_all`].
    pub hash_all: bool,
}

//! Options of a scan. The index stores them for each root.

use crate::filter::Filter;
use serde::{Deserialize, Serialize};

/// What a walk selects and where it stops.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkOptions {
    /// Which files are selected.
    pub filter: Filter,
    /// Whether to enter folders on other file systems than the root's.
    pub other_filesystems: bool,
    /// Whether to enter `.zfs`, `.snapshot` and `.snapshots`.
    pub snapshots: bool,
}

/// Options of a root's last scan, stored in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RootScanOptions {
    /// File selection and limits of the walk.
    pub walk: WalkOptions,
    /// Whether all files were hashed; see [`crate::ScanOptions::hash_all`].
    pub hash_all: bool,
}

//! Options of a root's scan.

use crate::filter::Filter;
use serde::{Deserialize, Serialize};

/// Limits of a walk.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WalkOptions {
    /// File selection.
    pub filter: Filter,
    /// Enter folders on other file systems than their root's.
    pub other_filesystems: bool,
    /// Enter `.zfs`, `.snapshot` and `.snapshots`.
    pub snapshots: bool,
}

/// Options of a root that the index remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RootScanOptions {
    /// File selection and limits of the walk.
    pub walk: WalkOptions,
    /// All files were hashed; see [`crate::ScanOptions::hash_all`].
    pub hash_all: bool,
}

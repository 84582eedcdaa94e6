//! A target: the place a workload is done to, and what is known about the storage below it.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// What the user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory: assay makes its own scratch file in it and removes it.
    Directory,
    /// A file that the user named: read, or overwritten only with `--destroy-data`.
    File,
    /// A whole block device or partition.
    BlockDevice,
    /// A server, by its URL.
    Server,
}

/// Whether a target is named by a URL of the web.
#[must_use]
pub fn is_url(target: &str) -> bool {
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// A target and the layers that a sample's counters are read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetInfo {
    /// The path as the user gave it (lossy when it is not UTF-8); names the target in results.
    pub name: String,
    /// What it is.
    pub kind: TargetKind,
    /// File system type from mountinfo (`ext4`, `zfs`, `tmpfs`, `overlay`); none for a device.
    pub fs_type: Option<String>,
    /// Where that file system is mounted.
    pub mount_point: Option<String>,
    /// Mount and super options, comma separated.
    pub mount_options: Option<String>,
    /// The source in mountinfo: `/dev/vda2`, `tank/data`.
    pub mount_source: Option<String>,
    /// Kernel names of the block devices whose counters tell what reached the device: the ones
    /// directly under the file system (`vda2`, `dm-0`), as /proc/diskstats names them.
    pub devices: Vec<String>,
    /// Kernel names of the physical disks at the bottom (`vda`, `nvme0n1`).
    pub disks: Vec<String>,
    /// Size of the scratch file, or of the file or device.
    pub size: Bytes,
    /// Free bytes of the file system for an unprivileged writer when it was looked at.
    pub free: Option<Bytes>,
}

impl TargetInfo {
    /// A server, below which nothing of this machine is known.
    #[must_use]
    pub fn server(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            kind: TargetKind::Server,
            fs_type: None,
            mount_point: None,
            mount_options: None,
            mount_source: None,
            devices: Vec::new(),
            disks: Vec::new(),
            size: Bytes(0),
            free: None,
        }
    }
}

/// What the data of the tested file looks like on the file system, read after layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileState {
    /// Apparent size.
    pub size: Bytes,
    /// Bytes allocated (`st_blocks` × 512).
    pub allocated: Bytes,
    /// Bytes in written extents (FIEMAP without UNWRITTEN); none when FIEMAP is not supported.
    pub written: Option<Bytes>,
    /// Bytes in allocated but unwritten extents.
    pub unwritten: Option<Bytes>,
    /// How far the data compresses in 128 KiB windows (zstd level 1): 1.0 = not at all.
    pub compress_ratio: Option<f64>,
}

impl FileState {
    /// Whether it takes less space than it is large, by more than the rounding of its end.
    #[must_use]
    pub fn stored_smaller(&self) -> bool {
        self.allocated.0 < self.size.0 / 10 * 9
    }
}

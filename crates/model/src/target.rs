//! A target: the object of a workload, and the storage below it.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Kind of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory: assay creates a scratch file in it and removes it.
    Directory,
    /// A file of the user. It is only read, unless `--destroy-data` permits overwriting.
    File,
    /// A whole block device or partition.
    BlockDevice,
    /// A web server, named by its URL.
    Server,
}

/// Returns whether the name of a target is a web URL.
#[must_use]
pub fn is_url(target: &str) -> bool {
    let scheme = target.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
    })
}

/// A target, and the layers whose counters a sample reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetInfo {
    /// Path as the user gave it; also the name of the target in results. Invalid UTF-8 is replaced.
    pub name: String,
    /// Kind.
    pub kind: TargetKind,
    /// File system type from mountinfo (`ext4`, `zfs`, `tmpfs`, `overlay`); `None` for a device.
    pub fs_type: Option<String>,
    /// Mount point of the file system.
    pub mount_point: Option<String>,
    /// Mount options and super block options, separated by commas.
    pub mount_options: Option<String>,
    /// Mount source as in mountinfo: `/dev/vda2`, `tank/data`.
    pub mount_source: Option<String>,
    /// Kernel names of the block devices directly below the file system (`vda2`, `dm-0`), as in /proc/diskstats. Their
    /// counters show how much I/O reached the device.
    pub devices: Vec<String>,
    /// Kernel names of the physical disks at the bottom (`vda`, `nvme0n1`).
    pub disks: Vec<String>,
    /// Size of the scratch file, or of the file or device.
    pub size: Bytes,
    /// Free bytes of the file system for an unprivileged writer at the time of the survey.
    pub free: Option<Bytes>,
}

impl TargetInfo {
    /// Returns a target for a server. It has no layers on this machine.
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

/// How the file system stores the data of the tested file, read after layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileState {
    /// Apparent size of the file (`st_size`).
    pub size: Bytes,
    /// Bytes allocated (`st_blocks` × 512).
    pub allocated: Bytes,
    /// Bytes in written extents (FIEMAP without UNWRITTEN); `None` if FIEMAP is not supported.
    pub written: Option<Bytes>,
    /// Bytes in allocated but unwritten extents.
    pub unwritten: Option<Bytes>,
    /// Compressed size ÷ original size in 128 KiB windows (zstd level 1): 1.0 is incompressible.
    pub compress_ratio: Option<f64>,
}

impl FileState {
    /// Returns whether the file occupies less space than its size, apart from rounding at its end.
    #[must_use]
    pub fn stored_smaller(&self) -> bool {
        self.allocated.0 < self.size.0 / 10 * 9
    }
}

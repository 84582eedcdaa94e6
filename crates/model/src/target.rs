//! A target: the object that a workload uses, and the storage below it.

use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// Kind of object that a workload uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    /// A directory: assay creates a scratch file in it and removes it.
    Directory,
    /// A file of the user. It is only read, unless `--destroy-data` permits overwriting.
    File,
    /// A whole block device or partition.
    BlockDevice,
    /// A web server, given by its URL.
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

/// A target, with the layers whose counters are read during a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TargetInfo {
    /// Path as the user wrote it, which is also the name of the target in results. Invalid UTF-8 is replaced.
    pub name: String,
    /// Kind of the target.
    pub kind: TargetKind,
    /// File system type from mountinfo (`ext4`, `zfs`, `tmpfs`, `overlay`); `None` for a device.
    pub fs_type: Option<String>,
    /// Mount point of the file system.
    pub mount_point: Option<String>,
    /// Mount options and super block options, separated by commas.
    pub mount_options: Option<String>,
    /// Source of the mount as in mountinfo, such as `/dev/vda2` or `tank/data`.
    pub mount_source: Option<String>,
    /// Kernel names of the block devices directly below the file system, as in /proc/diskstats (`vda2`, `dm-0`). Their
    /// counters show how much I/O reached the devices.
    pub devices: Vec<String>,
    /// Kernel names of the physical disks at the bottom (`vda`, `nvme0n1`).
    pub disks: Vec<String>,
    /// Size in bytes of the scratch file, or of the file or device that is the target.
    pub size: Bytes,
    /// Free bytes of the file system for an unprivileged user when the machine was surveyed.
    pub free: Option<Bytes>,
}

impl TargetInfo {
    /// Creates a target for a server. Such a target has no layers on this machine.
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

/// How the file system stores the tested file. Read after the file was created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FileState {
    /// Apparent size of the file (`st_size`).
    pub size: Bytes,
    /// Number of allocated bytes (`st_blocks` × 512).
    pub allocated: Bytes,
    /// Number of bytes in written extents (FIEMAP without UNWRITTEN); `None` if FIEMAP is not supported.
    pub written: Option<Bytes>,
    /// Number of bytes in allocated but unwritten extents.
    pub unwritten: Option<Bytes>,
    /// Compressed size ÷ original size in windows of 128 KiB (zstd level 1). 1.0 means incompressible.
    pub compress_ratio: Option<f64>,
}

impl FileState {
    /// Returns whether the file occupies less space than its size. Rounding at the end of the file is ignored.
    #[must_use]
    pub fn stored_smaller(&self) -> bool {
        self.allocated.0 < self.size.0 / 10 * 9
    }
}

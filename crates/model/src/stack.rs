//! A stack: the layers that data pass through on their way to the disks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What kind of stage data pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerKind {
    /// A path that somebody reads and writes.
    Path,
    /// A file system in use.
    FileSystem,
    /// A file that something else lies in: the image of a virtual disk, a loop device's file.
    File,
    /// The format of an image: qcow2, raw.
    Image,
    /// A virtual disk: bus, cache mode, aio, thread.
    VirtualDisk,
    /// A virtual machine.
    Guest,
    /// A ZFS dataset.
    Dataset,
    /// A ZFS volume.
    Zvol,
    /// A ZFS pool.
    Pool,
    /// A group of devices in a pool: mirror, raidz, draid, log, cache, special.
    Vdev,
    /// An LVM logical volume.
    LogicalVolume,
    /// An LVM volume group.
    VolumeGroup,
    /// dm-crypt, with or without LUKS.
    Crypt,
    /// Another device-mapper target.
    Mapped,
    /// Linux software RAID.
    Md,
    /// A loop device.
    Loop,
    /// A network block device, iSCSI, NFS: what lies below is elsewhere.
    Network,
    /// A partition.
    Partition,
    /// A disk.
    Disk,
    /// A controller or link that a disk hangs on.
    Link,
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// What kind.
    pub kind: LayerKind,
    /// Its name on the machine: a path, a dataset, a device.
    pub name: String,
    /// Settings that decide what it costs, by their field's own names (`volblocksize`, `cache`,
    /// `cipher`, `scheduler`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Indices of the layers directly below, in [`Stack::layers`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<usize>,
    /// What could not be found out about it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// All layers under a target. A layer stands before those below it; the first is the top.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The target as the user named it.
    pub target: String,
    /// The layers.
    pub layers: Vec<Layer>,
}

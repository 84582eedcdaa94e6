//! A stack: the layers that data pass through on their way to the disks.

use crate::units::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What kind of stage data pass.
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
    /// A top-level device of a pool: mirror, raidz, draid, a single disk; of the class data, log,
    /// cache, special or dedup.
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

impl LayerKind {
    /// What people call it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::FileSystem => "file system",
            Self::File => "file",
            Self::Image => "image",
            Self::VirtualDisk => "virtual disk",
            Self::Guest => "guest",
            Self::Dataset => "dataset",
            Self::Zvol => "zvol",
            Self::Pool => "pool",
            Self::Vdev => "vdev",
            Self::LogicalVolume => "LV",
            Self::VolumeGroup => "VG",
            Self::Crypt => "crypt",
            Self::Mapped => "mapped",
            Self::Md => "md",
            Self::Loop => "loop",
            Self::Network => "network",
            Self::Partition => "partition",
            Self::Disk => "disk",
            Self::Link => "link",
        }
    }
}

/// One stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Layer {
    /// What kind.
    pub kind: LayerKind,
    /// Its name on the machine: a path, a dataset, a device.
    pub name: String,
    /// Where it can be opened on this machine: a mount point, a device node, a file. None for what
    /// has no such place (a pool, a link) or is out of sight.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_lossy"
    )]
    pub place: Option<PathBuf>,
    /// Settings that decide what it costs, by their field's own names (`volblocksize`, `cache`,
    /// `cipher`, `scheduler`). Sizes are written as [`Bytes::short`] does: `64k`, `10G`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Indices of the layers directly below, in [`Stack::layers`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<usize>,
    /// What could not be found out about it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// A path that is not UTF-8 must not make the whole stack unwritable.
fn serialize_lossy<S: Serializer>(
    place: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    place
        .as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(serializer)
}

impl Layer {
    /// A layer of which nothing but its kind and name is known yet.
    #[must_use]
    pub fn new(kind: LayerKind, name: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            place: None,
            settings: BTreeMap::new(),
            below: Vec::new(),
            unknown: Vec::new(),
        }
    }

    /// A setting as it is written.
    #[must_use]
    pub fn get(&self, setting: &str) -> Option<&str> {
        self.settings.get(setting).map(String::as_str)
    }

    /// A setting that is a size, or a plain number, in bytes.
    #[must_use]
    pub fn bytes(&self, setting: &str) -> Option<u64> {
        let size: Bytes = self.get(setting)?.parse().ok()?;
        Some(size.0)
    }
}

/// All layers under a target. The first is the top. Each of the others is below at least one; a
/// layer that several stand on (a pool under two disks) is there once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stack {
    /// The target as the user named it.
    pub target: String,
    /// The layers.
    pub layers: Vec<Layer>,
}

impl Stack {
    /// Everything below a layer, nearest first, each once, the layer itself left out. Indices that
    /// lead nowhere and circles do no harm.
    #[must_use]
    pub fn under(&self, layer: usize) -> Vec<usize> {
        let mut seen = vec![layer];
        let mut next = 0;
        while let Some(&at) = seen.get(next) {
            next += 1;
            for &below in self.layers.get(at).map_or(&[][..], |layer| &layer.below) {
                if below < self.layers.len() && !seen.contains(&below) {
                    seen.push(below);
                }
            }
        }
        seen.remove(0);
        seen
    }

    /// The nearest layer of a kind below another.
    #[must_use]
    pub fn nearest(&self, layer: usize, kind: LayerKind) -> Option<&Layer> {
        let mut under = self.under(layer).into_iter();
        under.find_map(|at| self.layers.get(at).filter(|layer| layer.kind == kind))
    }
}

/// A remark on a layer: what its settings, or those of two layers together, are known to cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hint {
    /// Index of the layer in [`Stack::layers`].
    pub layer: usize,
    /// What is to be said, one sentence.
    pub text: String,
    /// The facts it rests on: `volblocksize=8k, cluster_size=64k`.
    pub because: String,
    /// The page of the catalogue about it: `assay advice PAGE`.
    pub page: String,
    /// Who says so: manual, upstream file and version.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(below: &[&[usize]]) -> Stack {
        let layer = |below: &&[usize]| Layer {
            below: below.to_vec(),
            ..Layer::new(LayerKind::Disk, "x")
        };
        Stack {
            target: "t".to_owned(),
            layers: below.iter().map(layer).collect(),
        }
    }

    #[test]
    fn circles_and_indices_that_lead_nowhere_do_no_harm() {
        assert_eq!(stack(&[&[1, 2], &[3], &[3], &[]]).under(0), [1, 2, 3]);
        assert_eq!(stack(&[&[1], &[0, 7]]).under(0), [1]);
        assert!(stack(&[]).under(5).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_name_that_is_no_text_can_be_written() {
        use std::os::unix::ffi::OsStrExt as _;
        let place = std::ffi::OsStr::from_bytes(b"/dev/\xff").into();
        let layer = Layer {
            place: Some(place),
            ..Layer::new(LayerKind::Disk, "x")
        };
        let text = serde_json::to_string(&layer).unwrap();
        assert!(text.contains("/dev/\u{fffd}"), "{text}");
    }

    #[test]
    fn sizes_of_settings() {
        let mut layer = Layer::new(LayerKind::Zvol, "x");
        layer
            .settings
            .insert("volblocksize".to_owned(), "16k".to_owned());
        assert_eq!(layer.bytes("volblocksize"), Some(16384));
        assert_eq!(layer.bytes("volsize"), None);
    }
}

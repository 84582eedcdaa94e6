//! A storage stack: the layers between a path and its disks.

use crate::units::Bytes;
use serde::{Deserialize, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Kind of a layer in a storage stack.
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
    /// A path to which data are written.
    Path,
    /// A mounted file system.
    FileSystem,
    /// A file that contains another layer, such as the image of a virtual disk or the file of a loop device.
    File,
    /// The format of an image, such as qcow2 or raw.
    Image,
    /// A virtual disk with its bus, cache mode, aio mode and I/O thread.
    VirtualDisk,
    /// A virtual machine.
    Guest,
    /// A ZFS dataset.
    Dataset,
    /// A ZFS volume.
    Zvol,
    /// A ZFS pool.
    Pool,
    /// A top-level vdev of a pool: a mirror, raidz, draid or single disk of class data, log, cache, special or dedup.
    Vdev,
    /// An LVM logical volume.
    LogicalVolume,
    /// An LVM volume group.
    VolumeGroup,
    /// dm-crypt, with or without LUKS.
    Crypt,
    /// Another device-mapper target, such as linear or striped.
    Mapped,
    /// Linux software RAID.
    Md,
    /// A loop device.
    Loop,
    /// A network block device, iSCSI or NFS. Its lower layers are on another machine.
    Network,
    /// A partition.
    Partition,
    /// A disk.
    Disk,
    /// The controller or link to which a disk is connected.
    Link,
}

impl LayerKind {
    /// Returns the common name of this kind of layer.
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

/// One layer of a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Layer {
    /// Kind of the layer.
    pub kind: LayerKind,
    /// Name on the machine, such as a path, a dataset or a device.
    pub name: String,
    /// Path at which the layer can be opened on this machine, such as a mount point, a device node or a file. `None`
    /// for a layer without a path (a pool, a link), and for a layer that is not visible on this machine.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "serialize_lossy"
    )]
    pub place: Option<PathBuf>,
    /// Settings that affect the cost of the layer, with the names that the layer uses (`volblocksize`, `cache`,
    /// `cipher`, `scheduler`). Sizes have the form of [`Bytes::short`]: `64k`, `10G`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// Indices of the layers directly below, in [`Stack::layers`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<usize>,
    /// Properties that could not be determined, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
}

/// Serialises a path as text. Invalid UTF-8 is replaced, so that such a path does not prevent the serialisation of the
/// whole stack.
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
    /// Creates a layer with only a kind and a name.
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

    /// Returns the value of a setting as text.
    #[must_use]
    pub fn get(&self, setting: &str) -> Option<&str> {
        self.settings.get(setting).map(String::as_str)
    }

    /// Returns a setting that is a size or a plain number, in bytes.
    #[must_use]
    pub fn bytes(&self, setting: &str) -> Option<u64> {
        let size: Bytes = self.get(setting)?.parse().ok()?;
        Some(size.0)
    }
}

/// All layers below a target. The first layer is the top. Every other layer is directly below at least one layer. A
/// layer that is below several others, such as a pool that contains two virtual disks, occurs only once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Stack {
    /// The target as written on the command line.
    pub target: String,
    /// The layers, the top first.
    pub layers: Vec<Layer>,
}

impl Stack {
    /// Returns all layers below a layer, nearest first, without duplicates. Invalid indices and cycles are ignored.
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

    /// Returns the nearest lower layer of a kind.
    #[must_use]
    pub fn nearest(&self, layer: usize, kind: LayerKind) -> Option<&Layer> {
        let mut under = self.under(layer).into_iter();
        under.find_map(|at| self.layers.get(at).filter(|layer| layer.kind == kind))
    }
}

/// A remark on a layer: the known cost of a setting, or of a combination with another layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Hint {
    /// Index of the layer in [`Stack::layers`].
    pub layer: usize,
    /// The remark as one sentence.
    pub text: String,
    /// Settings that cause the cost, such as `volblocksize=8k, cluster_size=64k`.
    pub because: String,
    /// Page of the catalogue that explains the remark (`assay advice PAGE`).
    pub page: String,
    /// Source of the remark: a manual, or an upstream file with its version.
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

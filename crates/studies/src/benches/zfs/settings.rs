//! Settings of studies that use the ZFS bench.

use crate::{StudyError, settings};
use assay_lab::disk::{Aio, Bus, CacheMode};
use assay_model::study::Configuration;
use assay_model::{Bytes, Nanos};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Settings of a form: the guest and the amount of work.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    /// Memory of the guest in bytes.
    pub memory: Bytes,
    /// Pool that is created in the guest.
    pub pool: Pool,
    /// Size of each zvol, image and virtual disk.
    pub disk: Bytes,
    /// Number of bytes that each fio job uses, unless the job sets them.
    pub size: Bytes,
    /// Runtime of each fio job; `None` means that each job ends after its size.
    #[serde(default)]
    pub time: Option<Nanos>,
    /// Number of bytes that remain free in a pool that is filled.
    #[serde(default)]
    pub left: Option<Bytes>,
}

/// A pool of new virtual disks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pool {
    /// Vdev type, such as `mirror` or `raidz1`; empty for a stripe.
    #[serde(default)]
    pub layout: String,
    /// Number of disks in the pool.
    pub disks: u32,
    /// Size of each disk in bytes.
    pub size: Bytes,
    /// Size of the log device; `None` without a log device.
    #[serde(default)]
    pub log: Option<Bytes>,
    /// Size of the cache device; `None` without a cache device.
    #[serde(default)]
    pub cache: Option<Bytes>,
    /// Base-2 logarithm of the sector size in bytes.
    pub ashift: u32,
    /// ZFS properties of the pool's root dataset.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
}

/// Layers of a configuration below the workload, from the storage upwards.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Layers {
    /// Lowest layer, which is the storage itself.
    pub on: Base,
    /// ZFS properties of the zvol or dataset.
    #[serde(default)]
    pub properties: BTreeMap<String, String>,
    /// Whether the space of the zvol is reserved, as `zfs create -V` does by default. `zfs create -s` does not reserve
    /// space.
    #[serde(default)]
    pub reserved: bool,
    /// Options of a virtual disk on this host, as for `assay lab --disk`.
    #[serde(default)]
    pub device: String,
    /// Format of an image that QEMU serves from the zvol or from a file on the dataset; `None` without an image.
    #[serde(default)]
    pub image: Option<Image>,
    /// Cluster size of a qcow2 image in bytes.
    #[serde(default)]
    pub cluster: Option<Bytes>,
    /// Cache mode of QEMU for the image.
    #[serde(default = "default_cache_mode", deserialize_with = "deserialize_word")]
    pub cache: CacheMode,
    /// I/O method of QEMU for the image.
    #[serde(default = "default_aio", deserialize_with = "deserialize_word")]
    pub aio: Aio,
    /// Disk controller through which a nested guest without a kernel uses the image; `None` without a nested guest.
    #[serde(default, deserialize_with = "deserialize_optional_word")]
    pub guest: Option<Bus>,
    /// Whether the disk controller has its own iothread.
    #[serde(default)]
    pub iothread: bool,
    /// Whether a logical volume of LVM is created on the storage.
    #[serde(default)]
    pub lvm: bool,
    /// Whether LUKS encryption is added.
    #[serde(default)]
    pub luks: bool,
    /// Topmost file system; `None` means that the block device is used directly.
    #[serde(default)]
    pub fs: Option<Fs>,
    /// Whether the layers are created again in every round.
    #[serde(default)]
    pub fresh: bool,
    /// Pool or quota that is filled while the load runs; `None` if nothing is filled.
    #[serde(default)]
    pub full: Option<Full>,
    /// CPU model for QEMU. If set, the measurement runs in a separate guest.
    #[serde(default)]
    pub cpu: Option<String>,
}

fn default_cache_mode() -> CacheMode {
    CacheMode::Writeback
}

fn default_aio() -> Aio {
    Aio::Threads
}

fn deserialize_word<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(
    from: D,
) -> Result<T, D::Error> {
    String::deserialize(from)?.parse().map_err(D::Error::custom)
}

fn deserialize_optional_word<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    deserialize_word(from).map(Some)
}

impl Layers {
    /// Returns why the layers cannot be created below the user's dataset; `None` if this is possible.
    pub fn not_here(&self) -> Option<&'static str> {
        match self {
            layers if layers.on == Base::Disk => {
                Some("a virtual disk beside ZFS needs a guest: leave --on away")
            }
            layers if layers.on == Base::Cpu => {
                Some("a processor is tried in guests: leave --on away")
            }
            layers if layers.full.is_some() => {
                Some("nothing of yours is filled up; a throwaway guest has a pool for that")
            }
            layers if layers.lvm || layers.luks => {
                Some("LVM and LUKS are set up in throwaway guests only: leave --on away")
            }
            layers if layers.image.is_some() && layers.guest.is_none() => {
                Some("an image is given to this kernel (NBD) in throwaway guests only")
            }
            _ => None,
        }
    }
}

/// Lowest layer of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Base {
    /// A volume (zvol) of the pool.
    Zvol,
    /// A file system (dataset) of the pool.
    Dataset,
    /// A virtual disk on the host's file system, without ZFS.
    Disk,
    /// No storage; only the CPU is measured.
    Cpu,
}

/// Format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Image {
    /// A raw image, which has no header.
    Raw,
    /// The qcow2 format of QEMU.
    Qcow2,
}

impl Image {
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// A file system that the guest creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Fs {
    Ext2,
    Ext3,
    Ext4,
    Xfs,
}

impl Fs {
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// Storage that is filled during the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Full {
    /// The pool is full, because another dataset takes the space.
    Pool,
    /// The quota of the parent dataset is exhausted.
    Quota,
}

/// Parses a configuration. Refuses settings that contradict each other.
pub(super) fn parse_layers(one: &Configuration) -> Result<Layers, StudyError> {
    let found: Layers = settings::of_configuration(one)?;
    let refuse = |message: &str| {
        Err(StudyError::Setting {
            of: format!("configuration `{}`", one.name),
            message: message.to_owned(),
        })
    };
    let zfs = matches!(found.on, Base::Zvol | Base::Dataset);
    if found.on == Base::Disk {
        to_lab_disk(&found, "d", Bytes(512))?;
    }
    match &found {
        layers if layers.on != Base::Disk && !layers.device.is_empty() => {
            refuse("`device` is of a virtual disk: on = \"disk\"")
        }
        layers if !zfs && (layers.image.is_some() || !layers.properties.is_empty()) => {
            refuse("`image` and `properties` need ZFS: on = \"zvol\" or \"dataset\"")
        }
        layers if layers.cluster.is_some() && layers.image != Some(Image::Qcow2) => {
            refuse("`cluster` is of an image = \"qcow2\"")
        }
        layers if layers.on == Base::Dataset && layers.image.is_none() => {
            match layers.fs.is_some() || layers.lvm || layers.luks {
                true => refuse("a dataset carries LVM, LUKS and file systems only in an `image`"),
                false => Ok(found),
            }
        }
        layers if layers.full.is_some() && !(zfs && layers.image.is_some() && layers.fresh) => {
            refuse("what runs full is an `image` on ZFS that is `fresh`")
        }
        layers
            if layers.iothread
                && !matches!(layers.guest, Some(Bus::VirtioBlk | Bus::VirtioScsi)) =>
        {
            refuse("`iothread` is of guest = \"virtio-blk\" or \"virtio-scsi\"")
        }
        layers if layers.guest == Some(Bus::Nvme) => {
            refuse("guest = \"nvme\": QEMU has no switch for the write cache of such a disk")
        }
        layers
            if layers.guest.is_some()
                && (layers.image.is_none()
                    || layers.lvm
                    || layers.luks
                    || layers.fs.is_some()
                    || layers.fresh) =>
        {
            refuse("a `guest` has an `image` and nothing else, and is not `fresh`: it stays")
        }
        layers if layers.aio == Aio::Native && !layers.cache.direct() => {
            refuse("aio = \"native\" needs cache = \"none\" or \"directsync\"")
        }
        _ => Ok(found),
    }
}

/// Returns the virtual disk of a configuration in the form that the lab needs.
pub(super) fn to_lab_disk(
    layers: &Layers,
    name: &str,
    size: Bytes,
) -> Result<assay_lab::Disk, StudyError> {
    let mut text = format!("{}", size.0);
    if !layers.device.is_empty() {
        text.push(',');
        text.push_str(&layers.device);
    }
    Ok(assay_lab::Disk::parse(&text, name)?)
}

//! A virtual disk: its storage on the host, and its controller in the guest.

use crate::error::{Cause, LabError};
pub use assay_model::change::{Aio, CacheMode};
use assay_model::{Bytes, named};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A disk of a guest. It is a new empty file that is removed with the guest, or a block device of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Serial number in the guest: letters, digits, dashes, at most 20 (limit of virtio-blk).
    pub name: String,
    /// Size in bytes, a multiple of 512.
    pub size: u64,
    /// Format of the disk's file on the host.
    pub format: DiskFormat,
    /// Controller to which the disk is attached in the guest.
    pub bus: Bus,
    /// Cache mode of QEMU for the disk.
    pub cache: CacheMode,
    /// QEMU's I/O method on the host.
    pub aio: Aio,
    /// Whether the disk has its own I/O thread in QEMU (virtio-blk and virtio-scsi).
    pub iothread: bool,
    /// Whether discards of the guest free space on the host.
    pub discard: bool,
    /// Host directory for the file; `None` for the guest's own directory.
    pub dir: Option<PathBuf>,
    /// Host block device that is used instead of a file. Its content is overwritten, so the options of the guest must
    /// permit this explicitly.
    pub device: Option<PathBuf>,
    /// Whether QEMU logs every write and flush; the power-cut test needs this log.
    pub logged: bool,
    /// Speed limits; `None` means no limits.
    pub throttle: Option<Throttle>,
    /// Number of queues between guest and QEMU (virtio-blk and virtio-scsi); `None` for one per CPU, as in QEMU since
    /// 5.2.
    pub queues: Option<u16>,
    /// Range of the disk in which all I/O fails, as on bad sectors; `None` for a sound disk.
    pub bad: Option<Bad>,
    /// QEMU's reaction to a failed write on the host; `None` for QEMU's default.
    pub werror: Option<WriteError>,
    /// File whose content is copied to the new disk, which must be raw.
    pub content: Option<PathBuf>,
}

/// Speed limits of a disk (throttle groups, docs/throttle.txt). A request over the limit waits, so its latency
/// grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttle {
    /// Requests per second; 0 means no limit.
    pub iops: u64,
    /// Bytes per second; 0 means no limit.
    pub bytes: u64,
}

impl Throttle {
    /// Returns the properties of a QEMU throttle group with these limits. Without a `-max` value, QEMU permits a burst
    /// of a tenth of a second (`throttle_compute_wait`, util/throttle.c).
    pub(crate) fn limits(self) -> Value {
        json!({ "iops-total": self.iops, "bps-total": self.bytes })
    }
}

/// A range of a disk that can be neither read nor written (`blkdebug`, docs/devel/blkdebug.txt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Start of the range in bytes; a multiple of 512.
    pub offset: u64,
    /// Length of the range in bytes; a multiple of 512, at most [`Bad::LONGEST`].
    pub length: u64,
}

impl Bad {
    /// Maximum length in bytes. Longer ranges would be slow, because QEMU needs a rule per sector and checks all rules
    /// for each request.
    pub const LONGEST: u64 = 256 << 10;

    fn rules(self) -> Vec<Value> {
        /// Error number EIO (errno(3)), which the guest gets.
        const EIO: u8 = 5;
        let first = self.offset / 512;
        let sectors = first..first + self.length / 512;
        let rule = |sector| {
            json!({
                "event": "none", "errno": EIO, "sector": sector, "once": false, "immediately": true,
            })
        };
        sectors.map(rule).collect()
    }
}

/// Format of a disk's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskFormat {
    /// Raw bytes; holes use no space on the host.
    Raw,
    /// qcow2, QEMU's own format.
    Qcow2 {
        /// Cluster size in bytes: a power of two from 512 to 2 MiB.
        cluster: u64,
        /// Whether QEMU preallocates the metadata (`preallocation=metadata`).
        preallocated: bool,
        /// Whether a cluster has an extended L2 entry with 32 subclusters (`extended_l2=on`).
        extended_l2: bool,
        /// Whether reference counts are written lazily (`lazy_refcounts=on`).
        lazy_refcounts: bool,
    },
    /// Raw bytes that QEMU encrypts with LUKS.
    Luks,
}

impl DiskFormat {
    /// qcow2 with the defaults of `qemu-img create`.
    pub const QCOW2: Self = Self::Qcow2 {
        cluster: 64 << 10,
        preallocated: false,
        extended_l2: false,
        lazy_refcounts: false,
    };

    /// Returns the name of the format for `qemu-img -f`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 { .. } => "qcow2",
            Self::Luks => "luks",
        }
    }
}

/// Controller to which a disk is attached in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Bus {
    /// virtio-blk, one device per disk.
    VirtioBlk,
    /// virtio-scsi, with disks on a SCSI controller.
    VirtioScsi,
    /// SATA (AHCI of an ICH9).
    Sata,
    /// Parallel ATA (PIIX3); at most four disks.
    Ide,
    /// NVMe controller.
    Nvme,
}

/// QEMU's reaction when a write fails on the host (`werror=`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WriteError {
    /// The guest gets an I/O error.
    Report,
    /// The guest is paused, whatever the error.
    Stop,
    /// The guest is paused if the host has no space left, and gets an I/O error otherwise. QEMU's default for disks
    /// that support it (`blk_get_on_error`, block/block-backend.c).
    Enospc,
}

named!(Bus, "bus": VirtioBlk = "virtio-blk", VirtioScsi = "virtio-scsi", Sata = "sata",
    Ide = "ide", Nvme = "nvme");
named!(WriteError, "werror policy": Report = "report", Stop = "stop", Enospc = "enospc");

/// Passphrase of encrypted disks. The passphrase need not be secret, because the disks contain only scratch data and
/// are deleted.
pub const SECRET: &str = "assay";

impl Disk {
    /// Creates a raw scratch disk on virtio-blk.
    #[must_use]
    pub fn scratch(name: &str, size: u64) -> Self {
        Self {
            name: name.to_owned(),
            size,
            format: DiskFormat::Raw,
            bus: Bus::VirtioBlk,
            cache: CacheMode::Writeback,
            aio: Aio::Threads,
            iothread: false,
            discard: true,
            dir: None,
            device: None,
            logged: false,
            throttle: None,
            queues: None,
            bad: None,
            werror: None,
            content: None,
        }
    }

    pub(crate) fn refuse(&self, source: impl Into<Cause>) -> LabError {
        LabError::Disk {
            name: self.name.clone(),
            source: source.into(),
        }
    }

    /// Checks whether QEMU supports this combination of settings.
    ///
    /// # Errors
    /// A description of the settings that conflict.
    pub fn check(&self) -> Result<(), LabError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        let letter = self.name.starts_with(|c: char| c.is_ascii_alphabetic());
        if !letter || self.name.len() > 20 || !self.name.bytes().all(plain) {
            return Err(self.refuse(
                "names are letters, digits and dashes, at most 20, and begin with a letter",
            ));
        }
        if self.size == 0 || !self.size.is_multiple_of(512) {
            return Err(self.refuse("its size has to be a multiple of 512 bytes"));
        }
        if self.aio == Aio::Native && !self.cache.direct() {
            return Err(self.refuse(format!(
                "aio=native needs cache none or directsync, not {}",
                self.cache.name()
            )));
        }
        if self.iothread && !matches!(self.bus, Bus::VirtioBlk | Bus::VirtioScsi) {
            return Err(self.refuse(format!(
                "{} disks have no thread of their own in QEMU 7.2",
                self.bus.name()
            )));
        }
        if self.queues.is_some() && !matches!(self.bus, Bus::VirtioBlk | Bus::VirtioScsi) {
            return Err(self.refuse(format!(
                "the queues of {} disks cannot be chosen",
                self.bus.name()
            )));
        }
        if self
            .queues
            .is_some_and(|queues| !(1..=256).contains(&queues))
        {
            return Err(self.refuse("there are 1 to 256 queues"));
        }
        if let Some(bad) = self.bad {
            let whole = bad.offset.is_multiple_of(512) && bad.length.is_multiple_of(512);
            let inside = bad
                .offset
                .checked_add(bad.length)
                .is_some_and(|end| end <= self.size);
            if !whole || !inside || !(512..=Bad::LONGEST).contains(&bad.length) {
                return Err(self.refuse(format!(
                    "eio=OFFSET+LENGTH are multiples of 512 bytes inside the disk, at most {}",
                    Bytes(Bad::LONGEST)
                )));
            }
        }
        if self.werror.is_some() && self.bus == Bus::Nvme {
            return Err(self.refuse("QEMU 7.2 has no werror for nvme: the guest gets the error"));
        }
        if self.device.is_some() && (self.dir.is_some() || self.logged || self.content.is_some()) {
            return Err(self.refuse(
                "a block device has neither a directory nor a content of its own, and power is cut \
                 for files only",
            ));
        }
        if self.content.is_some() && self.format != DiskFormat::Raw {
            return Err(self.refuse("only a raw disk can hold a file's content at first"));
        }
        match self.format {
            DiskFormat::Qcow2 { cluster, .. }
                if !(cluster.is_power_of_two() && (512..=2 << 20).contains(&cluster)) =>
            {
                Err(self.refuse("a cluster is a power of two from 512 bytes to 2 MiB"))
            }
            _ => Ok(()),
        }
    }

    /// Returns the name of the block node that the disk's device uses.
    pub(crate) fn node(&self) -> String {
        match (self.throttle, self.bad) {
            (Some(_), _) => format!("{}-throttle", self.name),
            (None, Some(_)) => format!("{}-bad", self.name),
            (None, None) => format!("{}-top", self.name),
        }
    }

    /// Returns the name of the disk's throttle group.
    pub(crate) fn throttle_name(&self) -> String {
        format!("{}-limits", self.name)
    }

    /// Returns the throttle group for `-object`, which must precede the block nodes; `None` without speed limits.
    pub(crate) fn throttle_group(&self) -> Option<Value> {
        self.throttle.map(|throttle| {
            json!({
                "qom-type": "throttle-group", "id": self.throttle_name(),
                "limits": throttle.limits(),
            })
        })
    }

    /// Returns the block nodes for `-blockdev`, lower nodes first. The last one has the name of the disk. `file` is the
    /// path of the disk's data, `log` the path of the log of writes.
    pub(crate) fn nodes(&self, file: &str, log: Option<&str>) -> Vec<Value> {
        let cache = assay_qemu::cache_option(self.cache);
        let discard = if self.discard { "unmap" } else { "ignore" };
        let node = |part: &str| format!("{}-{part}", self.name);
        let mut nodes = vec![json!({
            "driver": if self.device.is_some() { "host_device" } else { "file" },
            "node-name": node("file"), "filename": file,
            "aio": self.aio.name(), "cache": cache, "discard": discard,
        })];
        let mut under = node("file");
        if let Some(log) = log {
            nodes.push(json!({
                "driver": "file", "node-name": node("logfile"), "filename": log,
            }));
            nodes.push(json!({
                "driver": "blklogwrites", "node-name": node("log"), "file": under,
                "log": node("logfile"), "cache": cache, "discard": discard,
            }));
            under = node("log");
        }
        let mut top = json!({
            "driver": self.format.name(), "node-name": node("top"), "file": under,
            "cache": cache, "discard": discard,
        });
        if self.device.is_some() && self.format == DiskFormat::Raw {
            // The device may be larger.
            top["size"] = json!(self.size);
        }
        if self.format == DiskFormat::Luks {
            top["key-secret"] = json!("secret");
        }
        nodes.push(top);
        let mut under = node("top");
        // Above the format, so that the positions are those of the guest's disk.
        if let Some(bad) = self.bad {
            nodes.push(json!({
                "driver": "blkdebug", "node-name": node("bad"), "image": under,
                "inject-error": bad.rules(), "cache": cache, "discard": discard,
            }));
            under = node("bad");
        }
        if self.throttle.is_some() {
            nodes.push(json!({
                "driver": "throttle", "node-name": node("throttle"), "file": under,
                "throttle-group": self.throttle_name(),
            }));
        }
        nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_the_reason() {
        let disk = Disk {
            aio: Aio::Native,
            ..Disk::scratch("d", 1 << 20)
        };
        insta::assert_snapshot!(disk.check().unwrap_err(), @"disk d: aio=native needs cache none or directsync, not writeback");
        assert!(Disk::scratch("a,b", 512).check().is_err());
        // QEMU uses the name as the device's identifier.
        assert!(Disk::scratch("1G", 512).check().is_err());
        assert!(Disk::scratch("a", 100).check().is_err());
        assert!(Disk::scratch("a", 512).check().is_ok());
    }
}

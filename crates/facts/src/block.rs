//! Reads the tree of block devices from sysfs. Above a device are its partitions and the devices that are built on it
//! (holders); below it are the devices or files that it is built on (slaves, backing files). See the kernel's
//! Documentation/ABI/stable/sysfs-block.

use assay_host::{DeviceNumber, FileKind, Host, HostError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Size of a sector in sysfs in bytes: always 512, independent of the sector size of the device.
const SECTOR: u64 = 512;

/// A block device in sysfs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// Kernel name of the device, such as `vda2` or `dm-0`.
    pub name: String,
    /// Major and minor device number, by which mounts refer to the device.
    pub number: DeviceNumber,
    /// Directory of the device in `/sys/devices`, after its links were resolved.
    pub dir: PathBuf,
}

impl Device {
    /// Returns the device with this number.
    ///
    /// # Errors
    /// The device does not exist or cannot be read.
    pub fn of_number(host: &dyn Host, number: DeviceNumber) -> Result<Self, HostError> {
        let dir = host.realpath(Path::new(&format!("/sys/dev/block/{number}")))?;
        let name = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(Self { name, number, dir })
    }

    /// Returns the block device of a node such as `/dev/vda2`; `None` if the node is not a block
    /// device.
    ///
    /// # Errors
    /// The node does not exist or cannot be read.
    pub fn of_node(host: &dyn Host, node: &Path) -> Result<Option<Self>, HostError> {
        let stat = host.stat(node)?;
        match stat.kind {
            FileKind::BlockDevice => Self::of_number(host, stat.rdev).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the device with this kernel name, as the links in `slaves/` and `holders/` use it.
    ///
    /// # Errors
    /// The device does not exist or cannot be read.
    pub fn of_name(host: &dyn Host, name: &OsStr) -> Result<Self, HostError> {
        Self::at(host, &Path::new("/sys/class/block").join(name))
    }

    /// Returns the device of a directory of sysfs, or of a link to such a directory.
    ///
    /// # Errors
    /// The directory does not exist, or does not belong to a device.
    pub fn at(host: &dyn Host, dir: &Path) -> Result<Self, HostError> {
        let dir = host.realpath(dir)?;
        let text = host.read_text(&dir.join("dev"))?;
        let number = parse_number(text.trim()).ok_or_else(|| HostError::Path {
            path: dir.join("dev"),
            errno: None,
            reason: "expected MAJOR:MINOR".to_owned(),
        })?;
        let name = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(Self { name, number, dir })
    }

    /// Returns the size in bytes.
    ///
    /// # Errors
    /// The size cannot be read.
    pub fn size(&self, host: &dyn Host) -> Result<u64, HostError> {
        let path = self.dir.join("size");
        let text = host.read_text(&path)?;
        let sectors: Option<u64> = text.trim().parse().ok();
        sectors
            .and_then(|sectors| sectors.checked_mul(SECTOR))
            .ok_or_else(|| HostError::Path {
                path,
                errno: None,
                reason: "expected a number of sectors".to_owned(),
            })
    }

    /// Returns whether the device is a partition.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn is_partition(&self, host: &dyn Host) -> Result<bool, HostError> {
        host.exists(&self.dir.join("partition"))
    }

    /// Returns the disk of a partition; `None` for other devices.
    ///
    /// # Errors
    /// The device cannot be read.
    pub fn disk(&self, host: &dyn Host) -> Result<Option<Self>, HostError> {
        match (self.is_partition(host)?, self.dir.parent()) {
            (true, Some(parent)) => Self::at(host, parent).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the partitions of the device.
    ///
    /// # Errors
    /// The partitions cannot be listed.
    pub fn partitions(&self, host: &dyn Host) -> Result<Vec<Self>, HostError> {
        let mut found = Vec::new();
        for name in host.list(&self.dir)? {
            // The name of a partition begins with the name of its disk; this filter saves about a
            // hundred calls.
            if !name.to_string_lossy().starts_with(&self.name) {
                continue;
            }
            let dir = self.dir.join(&name);
            if host.exists(&dir.join("partition"))? {
                found.push(Self::at(host, &dir)?);
            }
        }
        Ok(found)
    }

    /// Returns the devices that are built on this device (holders).
    ///
    /// # Errors
    /// The holders cannot be listed.
    pub fn holders(&self, host: &dyn Host) -> Result<Vec<Self>, HostError> {
        self.links(host, "holders")
    }

    /// Returns the devices on which this device is built (slaves).
    ///
    /// # Errors
    /// The lower devices cannot be listed.
    pub fn slaves(&self, host: &dyn Host) -> Result<Vec<Self>, HostError> {
        self.links(host, "slaves")
    }

    fn links(&self, host: &dyn Host, dir: &str) -> Result<Vec<Self>, HostError> {
        match host.list(&self.dir.join(dir)) {
            Ok(names) => names.iter().map(|name| Self::of_name(host, name)).collect(),
            // Partitions have no `slaves`.
            Err(error) if error.is_absent() => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the file behind a loop device; `None` for other devices.
    ///
    /// # Errors
    /// The path cannot be read.
    pub fn backing_file(&self, host: &dyn Host) -> Result<Option<PathBuf>, HostError> {
        match host.read_text(&self.dir.join("loop/backing_file")) {
            Ok(text) => Ok(Some(PathBuf::from(text.trim_end_matches('\n')))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the transport of the device, such as `nvme`, `ata` or `virtio-blk`. It is derived from the path in the
    /// device tree.
    #[must_use]
    pub fn transport(&self) -> Option<&'static str> {
        let dir = self.dir.to_string_lossy();
        let parts: Vec<&str> = dir.split('/').collect();
        let some = |start: &str| {
            parts.iter().any(|part| {
                part.strip_prefix(start)
                    .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
            })
        };
        match () {
            () if parts.contains(&"virtual") && !some("nvme") => Some("virtual"),
            () if some("virtio") && some("host") => Some("virtio-scsi"),
            () if some("virtio") => Some("virtio-blk"),
            () if some("nvme") => Some("nvme"),
            () if some("usb") => Some("usb"),
            () if some("ata") => Some("ata"),
            () if some("mmc") => Some("mmc"),
            () if some("session") => Some("iscsi"),
            () if some("end_device-") => Some("sas"),
            () if some("rport-") => Some("fibre-channel"),
            () if some("vmbus_") || dir.contains("/VMBUS") => Some("hyper-v"),
            () if some("host") => Some("scsi"),
            () if dir.contains("/vbd-") => Some("xen"),
            () => None,
        }
    }

    /// Returns the port number of the ATA controller; `None` for other transports.
    #[must_use]
    pub fn ata_port(&self) -> Option<u32> {
        let mut parts = self.dir.components();
        parts.find_map(|part| {
            let part = part.as_os_str().to_str()?;
            part.strip_prefix("ata")?.parse().ok()
        })
    }

    /// Returns the sysfs directory of the controller, which is the nearest PCI device above this device.
    #[must_use]
    pub fn pci_device(&self) -> Option<&Path> {
        self.dir.ancestors().find(|dir| {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            // 0000:00:1f.2
            name.len() >= 12 && name.matches(':').count() == 2 && name.contains('.')
        })
    }
}

/// Parses `MAJOR:MINOR`, such as `254:0`.
pub(crate) fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// Maximum number of stacked devices. A deeper stack is treated as a cycle.
pub(crate) const MAX_DEPTH: usize = 16;

/// Returns all devices whose contents a write to `device` changes: the device itself, its partitions, and all devices
/// that are built on one of them.
pub(crate) fn everything_above(
    host: &dyn Host,
    device: &Device,
) -> Result<BTreeSet<Device>, HostError> {
    let mut found = BTreeSet::new();
    let mut pending = vec![device.clone()];
    while let Some(device) = pending.pop() {
        if found.contains(&device) {
            continue;
        }
        pending.extend(device.partitions(host)?);
        pending.extend(device.holders(host)?);
        found.insert(device);
    }
    Ok(found)
}

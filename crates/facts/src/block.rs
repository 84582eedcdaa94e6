//! The tree of block devices in sysfs: partitions, what lies above (holders) and below (slaves,
//! backing files). See the kernel's Documentation/ABI/stable/sysfs-block.

use assay_host::{DeviceNumber, FileKind, Host, HostError};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Sectors in sysfs are 512 bytes, whatever the device says.
const SECTOR: u64 = 512;

/// A block device in sysfs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Device {
    /// Kernel name: `vda2`, `dm-0`.
    pub name: String,
    /// Its number.
    pub number: DeviceNumber,
    /// Its directory in `/sys/devices`, links resolved.
    pub dir: PathBuf,
}

impl Device {
    /// The device with a number.
    ///
    /// # Errors
    /// There is none, or it cannot be looked at.
    pub fn of_number(host: &dyn Host, number: DeviceNumber) -> Result<Self, HostError> {
        let dir = host.realpath(Path::new(&format!("/sys/dev/block/{number}")))?;
        let name = dir
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        Ok(Self { name, number, dir })
    }

    /// The device that a node such as `/dev/vda2` stands for; none when it is no block device.
    ///
    /// # Errors
    /// The node is not there or cannot be looked at.
    pub fn of_node(host: &dyn Host, node: &Path) -> Result<Option<Self>, HostError> {
        let stat = host.stat(node)?;
        match stat.kind {
            FileKind::BlockDevice => Self::of_number(host, stat.rdev).map(Some),
            _ => Ok(None),
        }
    }

    /// A device by kernel name, as the links in `slaves/` and `holders/` say it.
    ///
    /// # Errors
    /// There is none, or it cannot be looked at.
    pub fn of_name(host: &dyn Host, name: &OsStr) -> Result<Self, HostError> {
        Self::at(host, &Path::new("/sys/class/block").join(name))
    }

    /// The device that a directory of sysfs, or a link to one, stands for.
    ///
    /// # Errors
    /// It is not there, or is no device.
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

    /// Size in bytes.
    ///
    /// # Errors
    /// It cannot be read.
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

    /// Whether it is a part of a disk.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn is_partition(&self, host: &dyn Host) -> Result<bool, HostError> {
        host.exists(&self.dir.join("partition"))
    }

    /// For a partition, the disk it lies on.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn disk(&self, host: &dyn Host) -> Result<Option<Self>, HostError> {
        match (self.is_partition(host)?, self.dir.parent()) {
            (true, Some(parent)) => Self::at(host, parent).map(Some),
            _ => Ok(None),
        }
    }

    /// Its partitions.
    ///
    /// # Errors
    /// They cannot be listed.
    pub fn partitions(&self, host: &dyn Host) -> Result<Vec<Self>, HostError> {
        let mut found = Vec::new();
        for name in host.list(&self.dir)? {
            // Partitions are named after their disk; asking only these spares a hundred calls.
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

    /// The devices that are built on it.
    ///
    /// # Errors
    /// They cannot be listed.
    pub fn holders(&self, host: &dyn Host) -> Result<Vec<Self>, HostError> {
        self.links(host, "holders")
    }

    /// The devices that it is built on.
    ///
    /// # Errors
    /// They cannot be listed.
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

    /// For a loop device, the file behind it.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn backing_file(&self, host: &dyn Host) -> Result<Option<PathBuf>, HostError> {
        match host.read_text(&self.dir.join("loop/backing_file")) {
            Ok(text) => Ok(Some(PathBuf::from(text.trim_end_matches('\n')))),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How it is attached, from its place in the tree of devices: `nvme`, `ata`, `virtio-blk`.
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

    /// The port of its controller, for ATA.
    #[must_use]
    pub fn ata_port(&self) -> Option<u32> {
        let mut parts = self.dir.components();
        parts.find_map(|part| {
            let part = part.as_os_str().to_str()?;
            part.strip_prefix("ata")?.parse().ok()
        })
    }

    /// The directory of the nearest PCI device above it: its controller.
    #[must_use]
    pub fn pci_device(&self) -> Option<&Path> {
        self.dir.ancestors().find(|dir| {
            let name = dir.file_name().unwrap_or_default().to_string_lossy();
            // 0000:00:1f.2
            name.len() >= 12 && name.matches(':').count() == 2 && name.contains('.')
        })
    }
}

/// Reads `254:0`.
pub(crate) fn parse_number(text: &str) -> Option<DeviceNumber> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceNumber {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
    })
}

/// How deep devices may be stacked before we take it for a circle.
pub(crate) const MAX_DEPTH: usize = 16;

/// Everything that would be hit by writing to `device`: itself, its partitions, and all that is
/// built on them.
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

//! Builds the QEMU objects of a disk, for the command line or for hot-plug.

use crate::disk::{Bus, Disk, DiskFormat, SECRET};
use crate::error::LabError;
use crate::files::DiskFiles;
use serde_json::{Value, json};
use std::path::Path;

/// An object that QEMU must create.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// A thread, a throttle group or a secret.
    Object(Value),
    /// A block node, that is, an image or a layer above it.
    Node(Value),
    /// A controller, or the disk itself.
    Device(Value),
}

impl Part {
    /// Returns the option for the object on QEMU's command line.
    pub(crate) fn option(&self) -> (&'static str, &Value) {
        match self {
            Self::Object(value) => ("-object", value),
            Self::Node(value) => ("-blockdev", value),
            Self::Device(value) => ("-device", value),
        }
    }

    /// Returns the QMP command that creates the object.
    pub(crate) fn command(&self) -> (&'static str, &Value) {
        match self {
            Self::Object(value) => ("object-add", value),
            Self::Node(value) => ("blockdev-add", value),
            Self::Device(value) => ("device_add", value),
        }
    }
}

/// Id of the QEMU object that contains the passphrase.
pub(crate) const SECRET_ID: &str = "secret";
/// Id of the controller for all virtio-scsi disks without their own I/O thread.
pub(crate) const SCSI_ID: &str = "scsi";

/// Names of the QEMU objects of a disk, in the order in which they are removed.
pub(crate) struct Names {
    pub(crate) devices: [String; 2],
    pub(crate) nodes: [String; 6],
    pub(crate) objects: [String; 2],
}

impl Names {
    pub(crate) fn of(disk: &str) -> Self {
        let part = |ending: &str| format!("{disk}-{ending}");
        Self {
            devices: [disk.to_owned(), part("scsi")],
            nodes: ["throttle", "bad", "top", "log", "logfile", "file"].map(part),
            objects: ["io", "limits"].map(part),
        }
    }
}

/// Resources of the bus that earlier disks already use.
#[derive(Debug, Default)]
pub(crate) struct Places {
    pub(crate) secret: bool,
    pub(crate) scsi: bool,
    pub(crate) sata: usize,
    pub(crate) ide: usize,
}

impl Places {
    /// Returns the objects of a disk in the order of creation.
    ///
    /// # Errors
    /// The bus has no room, or QEMU does not accept a name.
    pub(crate) fn parts(&mut self, disk: &Disk, files: &DiskFiles) -> Result<Vec<Part>, LabError> {
        disk.check()?;
        let mut parts = Vec::new();
        if disk.format == DiskFormat::Luks && !self.secret {
            self.secret = true;
            parts.push(Part::Object(
                json!({ "qom-type": "secret", "id": SECRET_ID, "data": SECRET }),
            ));
        }
        parts.extend(disk.throttle_group().map(Part::Object));
        let text = |path: &Path| match path.to_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(disk.refuse(format!(
                "{}: QEMU takes only names in UTF-8",
                path.display()
            ))),
        };
        let log = files.logged.as_ref().map(|logged| text(&logged.log));
        let nodes = disk.nodes(&text(&files.data)?, log.transpose()?.as_deref());
        parts.extend(nodes.into_iter().map(Part::Node));
        self.device(disk, &mut parts)?;
        Ok(parts)
    }

    /// Adds the disk's device, and its controller if this is the first disk on it.
    pub(crate) fn device(&mut self, disk: &Disk, parts: &mut Vec<Part>) -> Result<(), LabError> {
        let iothread = format!("{}-io", disk.name);
        if disk.iothread {
            parts.push(Part::Object(
                json!({ "qom-type": "iothread", "id": iothread }),
            ));
        }
        let mut device = json!({
            "drive": disk.node(), "serial": disk.name, "id": disk.name,
            "write-cache": match disk.cache.shows_write_cache() {
                    true => "on",
                    false => "off",
                },
        });
        if let Some(werror) = disk.werror {
            device["werror"] = json!(werror.name());
        }
        match disk.bus {
            Bus::VirtioBlk => {
                device["driver"] = json!("virtio-blk-pci");
                if let Some(queues) = disk.queues {
                    device["num-queues"] = json!(queues);
                }
                if disk.iothread {
                    device["iothread"] = json!(iothread);
                }
            }
            Bus::VirtioScsi => {
                // A thread and queues belong to a controller, so such a disk gets its own.
                let own = format!("{}-scsi", disk.name);
                let alone = disk.iothread || disk.queues.is_some();
                let id = if alone { &own } else { SCSI_ID };
                let mut controller = json!({ "driver": "virtio-scsi-pci", "id": id });
                if let Some(queues) = disk.queues {
                    controller["num_queues"] = json!(queues);
                }
                if disk.iothread {
                    controller["iothread"] = json!(iothread);
                }
                if alone {
                    parts.push(Part::Device(controller));
                } else if !self.scsi {
                    self.scsi = true;
                    parts.push(Part::Device(controller));
                }
                device["driver"] = json!("scsi-hd");
                device["bus"] = json!(format!("{id}.0"));
            }
            Bus::Sata => {
                const PORTS: usize = 6;
                let controller = format!("sata{}", self.sata / PORTS);
                if self.sata.is_multiple_of(PORTS) {
                    parts.push(Part::Device(
                        json!({ "driver": "ich9-ahci", "id": controller }),
                    ));
                }
                device["driver"] = json!("ide-hd");
                device["bus"] = json!(format!("{controller}.{}", self.sata % PORTS));
                self.sata += 1;
            }
            Bus::Ide => {
                if self.ide == 4 {
                    return Err(disk.refuse("a guest has room for four IDE disks"));
                }
                device["driver"] = json!("ide-hd");
                device["bus"] = json!(format!("ide.{}", self.ide / 2));
                device["unit"] = json!(self.ide % 2);
                self.ide += 1;
            }
            Bus::Nvme => device["driver"] = json!("nvme"),
        }
        parts.push(Part::Device(device));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(disk: &Disk) -> DiskFiles {
        crate::files::disk_file_names(Path::new("/g"), disk)
    }

    #[test]
    fn a_fifth_ide_disk_has_no_room() {
        let disk = Disk {
            bus: Bus::Ide,
            ..Disk::scratch("d", 512)
        };
        let mut places = Places::default();
        for _ in 0..4 {
            places.parts(&disk, &files(&disk)).unwrap();
        }
        assert!(places.parts(&disk, &files(&disk)).is_err());
    }

    /// All QEMU objects of a disk must have names that unplugging can derive from the disk's name.
    #[test]
    fn every_part_bears_a_name_that_unplugging_knows() {
        let text = "64M,bus=virtio-scsi,iothread,queues=3,eio=1M+4k,format=luks";
        let mut disk = Disk::parse(text, "d").unwrap();
        disk.logged = true;
        disk.throttle = Some(crate::disk::Throttle {
            iops: 1,
            ..Default::default()
        });
        let names = Names::of("d");
        let parts = Places::default().parts(&disk, &files(&disk)).unwrap();
        assert_eq!(parts.len(), 1 + 1 + 6 + 3);
        for part in &parts {
            let known = match part {
                Part::Object(value) if value["id"] == SECRET_ID => true,
                Part::Object(value) => names.objects.iter().any(|name| value["id"] == **name),
                Part::Node(value) => names.nodes.iter().any(|name| value["node-name"] == **name),
                Part::Device(value) => names.devices.iter().any(|name| value["id"] == **name),
            };
            assert!(known, "{part:?}");
        }
    }

    #[test]
    fn what_can_be_shared_is_made_once() {
        let one = Disk::parse("64M,bus=virtio-scsi,format=luks", "one").unwrap();
        let mut places = Places::default();
        let first = places.parts(&one, &files(&one)).unwrap();
        let other = places.parts(&one, &files(&one)).unwrap();
        assert_eq!(first.len(), other.len() + 2);
    }
}

//! Measured layers in a guest: the virtual disk, and the layers on it.

use super::image::open_options;
use super::{Building, On, Recipe};
use crate::ladder::layer_names::{FileSystem, LadderPart};
use assay_lab::Disk;
use assay_lab::disk::DiskFormat;
use assay_model::LayerKind;

/// Additional size of a disk for the headers of its layers, in bytes (LUKS2 16 MiB, LVM 1 to 4 MiB).
const HEADERS: u64 = 64 << 20;
/// Additional size of a disk for a file system, in bytes. mkfs.xfs requires a device of at least 300 MiB, btrfs of 109
/// MiB. The image is sparse.
const TABLES: u64 = 512 << 20;

impl Building<'_> {
    /// Adds the selected layers of the guest: the raw virtual disk, its image format, LUKS, LVM and file systems.
    /// Returns the index of the first file system; without a file system, the index of the topmost layer.
    pub(super) fn guest(&mut self, file: usize) -> usize {
        let disk = self.choice.disk;
        let raw = Disk {
            format: DiskFormat::Raw,
            ..disk.clone()
        };
        let bus = disk.bus.name();
        let name = format!("virtual disk ({bus})");
        let recipe = self.on_disk(&raw, "disk-raw", &[]);
        let mut top = self.add(
            Some(file),
            "disk-raw",
            &name,
            LayerKind::VirtualDisk,
            recipe,
        );
        self.set(top, &open_options(disk));
        self.set(
            top,
            &[
                ("bus", bus.to_owned()),
                ("iothread", disk.iothread.to_string()),
            ],
        );
        self.holds(
            top,
            "QEMU's block layer, the controller, the exits of the guest, the guest's kernel and fio in \
             the guest",
        );
        self.cached(top);
        if self.formatted() {
            let name = format!("disk-{}", disk.format.name());
            let recipe = self.on_disk(disk, &name, &[]);
            top = self.image(top, disk, &name, recipe);
        }
        let mut on = Vec::new();
        if self.wants(LadderPart::Luks) {
            on.push(On::Luks);
            let recipe = self.on_disk(disk, "luks", &on);
            top = self.add(Some(top), "luks", "LUKS", LayerKind::Crypt, recipe);
            self.set(top, &[("cipher", "aes-xts-plain64".to_owned())]);
        }
        if self.wants(LadderPart::Lvm) {
            on.push(On::Lvm);
            let recipe = self.on_disk(disk, "lvm", &on);
            top = self.add(Some(top), "lvm", "LVM", LayerKind::LogicalVolume, recipe);
        }
        let mut first = None;
        for system in [FileSystem::Ext4, FileSystem::Xfs, FileSystem::Btrfs] {
            if !self.wants(LadderPart::FileSystem(system)) {
                continue;
            }
            let name = system.name();
            let mut on = on.clone();
            on.push(On::FileSystem(system));
            let recipe = self.on_disk(disk, name, &on);
            let rung = self.add(Some(top), name, name, LayerKind::FileSystem, recipe);
            self.holds(rung, "its journal or log, and the writes it makes of one");
            first = first.or(Some(rung));
        }
        first.unwrap_or(top)
    }

    fn on_disk(&self, disk: &Disk, name: &str, on: &[On]) -> Recipe {
        let tables = on.iter().any(|on| matches!(on, On::FileSystem(_)));
        let size = disk.size;
        let more = if tables { size / 4 + TABLES } else { HEADERS };
        Recipe::Disk {
            disk: Disk {
                name: name.to_owned(),
                size: (size + more).next_multiple_of(1 << 20),
                ..disk.clone()
            },
            on: on.to_vec(),
        }
    }
}

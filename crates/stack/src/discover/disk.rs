//! Disks and their interfaces (SATA, NVMe, USB, …). In a guest, only the front end of a virtual disk is visible.

use super::{Finder, shorten_size, yes_or_no};
use assay_facts::block::Device;
use assay_model::stack::{Layer, LayerKind};
use std::path::Path;

/// Model names by which virtual disks are recognised.
const VIRTUAL: [&str; 8] = [
    "qemu",
    "vbox",
    "vmware",
    "virtual disk",
    "virtual disc",
    "amazon elastic block store",
    "persistentdisk",
    "xen",
];

impl Finder<'_> {
    pub(super) fn disk(&mut self, at: usize, device: &Device) {
        let queue = device.dir.join("queue");
        let model = self.line(&device.dir.join("device/model"));
        if let Some(model) = &model {
            self.set(at, "model", model.clone());
        }
        for file in ["logical_block_size", "physical_block_size"] {
            if let Some(value) = self.line(&queue.join(file)) {
                self.set(at, file, shorten_size(&value));
            }
        }
        for file in ["write_cache", "nr_requests", "zoned"] {
            let value = self.line(&queue.join(file));
            if let Some(value) = value.filter(|value| value != "none") {
                self.set(at, file, value);
            }
        }
        if let Some(rotational) = self.number(&queue.join("rotational")) {
            self.set(at, "rotational", yes_or_no(rotational == 1));
        }
        if let Some(size) = self.number(&queue.join("discard_granularity")) {
            self.set(at, "discard", yes_or_no(size > 0));
        }
        let chosen = self.line(&queue.join("scheduler")).and_then(|line| {
            let (_, rest) = line.split_once('[')?;
            Some(rest.split_once(']')?.0.to_owned())
        });
        if let Some(scheduler) = chosen {
            self.set(at, "scheduler", scheduler);
        }
        let transport = device.transport().unwrap_or_default();
        if transport == "virtual" && device.name.starts_with("zram") {
            return self.set(at, "data", "in memory");
        }
        let slaves = device.slaves(self.host).unwrap_or_default();
        if !slaves.is_empty() {
            return self.slaves(at, device);
        }
        let vendor = self.line(&device.dir.join("device/vendor"));
        let named = [model, vendor].into_iter().flatten().any(|name| {
            let name = name.to_lowercase();
            VIRTUAL.iter().any(|part| name.contains(part))
        });
        if transport.starts_with("virtio") || matches!(transport, "xen" | "hyper-v") || named {
            self.virtual_front(at, device, transport);
        } else if !transport.is_empty() {
            self.link(at, device, transport);
        }
    }

    /// Adds the properties of a virtual disk that are visible in its guest.
    fn virtual_front(&mut self, at: usize, device: &Device, transport: &str) {
        let dmi = |file: &str| self.line(&Path::new("/sys/class/dmi/id").join(file));
        let vendor = dmi("sys_vendor");
        let mut layer = Layer::new(LayerKind::VirtualDisk, format!("virtual {}", device.name));
        let mut set = |key: &str, value: String| layer.settings.insert(key.to_owned(), value);
        set("bus", bus_name(transport, device).to_owned());
        if let Some(vendor) = vendor {
            set("hypervisor", vendor);
        }
        if let Some(product) = dmi("product_name") {
            set("machine", product);
        }
        layer.unknown.push(
            "cache mode, image and what lies below: only the host can tell (`assay stack NAME` there)"
                .to_owned(),
        );
        let below = self.enter(format!("front:{}", device.number), layer, |_, _| ());
        self.stand(at, below);
    }

    /// Adds the interface of a disk, with its speed, as a layer.
    fn link(&mut self, at: usize, device: &Device, transport: &str) {
        let mut layer = Layer::new(LayerKind::Link, transport);
        let mut set = |key: &str, value: Option<String>| {
            if let Some(value) = value {
                layer.settings.insert(key.to_owned(), value);
            }
        };
        if let Some(port) = device.ata_port() {
            let dir = format!("/sys/class/ata_link/link{port}");
            let dir = Path::new(&dir);
            set("speed", self.line(&dir.join("sata_spd")));
            set("speed_max", self.line(&dir.join("hw_sata_spd_limit")));
        }
        let mut key = format!("link:{}", device.number);
        if let Some(dir) = device.pci_device() {
            for (file, name) in [
                ("current_link_speed", "pcie_speed"),
                ("current_link_width", "pcie_width"),
                ("max_link_speed", "pcie_speed_max"),
                ("max_link_width", "pcie_width_max"),
            ] {
                set(name, self.line(&dir.join(file)));
            }
            // Disks on one controller share its link.
            key = format!("link:{}:{transport}", dir.display());
        }
        let below = self.enter(key, layer, |_, _| ());
        self.stand(at, below);
    }
}

fn bus_name(transport: &str, device: &Device) -> &'static str {
    match transport {
        "virtio-blk" => "virtio-blk",
        "virtio-scsi" => "virtio-scsi",
        "nvme" => "nvme",
        // Two devices per port suggest parallel ports; only the controller's driver could confirm
        // it.
        "ata" if device.dir.to_string_lossy().contains("0000:00:01.1") => "ide",
        "ata" => "sata or ide",
        "usb" => "usb",
        "xen" => "xen",
        "hyper-v" => "hyper-v",
        _ => "scsi",
    }
}

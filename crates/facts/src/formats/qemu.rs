//! Parses QEMU's command line (qemu(1)): the virtual machine and those disk settings that affect performance.
//! Supports command lines of plain QEMU, libvirt and Proxmox. Addresses of network storage, serial numbers and
//! secrets are dropped.

mod controllers;
mod nodes;
mod options;
mod redact;

pub use nodes::{Storage, protocol};

/// Word lists of the redaction rules, for the shell collector, which applies the same rules.
pub(crate) mod lists {
    pub(crate) use super::options::WITHOUT_ARGUMENT;
    pub(crate) use super::redact::{KEYS, OPTIONS};
}

pub(crate) use redact::file as redact_file;
pub use redact::redact;

use crate::limits::{Limits, THROTTLED};
use nodes::{Chain, Nodes};
use options::{Map, is_on, options, settings};
use std::collections::BTreeMap;

/// The processor model of an emulated PC if the command line has no `-cpu` (qemu(1), -cpu).
pub const DEFAULT_CPU: &str = "qemu64";

/// A virtual machine as its process was started. Disks that were hot-plugged afterwards are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QemuMachine {
    /// Name of the machine: the argument of `-name`.
    pub name: Option<String>,
    /// Argument of `-id`. On Proxmox this is the number of the guest.
    pub id: Option<String>,
    /// `machine` (the board), `cpu`, `accel`, `memory` and `smp`. Each value is the argument, or QEMU's default.
    pub settings: BTreeMap<String, String>,
    /// Disks in the order of the command line, without empty drives and firmware.
    pub disks: Vec<VirtualDisk>,
    /// Arguments that were not parsed and may affect performance.
    pub unknown: Vec<String>,
}

/// A virtual disk with its controller, block drivers and storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualDisk {
    /// Id on the command line; a number if there is no id.
    pub id: String,
    /// Controller: `virtio-blk`, `virtio-scsi`, `ide`, `sata`, `nvme`, `usb`, or the name of another controller.
    pub bus: String,
    /// Settings of the disk, such as `cache`, `aio`, `discard`, `iothread`, `detect_zeroes` and `queues`.
    pub settings: BTreeMap<String, String>,
    /// Block drivers between the disk and its storage, from the top. `probed` means that QEMU detects the format from
    /// the content.
    pub formats: Vec<String>,
    /// I/O limits on the command line. If the command line refers to limits that are set elsewhere, this field is empty
    /// and the setting [`THROTTLED`] is present.
    pub limits: Limits,
    /// Where the data of the disk are stored.
    pub storage: Storage,
}

/// Returns whether the short name of a process (`/proc/PID/comm`) is that of QEMU.
#[must_use]
pub fn is_qemu(comm: &str) -> bool {
    comm.starts_with("qemu-system-") || matches!(comm, "kvm" | "qemu-kvm" | "qemu")
}

/// Splits `/proc/PID/cmdline` into arguments.
#[must_use]
pub fn argv(cmdline: &[u8]) -> Vec<String> {
    let text = cmdline.strip_suffix(b"\0").unwrap_or(cmdline);
    text.split(|&byte| byte == 0)
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect()
}

/// Parses a command line. Never fails, because unknown arguments are ignored.
#[must_use]
pub fn parse(argv: &[String]) -> QemuMachine {
    let mut machine = QemuMachine::default();
    let mut parts = Parts::default();
    for (option, argument) in options(argv) {
        let mut set = |key: &str, value: Option<&String>| {
            if let Some(value) = value {
                machine.settings.insert(key.to_owned(), value.clone());
            }
        };
        match option.as_str() {
            "name" => machine.name = settings(&argument, "guest").remove("guest"),
            "id" => machine.id = Some(argument),
            "M" | "machine" => {
                let map = settings(&argument, "type");
                set("machine", map.get("type"));
                set("accel", map.get("accel"));
            }
            "cpu" => set("cpu", Some(&argument)),
            "accel" => set("accel", settings(&argument, "accel").get("accel")),
            "enable-kvm" => set("accel", Some(&"kvm".to_owned())),
            "m" => set("memory", settings(&argument, "size").get("size")),
            "smp" => set("cpus", settings(&argument, "cpus").get("cpus")),
            "blockdev" => {
                let map = settings(&argument, "");
                if let Some(name) = map.get("node-name") {
                    parts.nodes.insert(name.clone(), map);
                }
            }
            "object" => {
                let map = settings(&argument, "qom-type");
                let limits = Limits::of_qemu(&map);
                if let Some(id) = map.get("id").filter(|_| is_throttle_group(&map)) {
                    parts.groups.insert(id.clone(), limits);
                }
            }
            "drive" => parts.drives.push(settings(&argument, "")),
            "device" => parts.devices.push(settings(&argument, "driver")),
            "hda" | "hdb" | "hdc" | "hdd" => {
                let drive = [("file", argument.as_str()), ("if", "ide")];
                let map = drive.map(|(key, value)| (key.to_owned(), value.to_owned()));
                parts.drives.push(map.into());
            }
            "readconfig" if !argument.starts_with("/usr/share/") => machine
                .unknown
                .push("options in a file of -readconfig are not looked at".to_owned()),
            _ => {}
        }
    }
    let board = machine.settings.get("machine").map_or("pc", String::as_str);
    machine.disks = parts.disks(board);
    complete(argv, &mut machine);
    machine
}

/// Returns the file name of the QEMU program if the program emulates a PC. Programs for other architectures have
/// another default processor.
fn pc_program(argv: &[String]) -> Option<&str> {
    let name = argv.first()?.rsplit('/').next()?;
    matches!(name, "qemu-system-x86_64" | "kvm" | "qemu-kvm").then_some(name)
}

/// Adds the default processor if there is no `-cpu`, and applies `-snapshot` to all disks.
fn complete(argv: &[String], machine: &mut QemuMachine) {
    let accel = machine.settings.get("accel");
    let accelerated = pc_program(argv).is_some_and(|name| {
        name.ends_with("kvm") || accel.is_some_and(|accel| accel.starts_with("kvm"))
    });
    if accelerated {
        let cpu = machine.settings.entry("cpu".to_owned());
        cpu.or_insert_with(|| DEFAULT_CPU.to_owned());
    }
    if options(argv).iter().any(|(option, _)| option == "snapshot") {
        for disk in &mut machine.disks {
            disk.settings.insert("snapshot".to_owned(), "on".to_owned());
        }
    }
}

#[derive(Default)]
struct Parts {
    nodes: Nodes,
    drives: Vec<Map>,
    devices: Vec<Map>,
    /// Limits of throttle groups by name.
    groups: BTreeMap<String, Limits>,
}

impl Parts {
    fn disks(&self, board: &str) -> Vec<VirtualDisk> {
        let named = self.devices.iter().filter_map(|device| {
            let drive = device.get("drive")?;
            let map = self
                .drives
                .iter()
                .find(|drive_map| drive_map.get("id") == Some(drive));
            let chain = match map {
                Some(map) => Chain::of_drive(map),
                None => Chain::of_node(&self.nodes, drive)?,
            };
            let id = device.get("id").unwrap_or(drive).clone();
            let bus = controllers::bus(device, &self.devices, board);
            let mut disk = describe(id, bus, chain, map, &self.groups);
            self.device(device, map, board, &mut disk);
            Some((device.get("driver").cloned().unwrap_or_default(), disk))
        });
        let disks = named
            .filter(|(driver, _)| !driver.ends_with("-cd") && driver != "floppy")
            .map(|(_, disk)| disk);
        let own = self.drives.iter().enumerate().filter_map(|(at, map)| {
            let bus = interface(map.get("if").map(String::as_str), board)?;
            if map.get("media").is_some_and(|media| media == "cdrom") {
                return None;
            }
            let id = map.get("id").cloned();
            let id = id.unwrap_or_else(|| format!("drive{at}"));
            let mut disk = describe(
                id,
                bus.to_owned(),
                Chain::of_drive(map),
                Some(map),
                &self.groups,
            );
            self.device(&Map::new(), Some(map), board, &mut disk);
            Some(disk)
        });
        disks
            .chain(own)
            .filter(|disk| disk.storage != Storage::Nothing)
            .collect()
    }

    /// Adds the settings of the device itself, of its controller and of its throttling to `disk`.
    fn device(&self, device: &Map, drive: Option<&Map>, board: &str, disk: &mut VirtualDisk) {
        let controller = controllers::controller(device, &self.devices, board);
        let mut note = |key: &str, value: &str| {
            disk.settings.insert(key.to_owned(), value.to_owned());
        };
        let write_cache = device.get("write-cache").filter(|value| *value != "auto");
        let drive_says = drive.and_then(|map| {
            let mode = map.get("cache").map(String::as_str);
            let explicit = map.get("cache.writeback").map(|value| is_on(value));
            explicit.or(mode.map(|mode| !matches!(mode, "writethrough" | "directsync")))
        });
        let write_back = write_cache.map_or(drive_says.unwrap_or(true), |value| is_on(value));
        note("write_cache", if write_back { "on" } else { "off" });
        let threads = [Some(device), controller].into_iter().flatten();
        let thread = threads.into_iter().any(|map| {
            map.contains_key("iothread")
                || map.keys().any(|key| key.starts_with("iothread-vq-mapping"))
        });
        note("iothread", if thread { "yes" } else { "no" });
        for (key, name) in [
            ("num-queues", "queues"),
            ("num_queues", "queues"),
            ("queue-size", "queue_size"),
            ("logical_block_size", "logical_block_size"),
            ("physical_block_size", "physical_block_size"),
            ("discard_granularity", "discard_granularity"),
            ("rotation_rate", "rotation_rate"),
            ("werror", "werror"),
            ("rerror", "rerror"),
        ] {
            let found = device
                .get(key)
                .or_else(|| drive.and_then(|map| map.get(key)))
                .or_else(|| controller.and_then(|map| map.get(key)));
            if let Some(value) = found {
                note(name, value);
            }
        }
        let flag = |key: &str| disk.settings.get(key).is_some_and(|value| value == "on");
        let mode = cache_mode(write_back, flag("direct"), flag("no_flush"));
        disk.settings.insert("cache".to_owned(), mode.to_owned());
    }
}

fn is_throttle_group(map: &Map) -> bool {
    map.get("qom-type")
        .is_some_and(|kind| kind == "throttle-group")
}

fn describe(
    id: String,
    bus: String,
    chain: Chain,
    drive: Option<&Map>,
    groups: &BTreeMap<String, Limits>,
) -> VirtualDisk {
    let on = |flag: bool| if flag { "on" } else { "off" }.to_owned();
    let mut settings: BTreeMap<String, String> = [
        ("direct", on(chain.direct)),
        ("no_flush", on(chain.no_flush)),
        ("aio", chain.aio),
        (
            "discard",
            if chain.discard { "unmap" } else { "ignore" }.to_owned(),
        ),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    if let Some(zeroes) = chain.detect_zeroes {
        settings.insert("detect_zeroes".to_owned(), zeroes);
    }
    if chain.read_only {
        settings.insert("read_only".to_owned(), "yes".to_owned());
    }
    let of_group = chain.group.as_ref().and_then(|group| groups.get(group));
    let limits = match chain.limits.is_empty() {
        true => of_group.cloned().unwrap_or_default(),
        false => chain.limits,
    };
    // Proxmox VE creates a group for each drive and sets limits later. libvirt creates a group only
    // for limits, named `libvirt_iotune_group_…` or by the user.
    let elsewhere = chain
        .group
        .is_some_and(|group| of_group.is_none() && !group.starts_with("throttle-drive-"));
    if elsewhere {
        settings.insert(THROTTLED.to_owned(), "yes".to_owned());
    }
    limits.tell(&mut settings);
    if drive
        .and_then(|map| map.get("snapshot"))
        .is_some_and(|value| is_on(value))
    {
        settings.insert("snapshot".to_owned(), "on".to_owned());
    }
    VirtualDisk {
        id,
        bus,
        settings,
        formats: chain.formats,
        limits,
        storage: chain.storage,
    }
}

/// Returns the `cache=` value for a combination of cache settings (table of `cache=` in qemu(1)).
#[must_use]
pub fn cache_mode(write_back: bool, direct: bool, no_flush: bool) -> &'static str {
    match (write_back, direct, no_flush) {
        (true, false, false) => "writeback",
        (true, true, false) => "none",
        (false, false, false) => "writethrough",
        (false, true, false) => "directsync",
        (true, false, true) => "unsafe",
        (_, _, true) => "unsafe, as a combination without a name",
    }
}

/// Returns the bus of `-drive if=`. Returns `None` for drives that a `-device` uses, and for devices that are not
/// disks. The default depends on the board (MachineClass::block_default_type).
fn interface(of: Option<&str>, board: &str) -> Option<&'static str> {
    let q35 = board.contains("q35");
    let default = match board {
        _ if board.starts_with("virt") || board.starts_with("s390") => "virtio",
        _ if board.starts_with("pseries") => "scsi",
        _ => "ide",
    };
    match of.unwrap_or(default) {
        "ide" if q35 => Some("sata"),
        "ide" => Some("ide"),
        "virtio" => Some("virtio-blk"),
        "scsi" => Some("scsi"),
        "sd" => Some("sd"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;

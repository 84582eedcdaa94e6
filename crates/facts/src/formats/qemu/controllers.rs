//! Finds the controller of a disk on QEMU's command line, and the name of its bus.
//!
//! `bus=ID.N` refers to the bus explicitly. Without `bus=`, QEMU uses the last matching controller
//! (`qbus_find_recursive`, softmmu/qdev-monitor.c; `bus_add_child` inserts at the front). A controller without `id=`
//! gets generated bus names: `scsi.0`, `ide.2` and so on. The numbers continue after those of the board's buses of the
//! same kind (`qbus_init_internal`, hw/core/bus.c). All three cases were verified with QEMU 7.2.

use super::interface;
use super::options::Map;

/// Kind of bus that connects disks to a controller.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scsi,
    Ide,
}

/// Returns the controller of the disk `device` among all `devices`. Returns `None` if the disk needs no controller, or
/// uses a controller of the board.
pub(super) fn controller<'a>(device: &Map, devices: &'a [Map], board: &str) -> Option<&'a Map> {
    let kind = bus_kind_of_disk(driver_of(device));
    let ours = |map: &&Map| kind.is_some() && kind == bus_kind_of_controller(driver_of(map));
    let Some(bus) = device.get("bus") else {
        let before = devices.iter().take_while(|other| *other != device);
        return before.filter(ours).last();
    };
    let (id, number) = bus.rsplit_once('.').unwrap_or((bus, "0"));
    let known = |map: &&Map| map.get("id").is_some_and(|known| known == id);
    devices.iter().find(known).or_else(|| {
        let automatic = match kind? {
            Kind::Scsi => "scsi",
            Kind::Ide => "ide",
        };
        let number: usize = number.parse().ok().filter(|_| id == automatic)?;
        let mut next = match kind? {
            Kind::Scsi => 0,
            Kind::Ide => of_board(board),
        };
        let mut nameless = devices.iter().filter(ours);
        nameless.find(|map| {
            let first = next;
            if !map.contains_key("id") {
                next += count_buses(driver_of(map));
            }
            (first..next).contains(&number)
        })
    })
}

/// Returns the name of the bus of a disk.
pub(super) fn bus(device: &Map, devices: &[Map], board: &str) -> String {
    let controller = controller(device, devices, board).map(driver_of);
    let name = match driver_of(device) {
        name if name.starts_with("virtio-blk") || name.starts_with("vhost-user-blk") => {
            "virtio-blk"
        }
        "nvme" | "nvme-ns" => "nvme",
        "usb-storage" | "usb-uas" | "usb-bot" => "usb",
        name if name.starts_with("scsi-") => match controller {
            Some(name) if name.starts_with("virtio-scsi") => "virtio-scsi",
            Some(name) => name,
            None => "scsi",
        },
        name if name.starts_with("ide-") => match controller {
            Some(name) if name.contains("ahci") => "sata",
            Some(_) => "ide",
            None => interface(Some("ide"), board).unwrap_or("ide"),
        },
        other => other,
    };
    name.to_owned()
}

fn driver_of(map: &Map) -> &str {
    map.get("driver").map_or("", String::as_str)
}

/// Returns the kind of bus that a disk needs.
fn bus_kind_of_disk(disk: &str) -> Option<Kind> {
    match disk {
        _ if disk.starts_with("scsi-") => Some(Kind::Scsi),
        _ if disk.starts_with("ide-") => Some(Kind::Ide),
        _ => None,
    }
}

/// Returns the kind of bus that a controller provides.
fn bus_kind_of_controller(driver: &str) -> Option<Kind> {
    const SCSI: [&str; 7] = [
        "virtio-scsi",
        "lsi",
        "megasas",
        "mptsas",
        "pvscsi",
        "am53c974",
        "dc390",
    ];
    match driver {
        _ if SCSI.iter().any(|start| driver.starts_with(start)) => Some(Kind::Scsi),
        _ if driver.contains("spapr-vscsi") => Some(Kind::Scsi),
        _ if count_buses(driver) > 1 => Some(Kind::Ide),
        _ => None,
    }
}

/// Returns the number of buses that a controller provides: one for each AHCI port, one for each IDE channel.
fn count_buses(driver: &str) -> usize {
    match driver {
        "ich9-ahci" => 6,
        "piix3-ide" | "piix4-ide" | "piix3-ide-xen" | "via-ide" | "cmd646-ide" => 2,
        _ => 1,
    }
}

/// Returns the number of IDE buses of the board itself: AHCI ports of q35, IDE channels of pc.
fn of_board(board: &str) -> usize {
    match interface(Some("ide"), board) {
        Some("sata") => 6,
        _ if board.starts_with("pc") || board == "isapc" => 2,
        _ => 0,
    }
}

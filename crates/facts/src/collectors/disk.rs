//! Collects the block devices: their identity, the settings with which the kernel treats them, and their layers. See
//! the kernel's Documentation/ABI/stable/sysfs-block.

use crate::block::Device;
use crate::gather::{Gather, chosen, lossy};
use crate::mdstat;
use assay_model::FactKind;
use serde_json::Value;
use std::path::Path;

const BLOCK: &str = "/sys/block";
/// File that lists the md arrays.
pub(crate) const MDSTAT: &str = "/proc/mdstat";
const EINVAL: i32 = 22;

/// Text settings: the name in the fact's key, and the file below the directory of the device.
const TEXTS: [(&str, &str); 6] = [
    ("model", "device/model"),
    ("vendor", "device/vendor"),
    ("firmware", "device/firmware_rev"),
    ("revision", "device/rev"),
    ("write_cache", "queue/write_cache"),
    ("zoned", "queue/zoned"),
];
/// Settings that are `0` or `1`.
const FLAGS: [(&str, &str); 6] = [
    ("rotational", "queue/rotational"),
    ("read_only", "ro"),
    ("removable", "removable"),
    ("fua", "queue/fua"),
    ("iostats", "queue/iostats"),
    ("dax", "queue/dax"),
];
/// Numeric settings, each with the factor that converts the value to bytes, or 1.
const NUMBERS: [(&str, &str, i64); 13] = [
    ("logical_block_size", "queue/logical_block_size", 1),
    ("physical_block_size", "queue/physical_block_size", 1),
    ("minimum_io_size", "queue/minimum_io_size", 1),
    ("optimal_io_size", "queue/optimal_io_size", 1),
    ("discard_max", "queue/discard_max_bytes", 1),
    ("discard_granularity", "queue/discard_granularity", 1),
    ("nr_requests", "queue/nr_requests", 1),
    ("nomerges", "queue/nomerges", 1),
    ("rq_affinity", "queue/rq_affinity", 1),
    ("read_ahead", "queue/read_ahead_kb", 1024),
    ("max_request", "queue/max_sectors_kb", 1024),
    ("max_hw_request", "queue/max_hw_sectors_kb", 1024),
    ("queue_depth", "device/queue_depth", 1),
];
/// Other files that the collector reads for each device.
const MORE: [&str; 22] = [
    "dev",
    "size",
    "partition",
    "queue/scheduler",
    "queue/wbt_lat_usec",
    "dm/name",
    "dm/uuid",
    "md/level",
    "md/array_state",
    "md/metadata_version",
    "md/sync_action",
    "md/bitmap/location",
    "md/consistency_policy",
    "md/raid_disks",
    "md/chunk_size",
    "md/degraded",
    "md/stripe_cache_size",
    "md/mismatch_cnt",
    "loop/backing_file",
    "loop/dio",
    "loop/offset",
    "comp_algorithm",
];

/// Returns the names of all files that are read for a device. Files that identify the device are not among them.
pub(crate) fn files() -> impl Iterator<Item = &'static str> {
    let texts = TEXTS.iter().chain(&FLAGS).map(|(_, file)| *file);
    let numbers = NUMBERS.iter().map(|(_, file, _)| *file);
    texts.chain(numbers).chain(MORE)
}

pub(crate) fn collect(g: &mut Gather<'_>, with_identity: bool) {
    for name in g.list("disk", BLOCK) {
        let key = format!("disk.{}", lossy(&name));
        let device = match Device::at(g.host, &Path::new(BLOCK).join(&name)) {
            Ok(device) => device,
            Err(error) => {
                g.fault(&key, &error, FactKind::Runtime, BLOCK);
                continue;
            }
        };
        match device.size(g.host) {
            // Loop and zram devices that are not set up, drives without a medium.
            Ok(0) => stopped_array(g, &key, &device),
            Ok(size) => {
                g.facts.known(
                    format!("{key}.size"),
                    size,
                    FactKind::Runtime,
                    format!("{BLOCK}/{}/size", device.name),
                );
                note_disk(g, &key, &device, with_identity);
            }
            Err(error) => g.fault(
                &key,
                &error,
                FactKind::Runtime,
                format!("{BLOCK}/{}/size", device.name),
            ),
        }
        g.about(["disk", &lossy(&name)]);
    }
    note_arrays(g);
}

/// Notes facts from /proc/mdstat about arrays: failed members, and values that sysfs does not contain.
fn note_arrays(g: &mut Gather<'_>) {
    let Some(text) = g.read("disk.mdstat", MDSTAT) else {
        return;
    };
    for array in mdstat::arrays(&text) {
        if array.external && !array.active {
            continue;
        }
        let gone = array
            .disks
            .map(|(all, working)| all.saturating_sub(working));
        let state = if array.active { None } else { Some("inactive") };
        let failed = Some(array.failed).filter(|failed| !failed.is_empty());
        for (what, value) in [
            ("failed_members", failed.map(Value::from)),
            ("level", array.level.map(Value::from)),
            ("raid_disks", array.disks.map(|(all, _)| all.into())),
            (
                "working_disks",
                array.disks.map(|(_, working)| working.into()),
            ),
            ("degraded", gone.map(Value::from)),
            ("array_state", state.map(Value::from)),
            ("sync_action", array.action.map(Value::from)),
            ("bitmap", array.active.then(|| array.bitmap.into())),
            ("blocks", array.blocks.map(Value::from)),
        ] {
            let key = format!("disk.{}.md_{what}", array.name);
            if let Some(value) = value
                && !g.facts.map.contains_key(&key)
            {
                g.facts.known(key, value, FactKind::Runtime, MDSTAT);
            }
        }
        g.about(["disk", &array.name]);
    }
}

fn note_disk(g: &mut Gather<'_>, key: &str, device: &Device, with_identity: bool) {
    let at = |file: &str| format!("{BLOCK}/{}/{file}", device.name);
    for (name, file) in TEXTS {
        g.text(&format!("{key}.{name}"), &at(file));
    }
    for (name, file) in FLAGS {
        g.flag(&format!("{key}.{name}"), &at(file));
    }
    for (name, file, unit) in NUMBERS {
        g.number(&format!("{key}.{name}"), &at(file), unit);
    }
    g.value(&format!("{key}.scheduler"), &at("queue/scheduler"), chosen);
    write_back_throttling(g, key, &at("queue/wbt_lat_usec"));
    note_transport(g, key, device);
    note_link(g, key, device);
    note_lower_layers(g, key, device);
    note_partitions(g, key, device);
    if with_identity {
        g.text(&format!("{key}.serial"), &at("serial"));
        g.text(&format!("{key}.serial"), &at("device/serial"));
        g.text(&format!("{key}.wwid"), &at("wwid"));
        g.text(&format!("{key}.wwid"), &at("device/wwid"));
    }
}

/// Notes the write-back throttling target in nanoseconds; 0 means off. EINVAL means that the kernel
/// has no throttling for this device.
fn write_back_throttling(g: &mut Gather<'_>, key: &str, path: &str) {
    match g.host.read_text(Path::new(path)) {
        Err(error) if error.errno() == Some(EINVAL) => {}
        _ => g.number(&format!("{key}.wbt_latency"), path, 1000),
    }
}

/// Notes the transport of the device, such as `nvme` or `ata`.
fn note_transport(g: &mut Gather<'_>, key: &str, device: &Device) {
    if let Some(transport) = device.transport() {
        g.facts.known(
            format!("{key}.transport"),
            transport,
            FactKind::Runtime,
            device.dir.to_string_lossy(),
        );
    }
}

/// Notes the speed of the SATA link, and of the nearest PCI Express link above the device.
fn note_link(g: &mut Gather<'_>, key: &str, device: &Device) {
    if let Some(port) = device.ata_port() {
        let dir = format!("/sys/class/ata_link/link{port}");
        g.text(&format!("{key}.sata_speed"), &format!("{dir}/sata_spd"));
        g.text(
            &format!("{key}.sata_speed_max"),
            &format!("{dir}/hw_sata_spd_limit"),
        );
    }
    if let Some(dir) = device.pci_device() {
        for (name, file) in [
            ("pcie_speed", "current_link_speed"),
            ("pcie_width", "current_link_width"),
            ("pcie_speed_max", "max_link_speed"),
            ("pcie_width_max", "max_link_width"),
        ] {
            let path = dir.join(file).display().to_string();
            // Devices of a hypervisor have these files and answer EINVAL.
            if g.host
                .read(Path::new(&path))
                .is_err_and(|error| error.errno() == Some(EINVAL))
            {
                continue;
            }
            g.value(&format!("{key}.{name}"), &path, |text| {
                Some(crate::gather::scalar(text))
            });
        }
    }
}

/// Notes the lower layers of devices of device mapper, Linux RAID, loop and zram.
fn note_lower_layers(g: &mut Gather<'_>, key: &str, device: &Device) {
    let at = |file: &str| format!("{BLOCK}/{}/{file}", device.name);
    match device.slaves(g.host) {
        Ok(slaves) if slaves.is_empty() => {}
        Ok(slaves) => {
            let names: Vec<Value> = slaves.into_iter().map(|slave| slave.name.into()).collect();
            g.facts.known(
                format!("{key}.built_on"),
                names,
                FactKind::Runtime,
                at("slaves"),
            );
        }
        Err(error) => g.fault(
            &format!("{key}.built_on"),
            &error,
            FactKind::Runtime,
            at("slaves"),
        ),
    }
    let start = |prefix: &str| device.name.starts_with(prefix);
    if start("dm-") {
        g.text(&format!("{key}.dm_name"), &at("dm/name"));
        g.value(&format!("{key}.dm_kind"), &at("dm/uuid"), |uuid| {
            Some(crate::dm::kind(uuid))
        });
    }
    if start("md") {
        for name in [
            "array_state",
            "level",
            "sync_action",
            "bitmap/location",
            "consistency_policy",
        ] {
            g.text(
                &format!("{key}.md_{}", name.replace('/', "_")),
                &at(&format!("md/{name}")),
            );
        }
        for name in [
            "raid_disks",
            "chunk_size",
            "degraded",
            "stripe_cache_size",
            "mismatch_cnt",
        ] {
            g.number(&format!("{key}.md_{name}"), &at(&format!("md/{name}")), 1);
        }
        let of = |name: &str| g.facts.u64(&format!("{key}.md_{name}"));
        if let (Some(all), Some(gone)) = (of("raid_disks"), of("degraded")) {
            let left = all.saturating_sub(gone);
            let key = format!("{key}.md_working_disks");
            g.facts
                .known(key, left, FactKind::Runtime, at("md/degraded"));
        }
    }
    if start("loop") {
        g.text(&format!("{key}.backing_file"), &at("loop/backing_file"));
        g.flag(&format!("{key}.direct_io"), &at("loop/dio"));
        g.number(&format!("{key}.offset"), &at("loop/offset"), 1);
    }
    if start("zram") {
        g.value(&format!("{key}.compression"), &at("comp_algorithm"), chosen);
    }
}

/// Notes an md array that is assembled but not running. Such a device has a directory `md` and size 0. Containers of
/// firmware RAID look the same while their arrays run.
fn stopped_array(g: &mut Gather<'_>, key: &str, device: &Device) {
    let at = |file: &str| format!("{BLOCK}/{}/md/{file}", device.name);
    let metadata = g.read(&format!("{key}.md_array_state"), &at("metadata_version"));
    let container = metadata.is_some_and(|metadata| metadata.starts_with("external:"));
    if device.name.starts_with("md") && !container {
        g.text(&format!("{key}.md_array_state"), &at("array_state"));
        g.text(&format!("{key}.md_level"), &at("level"));
        g.number(&format!("{key}.md_raid_disks"), &at("raid_disks"), 1);
    }
}

fn note_partitions(g: &mut Gather<'_>, key: &str, device: &Device) {
    let disk = key.trim_start_matches("disk.");
    let partitions = match device.partitions(g.host) {
        Ok(partitions) => partitions,
        Err(error) => {
            return g.fault(
                &format!("{key}.partition"),
                &error,
                FactKind::Runtime,
                format!("{BLOCK}/{}", device.name),
            );
        }
    };
    for partition in partitions {
        let key = format!("{key}.partition.{}", partition.name);
        let at = |file: &str| format!("{BLOCK}/{}/{}/{file}", device.name, partition.name);
        g.number(&format!("{key}.start"), &at("start"), 512);
        g.number(&format!("{key}.size"), &at("size"), 512);
        // Offset in bytes between the start of the device and the next lower boundary of a physical
        // block.
        g.number(&format!("{key}.misalignment"), &at("alignment_offset"), 1);
        if let Some(start) = g.facts.u64(&format!("{key}.start")) {
            let aligned = start.is_multiple_of(4096);
            g.facts.known(
                format!("{key}.aligned_4k"),
                aligned,
                FactKind::Runtime,
                at("start"),
            );
        }
        g.about(["disk", disk, "partition", &partition.name]);
    }
}

//! Collects kernel properties of the disks below a pool's top-level vdevs, and the names by which the pool refers to
//! the disks.

use crate::block::Device;
use crate::gather::Gather;
use crate::zpool::{Ashifts, Vdev};
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::ffi::OsStr;

/// Prefixes of names that depend on the order of detection. The OpenZFS FAQ, "Selecting /dev/ names", advises against
/// such names except for tests. Names of NVMe and virtio disks also depend on the order of detection.
const BY_ORDER: [&str; 5] = ["sd", "hd", "vd", "xvd", "nvme"];

/// Volumes of RAID controllers, as (vendor, prefix of the model) in SCSI INQUIRY. Disks in pass-through mode report
/// other names.
const VOLUMES: [(&str, &str); 10] = [
    ("DELL", "PERC"),
    ("HP", "LOGICAL VOLUME"),
    ("HPE", "LOGICAL VOLUME"),
    ("LSI", "MR9"),
    ("LSI", "MegaRAID"),
    ("AVAGO", "MR9"),
    ("BROADCOM", "MR9"),
    ("IBM", "ServeRAID"),
    ("Lenovo", "RAID"),
    ("Areca", "ARC-"),
];

/// Notes four properties of the disks of a vdev:
/// - `sector` is the largest physical sector.
/// - `write_cache` is `write back` if at least one disk has a volatile cache.
/// - `rotational` is set if at least one disk is a hard disk.
/// - `raid` is set if at least one disk is a RAID volume.
pub(super) fn of_vdev(g: &mut Gather<'_>, key: &str, vdev: &Vdev) {
    let mut sector: Option<(u64, String)> = None;
    let mut cache: Option<(String, String)> = None;
    let mut turns: Option<(bool, String)> = None;
    let mut raid: Option<(String, String)> = None;
    for (path, _) in &vdev.leaves {
        // Files and missing disks have no properties.
        let Some(disk) = find_disk(g, path) else {
            continue;
        };
        let dir = disk.dir.display();
        let file = |name: &str| format!("{dir}/{name}");
        let said = |name: &str| {
            let text = g.host.read_text(std::path::Path::new(&file(name))).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let size = said("queue/physical_block_size").and_then(|text| text.parse::<u64>().ok());
        if let Some(size) = size.filter(|size| sector.as_ref().is_none_or(|(most, _)| size > most))
        {
            sector = Some((size, file("queue/physical_block_size")));
        }
        let keeps = said("queue/write_cache");
        if let Some(said) = keeps.filter(|said| cache.is_none() || said == "write back") {
            cache = Some((said, file("queue/write_cache")));
        }
        let spins = said("queue/rotational").map(|said| said == "1");
        if let Some(spins) = spins.filter(|spins| turns.is_none() || *spins) {
            turns = Some((spins, file("queue/rotational")));
        }
        let (vendor, model) = (said("device/vendor"), said("device/model"));
        if let Some(name) = find_raid_volume(&disk.name, vendor.as_deref(), model.as_deref()) {
            raid.get_or_insert((name, file("device/model")));
        }
    }
    let mut known = |name: &str, found: Option<(Value, String)>| {
        if let Some((value, place)) = found {
            let key = format!("{key}.{name}");
            g.facts.known(key, value, FactKind::Runtime, place);
        }
    };
    known("sector", sector.map(|(size, place)| (size.into(), place)));
    known(
        "write_cache",
        cache.map(|(said, place)| (said.into(), place)),
    );
    known(
        "rotational",
        turns.map(|(spins, place)| (spins.into(), place)),
    );
    known("raid", raid.map(|(name, place)| (name.into(), place)));
}

/// Notes `disk.NAME.trimmed` for each disk of a pool with autotrim. Such a pool trims its disks continuously.
pub(super) fn trimmed(g: &mut Gather<'_>, vdev: &Vdev, pool: &str) {
    for (path, _) in &vdev.leaves {
        let Some(disk) = find_disk(g, path) else {
            continue;
        };
        let place = FactPlace::command(["zpool", "get", "autotrim", pool]);
        let key = format!("disk.{}.trimmed", disk.name);
        g.facts.known(key, true, FactKind::Configured, place);
        g.about(["disk", &disk.name]);
    }
}

/// Returns the whole disk that contains a leaf device of the pool.
fn find_disk(g: &Gather<'_>, path: &str) -> Option<Device> {
    let name = path.strip_prefix("/dev/")?;
    // Names in subdirectories are links or files; `zpool status -L` resolves links.
    if name.contains('/') {
        return None;
    }
    let device = Device::of_name(g.host, OsStr::new(name)).ok()?;
    match device.disk(g.host) {
        Ok(Some(disk)) => Some(disk),
        _ => Some(device),
    }
}

/// Returns the name of a RAID volume; `None` if the device is a disk.
fn find_raid_volume(name: &str, vendor: Option<&str>, model: Option<&str>) -> Option<String> {
    let number = name
        .strip_prefix("md")
        .map(|rest| rest.trim_start_matches('_'));
    if number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit())) {
        return Some(name.to_owned());
    }
    let (vendor, model) = (vendor?, model?);
    let mut known = VOLUMES.iter();
    known
        .any(|(whose, start)| vendor.eq_ignore_ascii_case(whose) && model.starts_with(start))
        .then(|| format!("{vendor} {model}"))
}

/// Notes `by_kernel_name`: the devices to which the pool refers by a name that depends on the order of detection.
pub(super) fn names(
    g: &mut Gather<'_>,
    key: &str,
    vdev: &Vdev,
    told: Option<&Ashifts>,
    place: &FactPlace,
) {
    // Output without any device gives no names.
    let whole = |told: &&Ashifts| !told.by_id.is_empty() || !told.by_path.is_empty();
    let Some(told) = told.filter(whole) else {
        return;
    };
    let by_order = |path: &&str| {
        let name = path.strip_prefix("/dev/").unwrap_or_default();
        let kernel = BY_ORDER.iter().any(|start| name.starts_with(start));
        kernel && told.by_path.contains_key(*path)
    };
    let leaves = vdev.leaves.iter().map(|(path, _)| path.as_str());
    let found: Vec<Value> = leaves.filter(by_order).map(Value::from).collect();
    let key = format!("{key}.by_kernel_name");
    g.facts
        .known(key, found, FactKind::Configured, place.clone());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zpool;
    use assay_host::Recorded;

    /// Output of `zpool status`, recorded with OpenZFS 2.1.11 (Debian 12).
    const STATUS: &str = include_str!("../../../fixtures/zfs-2.1.11/status-mirror.txt");
    const ZDB: &str = include_str!("../../../fixtures/zfs-2.1.11/zdb-mirror.txt");

    #[test]
    fn the_worst_of_its_disks_counts() {
        let mut host = Recorded::new();
        for (name, number, sector, cache) in [
            ("vdb", "254:16", "512\n", "write through\n"),
            ("vdc", "254:32", "4096\n", "write back\n"),
        ] {
            let dir = format!("/sys/devices/pci0000:00/{name}/block/{name}");
            host = host
                .linked(
                    &format!("/sys/class/block/{name}1"),
                    &format!("{dir}/{name}1"),
                )
                .file(&format!("{dir}/{name}1/dev"), "254:17\n")
                .file(&format!("{dir}/{name}1/partition"), "1\n")
                .file(&format!("{dir}/dev"), format!("{number}\n"))
                .file(&format!("{dir}/queue/physical_block_size"), sector)
                .file(&format!("{dir}/queue/write_cache"), cache)
                .file(&format!("{dir}/queue/rotational"), "0\n");
        }
        let mut g = Gather::new(&host);
        let mirror = &zpool::vdevs(STATUS, "tank")[0];
        of_vdev(&mut g, "v", mirror);
        assert_eq!(g.facts.u64("v.sector"), Some(4096));
        assert_eq!(g.facts.str("v.write_cache"), Some("write back"));
        assert_eq!(g.facts.get("v.rotational").unwrap(), false);
        assert!(!g.facts.map.contains_key("v.raid"));
    }

    #[test]
    fn volumes_of_controllers() {
        let is = |name, vendor, model| find_raid_volume(name, Some(vendor), Some(model)).is_some();
        assert!(is("sda", "DELL", "PERC H730 Mini"));
        assert!(is("sda", "HP", "LOGICAL VOLUME"));
        assert!(is("sda", "AVAGO", "MR9361-8i"));
        assert!(!is("sda", "ATA", "WDC WD40EFRX-68N"));
        // A disk of this vendor in pass-through mode.
        assert!(!is("sda", "HP", "EG0300FBDSP"));
        assert!(find_raid_volume("md127", None, None).is_some());
        assert!(find_raid_volume("mda", None, None).is_none());
    }

    #[test]
    fn links_are_names_that_stay() {
        let host = Recorded::new();
        let mut g = Gather::new(&host);
        let place = FactPlace::command(["zdb", "-C", "tank"]);
        let mirror = &zpool::vdevs(STATUS, "tank")[0];
        let by_id = zpool::ashifts(ZDB);
        names(&mut g, "a", mirror, Some(&by_id), &place);
        assert_eq!(
            g.facts.get("a.by_kernel_name").unwrap(),
            &Value::Array(vec![])
        );
        let mut by_kernel = by_id;
        by_kernel.by_path.insert("/dev/vdc1".to_owned(), 12);
        names(&mut g, "b", mirror, Some(&by_kernel), &place);
        assert_eq!(g.facts.get("b.by_kernel_name").unwrap()[0], "/dev/vdc1");
        names(&mut g, "c", mirror, None, &place);
        assert!(!g.facts.map.contains_key("c.by_kernel_name"));
    }
}

//! Collects the profiles of btrfs block groups (from sysfs, without a command), and the btrfs properties of a path.

use crate::block::Device;
use crate::gather::{Gather, lossy};
use assay_host::FileKind;
use assay_model::{FactKind, FactPlace};
use serde_json::Value;
use std::ffi::OsString;
use std::path::Path;

const BASE: &str = "/sys/fs/btrfs";

/// Collects facts of every mounted btrfs. The key contains the kernel name of the first device, which is easier to
/// recognise than the UUID.
pub(crate) fn collect(g: &mut Gather<'_>) {
    for uuid in g.list("btrfs", BASE) {
        let dir = format!("{BASE}/{}", lossy(&uuid));
        // `features` is a directory beside the file systems.
        if !g
            .host
            .exists(Path::new(&format!("{dir}/devices")))
            .unwrap_or(true)
        {
            continue;
        }
        let devices = g.list("btrfs", &format!("{dir}/devices"));
        let Some(first) = devices.first() else {
            continue;
        };
        let key = format!("btrfs.{}", lossy(first));
        let names: Vec<Value> = devices.iter().map(|name| lossy(name).into()).collect();
        g.facts.known(
            format!("{key}.devices"),
            names,
            FactKind::Runtime,
            format!("{dir}/devices"),
        );
        note_sizes(g, &key, &dir, &devices);
        note_health(g, &key, &dir);
        for class in ["data", "metadata", "system"] {
            let key = format!("{key}.{class}_profile");
            let class = format!("{dir}/allocation/{class}");
            let mut profiles: Vec<Value> = Vec::new();
            for name in g.list(&key, &class) {
                let path = format!("{class}/{}", lossy(&name));
                match g.host.stat(Path::new(&path)) {
                    Ok(stat) if stat.kind == FileKind::Directory => {
                        profiles.push(lossy(&name).into())
                    }
                    Ok(_) => {}
                    Err(error) => g.fault(&key, &error, FactKind::Runtime, &path),
                }
            }
            if !profiles.is_empty() {
                g.facts.known(key, profiles, FactKind::Runtime, class);
            }
        }
        g.text(&format!("{key}.checksum"), &format!("{dir}/checksum"));
        g.number(&format!("{key}.nodesize"), &format!("{dir}/nodesize"), 1);
        g.number(
            &format!("{key}.sectorsize"),
            &format!("{dir}/sectorsize"),
            1,
        );
        g.about(["btrfs", &lossy(first)]);
        let features: Vec<Value> = g
            .list(&format!("{key}.features"), &format!("{dir}/features"))
            .iter()
            .map(|name| lossy(name).into())
            .collect();
        if !features.is_empty() {
            g.facts.known(
                format!("{key}.features"),
                features,
                FactKind::Configured,
                format!("{dir}/features"),
            );
        }
    }
}

/// Notes `missing` (ids of missing devices, since Linux 5.6) and `device_errors` (error counters of the present
/// devices, since Linux 5.14; btrfs documentation, sysfs: devinfo). Also notes `operation`, the running operation, such
/// as a replacement.
fn note_health(g: &mut Gather<'_>, key: &str, dir: &str) {
    g.text(
        &format!("{key}.operation"),
        &format!("{dir}/exclusive_operation"),
    );
    let info = format!("{dir}/devinfo");
    let numbers = g.list(&format!("{key}.missing"), &info);
    if numbers.is_empty() {
        return;
    }
    let mut missing: Vec<Value> = Vec::new();
    let mut errors: Vec<Value> = Vec::new();
    for number in numbers.iter().map(|number| lossy(number)) {
        let read = |name: &str| {
            let path = format!("{info}/{number}/{name}");
            g.host.read_text(Path::new(&path))
        };
        match read("missing") {
            Ok(text) if text.trim() == "1" => missing.push(number.clone().into()),
            Ok(_) => {}
            Err(error) => {
                g.fault(&format!("{key}.missing"), &error, FactKind::Runtime, &info);
                return;
            }
        }
        // `write_errs 0`, `read_errs 0`, `flush_errs 0`, `corruption_errs 1`, `generation_errs 0`
        let stats = match read("error_stats") {
            Ok(stats) => stats,
            // Before Linux 5.14.
            Err(error) if error.is_absent() => String::new(),
            Err(error) => {
                let key = format!("{key}.device_errors");
                g.fault(&key, &error, FactKind::Runtime, &info);
                return;
            }
        };
        let counted = stats.lines().filter_map(|line| {
            let (name, count) = line.trim().split_once([' ', '\t'])?;
            let count: u64 = count.trim().parse().ok()?;
            let kind = name.strip_suffix("_errs")?;
            let plural = if count == 1 { "" } else { "s" };
            (count > 0).then(|| format!("{count} {kind} error{plural}"))
        });
        let counted: Vec<String> = counted.collect();
        if !counted.is_empty() {
            errors.push(format!("device {number} has {}", counted.join(", ")).into());
        }
    }
    for (name, value) in [("missing", missing), ("device_errors", errors)] {
        let key = format!("{key}.{name}");
        g.facts.known(key, value, FactKind::Runtime, info.as_str());
    }
}

/// Notes `size`, the total size of all devices, and `without_twin`, the bytes of the largest device that the other
/// devices cannot mirror. With two copies of all data, min(total / 2, total - largest) bytes are usable.
fn note_sizes(g: &mut Gather<'_>, key: &str, dir: &str, devices: &[OsString]) {
    let mut sizes: Vec<u64> = Vec::new();
    for name in devices {
        let device = Device::of_name(g.host, name);
        match device.and_then(|device| device.size(g.host)) {
            Ok(size) => sizes.push(size),
            // A sum of only some devices would be wrong.
            Err(_) => return,
        }
    }
    let total = sizes
        .iter()
        .fold(0u64, |sum, size| sum.saturating_add(*size));
    let largest = sizes.into_iter().max().unwrap_or(0);
    let others = total.saturating_sub(largest);
    for (name, value) in [
        ("size", total),
        ("without_twin", largest.saturating_sub(others)),
    ] {
        g.facts.known(
            format!("{key}.{name}"),
            value,
            FactKind::Runtime,
            format!("{dir}/devices"),
        );
    }
}

/// Notes the properties of a path, such as compression (btrfs-property(8)).
pub(crate) fn properties(g: &mut Gather<'_>, path: &Path) {
    let path = path.to_string_lossy().into_owned();
    let key = format!("btrfs.property.{path}");
    let argv = ["btrfs", "property", "get", "-t", "inode", &path];
    let Some(output) = g.ask(&key, &argv) else {
        return;
    };
    for line in output.text().lines() {
        if let Some((name, value)) = line.split_once('=') {
            g.facts.known(
                format!("{key}.{name}"),
                value,
                FactKind::Configured,
                FactPlace::command(argv),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    fn of(sizes: &[(&str, u64)]) -> Option<u64> {
        let mut host = Recorded::new();
        for (name, sectors) in sizes {
            let dir = format!("/sys/devices/virtual/block/{name}");
            host = host
                .linked(&format!("/sys/class/block/{name}"), &dir)
                .file(&format!("{dir}/dev"), "7:0\n")
                .file(&format!("{dir}/size"), format!("{sectors}\n"));
        }
        let mut g = Gather::new(&host);
        let names: Vec<OsString> = sizes.iter().map(|(name, _)| name.into()).collect();
        super::note_sizes(&mut g, "b", "/sys/fs/btrfs/x", &names);
        g.facts.u64("b.without_twin")
    }

    #[test]
    fn what_the_largest_device_has_too_much() {
        assert_eq!(of(&[("a", 4), ("b", 2)]), Some(2 * 512));
        assert_eq!(of(&[("a", 4), ("b", 2), ("c", 2)]), Some(0));
        assert_eq!(of(&[("a", 3)]), Some(3 * 512));
    }
}

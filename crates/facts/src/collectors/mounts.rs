//! Collects the mounted file systems with their options. Kernel interfaces such as proc and sysfs are left out.

use super::trim;
use crate::block::Device;
use crate::gather::Gather;
use crate::mountinfo::{self, MOUNTINFO, Mount};
use crate::redact;
use crate::target::devices_of;
use assay_host::{Host, HostError};
use assay_model::FactKind;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Types of file systems that do not contain users' files.
const KERNEL: [&str; 25] = [
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "fuse.gvfsd-fuse",
    "fuse.lxcfs",
    "fuse.portal",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "proc",
    "pstore",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

pub(crate) fn collect(g: &mut Gather<'_>, targets: &[PathBuf]) {
    let Some(mounts) = read(g) else { return };
    let kept = mounts
        .iter()
        .filter(|mount| !KERNEL.contains(&mount.fs_type.as_str()));
    for (number, mount) in kept.enumerate() {
        let key = |name: &str| format!("mount.{number}.{name}");
        let source = redact::mount_source(&mount.fs_type, &mount.source.to_string_lossy());
        for (name, value) in [
            ("point", mount.point.to_string_lossy().into_owned()),
            ("fstype", mount.fs_type.clone()),
            ("source", source),
            ("options", redact::mount_options(&mount.all_options())),
        ] {
            g.facts
                .known(key(name), value, FactKind::Runtime, MOUNTINFO);
        }
        if mount.root != Path::new("/") {
            g.facts.known(
                key("root"),
                mount.root.to_string_lossy(),
                FactKind::Runtime,
                MOUNTINFO,
            );
        }
        // Pools are read only for the targets, because this needs a command.
        if mount.fs_type != "zfs" {
            list_devices(g, &key("devices"), &mounts, mount);
            volatile_cache(g, &key("volatile_cache"), &mounts, mount);
        }
        g.about(["mount", &number.to_string()]);
    }
    of_targets(g, &mounts, targets);
}

/// Returns the mounts of this process. If they cannot be read, notes the error under `mount`.
fn read(g: &mut Gather<'_>) -> Option<Vec<Mount>> {
    let text = match g.host.read(Path::new(MOUNTINFO)) {
        Ok(text) => text,
        Err(error) => {
            g.fault("mount", &error, FactKind::Runtime, MOUNTINFO);
            return None;
        }
    };
    match mountinfo::parse(&text) {
        Ok(mounts) => Some(mounts),
        Err(line) => {
            g.facts.unknown(
                "mount",
                "not understood",
                FactKind::Runtime,
                format!("{MOUNTINFO}, line {line}"),
            );
            None
        }
    }
}

/// Returns whether a device below a file system has a volatile write cache; without such a cache the kernel sends no
/// flushes. `None` if a device does not report this.
///
/// # Errors
/// A device cannot be read.
pub(crate) fn has_volatile_cache(
    host: &dyn Host,
    mounts: &[Mount],
    mount: &Mount,
) -> Result<Option<bool>, HostError> {
    let devices = devices_of(host, mounts, mount, 0)?;
    let mut any = None;
    for device in &devices {
        let disk = device.disk(host)?;
        let disk = disk.as_ref().unwrap_or(device);
        let Some(said) = trim::read(host, disk, "queue/write_cache")? else {
            return Ok(None);
        };
        any = Some(any.unwrap_or(false) || said != "write through");
    }
    Ok(any)
}

/// Notes whether the kernel sends flushes to the devices of a mount.
pub(crate) fn volatile_cache(g: &mut Gather<'_>, key: &str, mounts: &[Mount], mount: &Mount) {
    let place = "/sys/block/*/queue/write_cache";
    match has_volatile_cache(g.host, mounts, mount) {
        Ok(Some(volatile)) => g.facts.known(key, volatile, FactKind::Runtime, place),
        Ok(None) => {}
        Err(error) => g.fault(key, &error, FactKind::Runtime, place),
    }
}

/// Notes which layer drops the TRIM requests of a mount.
fn dropped_trim(g: &mut Gather<'_>, mount: &str, devices: &[Device]) {
    let place = "/sys/block/*/queue/discard_max_bytes";
    let key = |name: &str| format!("{mount}.{name}");
    for device in devices {
        match trim::dropped(g.host, device) {
            Ok(Some(dropped)) => {
                for (name, value) in [
                    ("trim_dropped_by", dropped.by.as_str()),
                    ("trim_dropped_kind", dropped.kind),
                    ("trim_dropped_layer", &dropped.layer),
                    ("trim_disk", &dropped.disk),
                ] {
                    g.facts.known(key(name), value, FactKind::Runtime, place);
                }
                return;
            }
            Ok(None) => {}
            Err(error) => g.fault(&key("trim_dropped_by"), &error, FactKind::Runtime, place),
        }
    }
}

fn list_devices(g: &mut Gather<'_>, key: &str, mounts: &[Mount], mount: &Mount) {
    match devices_of(g.host, mounts, mount, 0) {
        Ok(devices) if devices.is_empty() => {}
        Ok(devices) => {
            dropped_trim(g, key.trim_end_matches(".devices"), &devices);
            let names: Vec<Value> = devices
                .into_iter()
                .map(|device| device.name.into())
                .collect();
            g.facts
                .known(key, names, FactKind::Runtime, "/sys/dev/block");
        }
        Err(error) => g.fault(key, &error, FactKind::Runtime, "/sys/dev/block"),
    }
}

/// Notes details of the file systems of the targets. Each file system is read once.
fn of_targets(g: &mut Gather<'_>, mounts: &[Mount], targets: &[PathBuf]) {
    let mut done: Vec<&Mount> = Vec::new();
    for target in targets {
        let real = match g.host.realpath(target) {
            Ok(real) => real,
            Err(error) => {
                let key = format!("target.{}", target.display());
                g.facts.unknown(
                    key,
                    error.reason(),
                    FactKind::Runtime,
                    target.display().to_string(),
                );
                continue;
            }
        };
        let Some(mount) = mountinfo::of(mounts, &real) else {
            continue;
        };
        if done.contains(&mount) {
            continue;
        }
        done.push(mount);
        match mount.fs_type.as_str() {
            "zfs" => super::zfs::dataset(g, &mount.source.to_string_lossy()),
            "btrfs" => super::btrfs::properties(g, &real),
            "xfs" => super::xfs::collect(g, &mount.point),
            "ext2" | "ext3" | "ext4" => match devices_of(g.host, mounts, mount, 0) {
                Ok(devices) => devices
                    .iter()
                    .for_each(|device| super::ext4::collect(g, &device.name)),
                Err(error) => g.fault("ext4", &error, FactKind::Runtime, "/sys/dev/block"),
            },
            _ => {}
        }
    }
}

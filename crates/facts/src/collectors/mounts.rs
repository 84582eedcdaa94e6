//! What is mounted, with its options; kernel interfaces that look like file systems are left out.

use crate::gather::Gather;
use crate::mountinfo::{self, MOUNTINFO, Mount};
use crate::redact;
use crate::target::devices_of;
use assay_model::FactKind;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// File systems that hold no files of users.
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
        g.about(["mount", &number.to_string()]);
        // Pools are asked only for the targets: that takes a command.
        if mount.fs_type != "zfs" {
            devices(g, &key("devices"), &mounts, mount);
        }
    }
    of_targets(g, &mounts, targets);
}

/// The mounts of this process; a fault is noted under `mount`.
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

fn devices(g: &mut Gather<'_>, key: &str, mounts: &[Mount], mount: &Mount) {
    match devices_of(g.host, mounts, mount, 0) {
        Ok(devices) if devices.is_empty() => {}
        Ok(devices) => {
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

/// The file systems of the targets, looked at more closely, each once.
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

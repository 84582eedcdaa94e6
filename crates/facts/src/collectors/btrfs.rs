//! btrfs: profiles of its block groups (from sysfs, without a command), properties of a path.

use crate::gather::{Gather, lossy};
use assay_host::FileKind;
use assay_model::{FactKind, Place};
use serde_json::Value;
use std::path::Path;

const BASE: &str = "/sys/fs/btrfs";

/// Every mounted btrfs, by the kernel name of its first device: its uuid says nothing to a reader.
pub(crate) fn collect(g: &mut Gather<'_>) {
    for uuid in g.list("btrfs", BASE) {
        let dir = format!("{BASE}/{}", lossy(&uuid));
        // `features` is not a file system.
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

/// Properties of a path, such as its compression (btrfs-property(8)).
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
                Place::command(argv),
            );
        }
    }
}

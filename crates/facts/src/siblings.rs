//! Finds groups of disks that should have the same load: the disks of one vdev of a ZFS pool, of one md array, or of
//! one btrfs.

use crate::block::Device;
use crate::zpool;
use assay_host::{Host, HostError, Limits};
use assay_model::siblings::Siblings;
use std::ffi::OsStr;
use std::path::Path;

/// Returns all groups with at least two disks, and the reasons why some groups could not be read.
#[must_use]
pub fn siblings(host: &dyn Host) -> (Vec<Siblings>, Vec<String>) {
    let mut unknown = Vec::new();
    let mut all = Vec::new();
    for (what, found) in [
        ("ZFS", find_zfs_siblings(host)),
        ("md", find_md_siblings(host)),
        ("btrfs", find_btrfs_siblings(host)),
    ] {
        match found {
            Ok(found) => all.extend(found),
            Err(error) => unknown.push(format!("{what}: {error}")),
        }
    }
    all.retain(|group: &Siblings| group.disks.len() >= 2);
    (all, unknown)
}

fn find_zfs_siblings(host: &dyn Host) -> Result<Vec<Siblings>, HostError> {
    let argv = ["zpool", "status", "-LP"].map(OsStr::new);
    let output = match host.run(&argv, Limits::default()) {
        Ok(output) => output,
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut groups = parse_vdevs(&output.text());
    for group in &mut groups {
        // The name in /dev may differ from the kernel name; leaves that are files have no counters.
        let kernel = |node: &String| Device::of_node(host, Path::new(node)).ok().flatten();
        group.disks = group
            .disks
            .iter()
            .filter_map(kernel)
            .map(|disk| disk.name)
            .collect();
    }
    Ok(groups)
}

/// Returns the vdevs of all pools in `zpool status -LP`, with the device nodes of their online leaves. Offline and
/// faulted leaves are left out. During a resilver, all vdevs are left out, because the load of their disks differs.
/// Single disks form one group; caches and spares form none.
fn parse_vdevs(status: &str) -> Vec<Siblings> {
    let mut groups: Vec<Siblings> = Vec::new();
    for one in status.split("  pool: ").skip(1) {
        let pool = one.lines().next().unwrap_or_default();
        if one.contains("resilver in progress") {
            continue;
        }
        for vdev in zpool::vdevs(one, pool) {
            let class = match vdev.class {
                "cache" | "spare" => continue,
                "data" => String::new(),
                class => format!(" {class}"),
            };
            let name = match vdev.kind.as_str() {
                "disk" => format!("{pool}{class}"),
                _ => format!("{pool}{class} {}", vdev.name),
            };
            let online = vdev.leaves.into_iter().filter(|leaf| leaf.1 == "ONLINE");
            let disks = online.map(|(node, _)| node);
            match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group.disks.extend(disks),
                None => groups.push(Siblings {
                    name,
                    disks: disks.collect(),
                }),
            }
        }
    }
    groups
}

/// Returns the md arrays with their members from sysfs.
fn find_md_siblings(host: &dyn Host) -> Result<Vec<Siblings>, HostError> {
    let mut groups = Vec::new();
    for name in host.list(Path::new("/sys/block"))? {
        let array = Path::new("/sys/block").join(&name);
        if !host.exists(&array.join("md"))? {
            continue;
        }
        groups.push(Siblings {
            name: name.to_string_lossy().into_owned(),
            disks: list_names(host, &array.join("slaves"))?,
        });
    }
    Ok(groups)
}

/// Returns the mounted btrfs file systems with their members.
fn find_btrfs_siblings(host: &dyn Host) -> Result<Vec<Siblings>, HostError> {
    let base = Path::new("/sys/fs/btrfs");
    let mut groups = Vec::new();
    for uuid in or_none(host.list(base))? {
        // `features` is a directory beside the file systems.
        let disks = list_names(host, &base.join(&uuid).join("devices"))?;
        if let Some(first) = disks.first() {
            groups.push(Siblings {
                name: format!("btrfs {first}"),
                disks,
            });
        }
    }
    Ok(groups)
}

fn list_names(host: &dyn Host, dir: &Path) -> Result<Vec<String>, HostError> {
    let names = or_none(host.list(dir))?;
    let text = |name: &std::ffi::OsString| name.to_string_lossy().into_owned();
    Ok(names.iter().map(text).collect())
}

fn or_none<T>(found: Result<Vec<T>, HostError>) -> Result<Vec<T>, HostError> {
    match found {
        Err(error) if error.is_absent() => Ok(Vec::new()),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_that_work_are_siblings() {
        let status = include_str!("../fixtures/zpool-status-LP-2.1.11.txt");
        let found: Vec<_> = parse_vdevs(status)
            .into_iter()
            .map(|group| (group.name, group.disks.join(" ")))
            .collect();
        let wanted = [
            ("p raidz1-0", "/dev/vdg2 /dev/vdc1 /dev/vdf1"),
            // The other half of this mirror is offline.
            ("p mirror-1", "/dev/vdd1"),
            ("p log", "/dev/vdg1"),
        ];
        assert_eq!(found, wanted.map(|(a, b)| (a.to_owned(), b.to_owned())));
    }

    #[test]
    fn several_pools_one_of_which_resilvers() {
        // From zpool-status(8) of OpenZFS 2.1: constructed, not recorded.
        let status = "  pool: a\n state: ONLINE\nconfig:\n\n\tNAME  STATE READ WRITE CKSUM\n\
                      \ta  ONLINE 0 0 0\n\t  /dev/sda1  ONLINE 0 0 0\n\t  /dev/sdb1  ONLINE 0 0 0\n\n\
                      errors: No known data errors\n\n  pool: b\n state: ONLINE\n  scan: resilver in \
                      progress since Sat Nov 21 10:00:00 2026\nconfig:\n\n\tNAME  STATE READ WRITE CKSUM\n\
                      \tb  ONLINE 0 0 0\n\t  mirror-0  ONLINE 0 0 0\n\t    /dev/sde  ONLINE 0 0 0\n\
                      \t    /dev/sdf  ONLINE 0 0 0\n\nerrors: No known data errors\n";
        let found = parse_vdevs(status);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].disks, ["/dev/sda1", "/dev/sdb1"]);
        assert!(parse_vdevs("no pools available\n").is_empty());
    }
}

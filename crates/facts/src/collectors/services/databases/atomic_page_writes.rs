//! Finds out whether the file system of a database writes pages atomically. If so, the database needs no protection
//! against torn pages after a power failure.

use crate::gather::Gather;
use crate::mountinfo::{self, MOUNTINFO, Mount};
use assay_model::FactKind;
use std::path::Path;

const FSTAB: &str = "/etc/fstab";

/// Notes whether the file system writes whole database pages in `dir` atomically. ZFS writes whole records
/// (zfsprops(7), recordsize). btrfs does so for files with copy-on-write, a setting of each file (btrfs(5), NOCOW).
/// `subject.dataset` names the dataset of ZFS, whose recordsize may be below a page.
pub(super) fn note(g: &mut Gather<'_>, subject: &str, dir: &str) {
    let fact = &format!("{subject}.whole_pages");
    if g.host.read(Path::new(MOUNTINFO)).is_err() && is_on_plain_file_system(g, dir) {
        g.facts.known(fact, false, FactKind::Configured, FSTAB);
        return;
    }
    let found = find_mount(g, Path::new(dir)).map_err(str::to_owned);
    if let Ok(mount) = found.as_ref()
        && mount.fs_type == "zfs"
    {
        let key = format!("{subject}.dataset");
        let dataset = mount.source.to_string_lossy().into_owned();
        g.facts.known(key, dataset, FactKind::Runtime, MOUNTINFO);
    }
    let known = found.and_then(|mount| {
        let options = mount.all_options();
        let has = |name: &str| options.split(',').any(|option| option == name);
        match mount.fs_type.as_str() {
            "zfs" => Ok(true),
            "btrfs" if has("nodatacow") => Ok(false),
            "btrfs" => Err("lsattr tells whether btrfs copies its files on write".to_owned()),
            _ => Ok(false),
        }
    });
    match known {
        Ok(whole) => g.facts.known(fact, whole, FactKind::Runtime, MOUNTINFO),
        Err(why) => g.facts.unknown(fact, why, FactKind::Runtime, MOUNTINFO),
    }
}

/// Whether a tree of files without mounts tells that a directory lies on a file system that overwrites in place: fstab
/// says so, and no ZFS is set up, whose datasets are not in fstab.
fn is_on_plain_file_system(g: &Gather<'_>, dir: &str) -> bool {
    if !matches!(g.host.exists(Path::new("/etc/zfs")), Ok(false)) {
        return false;
    }
    let text = g.host.read_text(Path::new(FSTAB)).unwrap_or_default();
    let entries = text.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields[..] {
            [source, point, kind, ..] if !source.starts_with('#') => Some((point, kind)),
            _ => None,
        }
    });
    let holds = |point: &str| {
        let rest = dir.strip_prefix(point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let of_dir = entries.filter(|(point, _)| point.starts_with('/') && holds(point));
    let last = of_dir.max_by_key(|(point, _)| point.len());
    last.is_some_and(|(_, kind)| ["ext2", "ext3", "ext4", "xfs"].contains(&kind))
}

fn find_mount(g: &Gather<'_>, dir: &Path) -> Result<Mount, &'static str> {
    let text = g.host.read(Path::new(MOUNTINFO));
    let text = text.map_err(|_| "on which file system the data lies is not known")?;
    let mounts = mountinfo::parse(&text).map_err(|_| "what is mounted is not understood")?;
    let real = g.host.realpath(dir).unwrap_or_else(|_| dir.to_owned());
    let mount = mountinfo::of(&mounts, &real).cloned();
    mount.ok_or("on which file system the data lies is not known")
}

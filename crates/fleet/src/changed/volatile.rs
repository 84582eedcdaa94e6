//! Selects the facts that describe a machine's configuration, and gives them stable keys.

use assay_model::Facts;

/// Patterns for keys of facts that change without a change of configuration, such as free memory. A star stands for one
/// part between dots. At the end of a pattern, it stands for all remaining parts.
const PATTERNS: [&str; 24] = [
    "memory.available",
    "memory.swap_free",
    "memory.dirty",
    "sysctl.fs.aio-nr",
    "thermal.*",
    "cgroup.*",
    "zfs.arc.*",
    "zfs.pool.*.free",
    "zfs.pool.*.freeing",
    "zfs.pool.*.leaked",
    "zfs.pool.*.allocated",
    "zfs.pool.*.fragmentation",
    "zfs.pool.*.capacity",
    "zfs.pool.*.dedupratio",
    "zfs.pool.*.last_scrubbed_txg",
    "zfs.dataset.*.used",
    "zfs.dataset.*.available",
    "zfs.dataset.*.compressratio",
    "zfs.dataset.*.usedbysnapshots",
    "lvm.lv.*.data_percent",
    "lvm.lv.*.metadata_percent",
    "certificate.*.ends_in_days",
    "mapped.*.processes",
    "disk.*.md_sync_action",
];

/// Returns whether the value of a fact changes all the time.
pub(super) fn is(key: &str) -> bool {
    // The processes of a virtual machine have a new number each time.
    PATTERNS.iter().any(|pattern| fits(pattern, key)) || key.starts_with("vm.")
}

fn fits(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((start, end)) => {
            key.len() >= start.len() + end.len() && key.starts_with(start) && key.ends_with(end)
        }
    }
}

/// Returns a key for a fact that stays the same across boots, for example with the mount point of a mount. Returns
/// `None` if there is no such key.
pub(super) fn stable(facts: &Facts, key: &str) -> Option<String> {
    let Some(rest) = key.strip_prefix("mount.") else {
        return Some(key.to_owned());
    };
    let Some((number, name)) = rest.split_once('.') else {
        return Some(key.to_owned());
    };
    let point = facts.str(&format!("mount.{number}.point"))?;
    // Temporary mounts by programs are not changes.
    let passing = [
        "/run/",
        "/var/lib/docker/",
        "/var/lib/containers/",
        "/tmp/",
        "/var/lib/kubelet/",
        "/snap/",
    ];
    if passing.iter().any(|start| point.starts_with(start)) {
        return None;
    }
    Some(format!("mount.{point}.{name}"))
}

//! Local writable file systems: free space and free inodes. Network file systems are not queried, because they may
//! never answer.

use super::MachineReader;
use crate::machine_snapshot::{Entity, EntityKind, MachineSnapshot};
use assay_facts::mountinfo::{self, Mount};
use assay_render::text::escape_line;
use std::collections::BTreeSet;

/// File system types whose free space is known without the network.
const LOCAL: [&str; 10] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "vfat", "bcachefs",
];
/// Prefixes of file system types whose answers come from a server or a user-space program.
const FAR: [&str; 7] = ["nfs", "cifs", "smb3", "9p", "ceph", "fuse", "afs"];
/// Maximum number of file systems in a snapshot.
const MOST: usize = 48;

pub(super) fn read(reader: &mut MachineReader, look: &mut MachineSnapshot) {
    if !reader.is_second_look() {
        return;
    }
    let text = reader.text("/proc/self/mountinfo").unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut far: Vec<String> = Vec::new();
    let mut sync_mounts = 0.0;
    for mount in mountinfo::parse(text.as_bytes()).unwrap_or_default() {
        let is_far = FAR.iter().any(|kind| mount.fs_type.starts_with(kind));
        if is_far && mount.fs_type != "fusectl" && far.len() < 8 {
            let (point, kind) = (mount.point.display().to_string(), &mount.fs_type);
            far.push(format!("{} ({})", escape_line(&point), escape_line(kind)));
        }
        let is_writable = |options: &str| !options.split(',').any(|option| option == "ro");
        let is_local = LOCAL.contains(&mount.fs_type.as_str());
        let is_turned = is_local && has_turned_read_only(&mount.options, &mount.super_options);
        let is_asked = is_local
            && is_writable(&mount.options)
            && (is_writable(&mount.super_options) || is_turned);
        if !is_asked || seen.len() >= MOST || !seen.insert(mount.dev) {
            continue;
        }
        if !reader.begin(&mount.point) {
            continue;
        }
        let found = rustix::fs::statvfs(&mount.point);
        reader.end();
        let Ok(found) = found else { continue };
        let Some(point) = mount.point.to_str() else {
            continue;
        };
        let mut entity = Entity::new(EntityKind::FileSystem, mount.dev.to_string(), point);
        let has_sync = |options: &str| options.split(',').any(|option| option == "sync");
        let is_sync = has_sync(&mount.options) || has_sync(&mount.super_options);
        entity.set("sync", f64::from(u8::from(is_sync)));
        sync_mounts += f64::from(u8::from(is_sync));
        entity.set("turned_read_only", f64::from(u8::from(is_turned)));
        if let Some(errors) = count_errors(reader, &mount) {
            entity.set("errors_total", errors);
        }
        entity.texts.insert("type".to_owned(), mount.fs_type);
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize) as f64;
        entity.set("size", bytes(found.f_blocks));
        entity.set("available", bytes(found.f_bavail));
        if found.f_files > 0 {
            entity.set("inodes", found.f_files as f64);
            entity.set("inodes.available", found.f_favail as f64);
        }
        look.entities.push(entity);
    }
    look.set("mounts.sync", sync_mounts);
    let far = match far.is_empty() {
        true => "none that is known".to_owned(),
        false => far.join(", "),
    };
    look.texts.insert("network_mounts".to_owned(), far);
}

/// Returns whether a file system that was mounted for writing is now read-only. `mount -o remount,ro` also changes the
/// options of the mount. After an error, the kernel changes only the options of the file system.
fn has_turned_read_only(mount: &str, file_system: &str) -> bool {
    let has = |options: &str, wanted: &str| options.split(',').any(|option| option == wanted);
    let stopped = ["emergency_ro", "shutdown"];
    has(mount, "rw")
        && (has(file_system, "ro") || stopped.iter().any(|option| has(file_system, option)))
}

/// Returns the number of errors that ext4 has found; `None` for other types.
fn count_errors(reader: &mut MachineReader, mount: &Mount) -> Option<f64> {
    if mount.fs_type != "ext4" {
        return None;
    }
    let device = mount.source.to_str()?.rsplit('/').next()?;
    reader.number(&format!("/sys/fs/ext4/{device}/errors_count"))
}

#[cfg(test)]
mod tests {
    use super::has_turned_read_only;

    #[test]
    fn an_error_is_told_from_a_mount_that_is_read_only_on_purpose() {
        // Linux 6.1 and 6.18, after an error; then `mount -o remount,ro`, `mount -o ro`, and a usual mount.
        assert!(has_turned_read_only("rw,relatime", "ro,errors=remount-ro"));
        assert!(has_turned_read_only(
            "rw,relatime",
            "rw,emergency_ro,errors=remount-ro"
        ));
        assert!(!has_turned_read_only("ro,relatime", "ro"));
        assert!(!has_turned_read_only("ro,relatime", "rw"));
        assert!(!has_turned_read_only("rw,relatime", "rw,errors=remount-ro"));
    }
}

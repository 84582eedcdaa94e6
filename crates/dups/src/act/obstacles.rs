//! Finds reasons for which the kernel would refuse a step, so that a plan does not contain it.

use super::Action;
use crate::mount_identity::CurrentMounts;
use crate::sys;
use rustix::fs::{Access, AtFlags, IFlags, Statx, StatxAttributes};
use rustix::io::Errno;
use std::collections::HashSet;
use std::os::fd::OwnedFd;

/// Maximum size of a file whose data btrfs may store in its metadata: one sector, with pages of 64 KiB.
const LARGEST_INLINE: u64 = 64 * 1024;
/// File systems that cannot share blocks between files (FIDEDUPERANGE).
const UNSHARED: [&str; 14] = [
    "ext2", "ext3", "ext4", "tmpfs", "ramfs", "vfat", "msdos", "exfat", "ntfs", "ntfs3", "jfs",
    "nilfs2", "zfs", "f2fs",
];

/// What the kernel or the file system forbids for a name.
#[derive(Clone, Debug, Default)]
pub(super) struct Obstacle {
    /// Why the name cannot be removed or replaced; `None` if it can.
    pub acted: Option<String>,
    /// Why the file cannot be the copy that stays; `None` if it can.
    pub kept: Option<String>,
    /// Whether the file's blocks are overwritten in place (`chattr +C`). Only determined for `reflink`.
    pub in_place: bool,
}

/// Active swap files, by device and inode.
#[derive(Debug, Default)]
pub(super) struct SwapFiles(HashSet<(u64, u64)>);

impl SwapFiles {
    /// Reads the active swap files; empty if the kernel does not report them.
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
        let names = text
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next());
        let files = names.filter_map(|name| {
            let path = name.replace("\\040", " ").replace("\\134", "\\");
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let stat = rustix::fs::statx(rustix::fs::CWD, path, flags, sys::WANTED).ok()?;
            Some((sys::statx_device(&stat), stat.stx_ino))
        });
        Self(files.collect())
    }
}

/// Finds the obstacles of a name.
pub(super) fn find_obstacle(
    action: &Action,
    (folder, name): (&OwnedFd, &[u8]),
    stat: &Statx,
    mount: Option<&assay_facts::mountinfo::Mount>,
    swaps: &SwapFiles,
) -> Obstacle {
    let sealed = |attributes: StatxAttributes| {
        if attributes.contains(StatxAttributes::IMMUTABLE) {
            Some("immutable (`chattr -i` ends that)")
        } else if attributes.contains(StatxAttributes::APPEND) {
            Some("append-only (`chattr -a` ends that)")
        } else {
            None
        }
    };
    let own = sealed(stat.stx_attributes).map(|what| format!("it is {what}"));
    let swap = swaps.0.contains(&(sys::statx_device(stat), stat.stx_ino));
    let swap = swap.then(|| "it is a swap file in use".to_owned());
    match action {
        Action::Reflink => {
            let fd = sys::open_file_at(folder, name);
            let flags = fd.as_ref().map(rustix::fs::ioctl_getflags);
            let unshared = |kind: &str| {
                UNSHARED.contains(&kind) || fd.as_ref().is_ok_and(|fd| !can_share_blocks(fd))
            };
            let kind = mount.map_or("this file system", |mount| mount.fs_type.as_str());
            let apart = unshared(kind)
                .then(|| format!("{kind} cannot share blocks between files on this disk"));
            let inline = find_inline_data(folder, name, stat);
            Obstacle {
                acted: swap
                    .clone()
                    .or_else(|| apart.clone())
                    .or_else(|| inline.clone())
                    .or(own)
                    .or_else(|| read_only(folder, name)),
                kept: swap.or(apart).or(inline),
                in_place: matches!(flags, Ok(Ok(flags)) if flags.contains(IFlags::NOCOW)),
            }
        }
        _ => {
            let around = rustix::fs::statx(folder, c"", AtFlags::EMPTY_PATH, sys::WANTED);
            let around = around.ok().and_then(|stat| sealed(stat.stx_attributes));
            let around = around.map(|what| format!("its folder is {what}"));
            Obstacle {
                acted: swap
                    .or(own.clone())
                    .or(around)
                    .or_else(|| find_closed_folder(folder)),
                // The kept copy gets one more name, or stays unchanged.
                kept: own.filter(|_| *action == Action::Hardlink),
                in_place: false,
            }
        }
    }
}

/// Returns whether the file system can share blocks. XFS made with `reflink=0`, for example, cannot. Tries to share a
/// range that is not aligned to blocks, which every file system refuses, and evaluates only the error.
fn can_share_blocks(fd: &OwnedFd) -> bool {
    let tried = sys::dedupe_range(fd, fd, 1, 1);
    !matches!(tried, Err(Errno::OPNOTSUPP | Errno::NOTTY))
}

/// Returns a reason if the file's data is stored in metadata, where blocks cannot be shared.
fn find_inline_data(folder: &OwnedFd, name: &[u8], stat: &Statx) -> Option<String> {
    if stat.stx_size > LARGEST_INLINE {
        return None;
    }
    let fd = sys::open_file_at(folder, name).ok()?;
    sys::is_inline(&fd).then(|| {
        "its content is so short that it lies in the metadata of the file system, which cannot be shared; \
         --hardlink can free it"
            .to_owned()
    })
}

/// Returns a reason if the file system, snapshot or mount is read-only.
fn read_only(folder: &OwnedFd, name: &[u8]) -> Option<String> {
    let access = rustix::fs::accessat(folder, name, Access::WRITE_OK, AtFlags::EACCESS);
    (access == Err(Errno::ROFS)).then(|| READ_ONLY.to_owned())
}

const READ_ONLY: &str = "it lies on a read-only mount, or in a read-only subvolume or snapshot";

/// Returns a reason if the names in the folder cannot be changed.
fn find_closed_folder(folder: &OwnedFd) -> Option<String> {
    let wanted = Access::WRITE_OK | Access::EXEC_OK;
    match rustix::fs::accessat(folder, ".", wanted, AtFlags::EACCESS) {
        Err(Errno::ROFS) => Some(READ_ONLY.to_owned()),
        Err(Errno::ACCESS) => Some("you may not change names in its folder".to_owned()),
        _ => None,
    }
}

/// Returns the maximum number of hard links of a file.
pub(super) fn most_links(grounds: Option<&CurrentMounts>, mount: u64) -> u64 {
    let found = grounds.and_then(|grounds| grounds.mount(mount));
    match found.map(|mount| mount.fs_type.as_str()) {
        // EXT4_LINK_MAX, BTRFS_LINK_MAX, JFS_LINK_MAX.
        Some("ext2" | "ext3") => 32_000,
        Some("ext4") => 65_000,
        Some("btrfs" | "jfs") => 65_535,
        _ => u64::MAX,
    }
}

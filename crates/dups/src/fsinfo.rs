//! Properties of a file system: an identity that survives a reboot, and the precision of file times.

use std::os::fd::AsFd;

/// A file system, as described by statfs(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsInfo {
    /// Identity that stays the same after a reboot: `f_fsid`, or the device number if `f_fsid` is zero.
    pub fsid: i64,
    /// Whether the kernel generates the files, as in /proc.
    pub pseudo: bool,
    /// Time after a change, in nanoseconds, during which another change may leave the file's times unchanged.
    pub blur: i64,
}

/// Magic numbers of file systems without stored data (linux/magic.h, Linux 6.18).
const PSEUDO: [u32; 16] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x1cd1,      // devpts
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6165_676c, // pstore
    0xde5e_81e4, // efivarfs
    0xf97c_ff8c, // selinux
    0x6265_6570, // configfs
    0x1980_0202, // mqueue
    0x4249_4e4d, // binfmt_misc
    0x6e73_6673, // nsfs
];

/// Local file systems whose file times have nanoseconds, from the kernel's clock.
const EXACT: [u32; 9] = [
    0xef53,      // ext2, ext3, ext4
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0x2fc1_2fc1, // zfs
    0x0102_1994, // tmpfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x794c_7630, // overlayfs
    0x8584_58f6, // ramfs
];

/// File systems that can share blocks between files and report extents by FIEMAP.
const REFLINKS: [u32; 4] = [
    0x9123_683e, // btrfs
    0x5846_5342, // xfs
    0xca45_1a4e, // bcachefs
    0x7461_636f, // ocfs2
];

/// Returns whether a file system supports shared blocks. `asked` is the result of statfs(2).
pub fn has_reflinks(asked: Result<rustix::fs::StatFs, rustix::io::Errno>) -> bool {
    asked.is_ok_and(|stat| REFLINKS.contains(&(stat.f_type as u32)))
}

/// `FsInfo::blur` of file systems with exact times: five ticks. The kernel's clock for files advances by one tick, at
/// most 10 ms.
const EXACT_BLUR: i64 = 50_000_000;
/// `FsInfo::blur` of other file systems: times have a resolution of two seconds on FAT and one second on ext3 and HFS+;
/// NFS and SMB use the clock of the server.
const VAGUE_BLUR: i64 = 3_000_000_000;

/// Reads the properties of the file system of an open file or folder on device `device`.
pub fn read_fs_info(fd: impl AsFd, device: u64) -> FsInfo {
    let fallback = FsInfo {
        fsid: device.cast_signed(),
        pseudo: false,
        blur: VAGUE_BLUR,
    };
    let Ok(stat) = rustix::fs::fstatfs(fd) else {
        return fallback;
    };
    let kind = stat.f_type as u32;
    // SAFETY: fsid_t is two C ints without padding or invalid values; libc keeps them private.
    let [low, high]: [u32; 2] = unsafe { std::mem::transmute_copy(&stat.f_fsid) };
    let fsid = (u64::from(high) << 32 | u64::from(low)).cast_signed();
    FsInfo {
        fsid: if fsid == 0 { fallback.fsid } else { fsid },
        pseudo: PSEUDO.contains(&kind),
        blur: if EXACT.contains(&kind) {
            EXACT_BLUR
        } else {
            VAGUE_BLUR
        },
    }
}

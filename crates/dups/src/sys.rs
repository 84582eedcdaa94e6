//! System calls of this crate: opening without following links, identities, times, extents.

use crate::identity::Identity;
use rustix::fs::{AtFlags, Mode, OFlags, Statx, StatxFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

/// Maximum path length of one system call, including the final zero byte (limits.h, PATH_MAX).
const PATH_MAX: usize = 4096;

/// Fields that statx is called with for each file.
pub const WANTED: StatxFlags = StatxFlags::TYPE
    .union(StatxFlags::MODE)
    .union(StatxFlags::INO)
    .union(StatxFlags::SIZE)
    .union(StatxFlags::BLOCKS)
    .union(StatxFlags::UID)
    .union(StatxFlags::GID)
    .union(StatxFlags::NLINK)
    .union(StatxFlags::MTIME)
    .union(StatxFlags::CTIME)
    .union(StatxFlags::MNT_ID);

/// Opens `path` below `base` without following symbolic links or leaving the folder. Supports paths longer
/// than the kernel's limit.
pub fn open_below(base: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut rest = path;
    let mut held: Option<OwnedFd> = None;
    loop {
        let at = held.as_ref().map_or(base, |fd| fd.as_fd());
        if rest.len() < PATH_MAX {
            return open_beneath(at, rest, flags);
        }
        let cut = rest[..PATH_MAX - 1]
            .iter()
            .rposition(|byte| *byte == b'/')
            .ok_or(Errno::NAMETOOLONG)?;
        let step = open_beneath(at, &rest[..cut], OFlags::PATH | OFlags::DIRECTORY)?;
        rest = &rest[cut + 1..];
        held = Some(step);
    }
}

fn open_beneath(at: BorrowedFd<'_>, below: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let below = if below.is_empty() { b"." } else { below };
    assay_host::held::open_beneath(at, path_from_bytes(below), flags)
}

/// Flags for opening files to read: without blocking and without following links.
pub const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

/// Opens a file in an open folder for reading, without changing its access time if permitted.
pub fn open_file_at(folder: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    open_without_atime(|flags| rustix::fs::openat(&folder, name, flags, Mode::empty()))
}

/// Opens a path for reading, without changing its access time if permitted.
pub fn open_without_atime(
    open: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    match open(READ | OFlags::NOATIME) {
        Err(Errno::PERM) => open(READ),
        other => other,
    }
}

/// Opens a folder below another folder and creates missing parts, with access only for `owner` (user and group).
/// Follows no links.
pub fn make_below(
    base: BorrowedFd<'_>,
    path: &[u8],
    (user, group): (u32, u32),
) -> Result<OwnedFd, Errno> {
    use rustix::fs::{Gid, Uid};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::openat(base, ".", flags, Mode::empty())?;
    for name in path
        .split(|byte| *byte == b'/')
        .filter(|one| !one.is_empty())
    {
        if name == b"." || name == b".." {
            return Err(Errno::XDEV);
        }
        let made = match rustix::fs::mkdirat(&at, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(errno),
        };
        let next = rustix::fs::openat(&at, name, flags, Mode::empty())?;
        let ours = || {
            let stat = rustix::fs::fstat(&next)?;
            Ok::<bool, Errno>(stat.st_uid == rustix::process::geteuid().as_raw())
        };
        // Change the owner only if the folder is still the one created here.
        if made && ours()? {
            let given =
                rustix::fs::fchown(&next, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
            // Without root privileges the owner stays.
            match given {
                Ok(()) | Err(Errno::PERM) => {}
                Err(errno) => return Err(errno),
            }
        }
        at = next;
    }
    Ok(at)
}

/// Returns the current path of an open folder, without links.
pub fn real_path(fd: impl AsFd) -> Result<Vec<u8>, Errno> {
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new())?.into_bytes();
    match path.starts_with(b"/") {
        true => Ok(path),
        false => Err(Errno::NOENT),
    }
}

/// Returns the number of the mount of an open file or folder, as in mountinfo.
pub fn mount_id(fd: impl AsFd) -> Option<u64> {
    let mask = StatxFlags::MNT_ID;
    if let Ok(stat) = rustix::fs::statx(&fd, c"", AtFlags::EMPTY_PATH, mask)
        && StatxFlags::from_bits_retain(stat.stx_mask).contains(mask)
    {
        return Some(stat.stx_mnt_id);
    }
    // For kernels before 5.8.
    let path = format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd());
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    line.trim().parse().ok()
}

/// Calls statx(2) on an open file.
pub fn stat_fd(fd: impl AsFd) -> Result<Statx, Errno> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, WANTED)
}

/// Returns inode, size and times from statx.
pub fn statx_identity(stat: &Statx) -> Identity {
    Identity {
        ino: stat.stx_ino,
        size: stat.stx_size,
        mtime: to_nanos(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
        ctime: to_nanos(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
    }
}

/// Returns the current identity of an open file.
pub fn identity_now(fd: impl AsFd) -> Result<Identity, Errno> {
    let stat = rustix::fs::fstat(fd)?;
    Ok(Identity {
        ino: stat.st_ino,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime: to_nanos(
            stat.st_mtime,
            u32::try_from(stat.st_mtime_nsec).unwrap_or(0),
        ),
        ctime: to_nanos(
            stat.st_ctime,
            u32::try_from(stat.st_ctime_nsec).unwrap_or(0),
        ),
    })
}

/// Like [`identity_now`], but on a network file system requests the attributes from the server instead of using cached
/// ones.
pub fn identity_there(fd: impl AsFd) -> Result<Identity, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
    rustix::fs::statx(fd, c"", flags, WANTED).map(|stat| statx_identity(&stat))
}

/// Returns the device number from statx.
pub fn statx_device(stat: &Statx) -> u64 {
    rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor)
}

/// Converts seconds and nanoseconds to nanoseconds.
pub fn to_nanos(seconds: i64, nanos: u32) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(i64::from(nanos))
}

/// Returns the wall clock in nanoseconds since 1970, with the precision of file timestamps.
pub fn coarse_unix_nanos() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    to_nanos(now.tv_sec, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// Returns the CPU time of this process in nanoseconds.
pub fn cpu_time() -> i64 {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    to_nanos(used.tv_sec, u32::try_from(used.tv_nsec).unwrap_or(0))
}

/// Returns the number of voluntary context switches of this process (`ru_nvcsw`, getrusage(2)).
pub fn count_voluntary_switches() -> i64 {
    // SAFETY: rusage is plain numbers, for which zero is valid, and the kernel fills it.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &raw mut usage);
        usage.ru_nvcsw
    }
}

/// Converts a path to bytes.
pub fn path_bytes(path: &std::path::Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

/// Converts bytes to a path.
pub fn path_from_bytes(bytes: &[u8]) -> &std::path::Path {
    std::path::Path::new(std::ffi::OsStr::from_bytes(bytes))
}

/// Describes a kernel error without Rust's "(os error N)".
pub fn describe_errno(error: Errno) -> String {
    let text = std::io::Error::from(error).to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// An extent of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Offset in the file in bytes.
    pub logical: u64,
    /// Offset on the device (or in the file system's address space), bytes.
    pub physical: u64,
    /// Length in bytes.
    pub length: u64,
    /// Whether the physical address is valid: the data is not delayed, inline or encoded.
    pub known: bool,
    /// Whether the data is stored in the file system's metadata.
    pub inline: bool,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct FiemapExtent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

const EXTENTS_AT_ONCE: usize = 64;

#[repr(C)]
struct Fiemap {
    start: u64,
    length: u64,
    flags: u32,
    mapped: u32,
    count: u32,
    reserved: u32,
    extents: [FiemapExtent; EXTENTS_AT_ONCE],
}

/// `_IOWR('f', 11, struct fiemap)` with its 32-byte head (linux/fs.h).
const FS_IOC_FIEMAP: libc::c_ulong = 0xc020_660b;
const FIEMAP_EXTENT_LAST: u32 = 1;
/// UNKNOWN, DELALLOC, DATA_ENCRYPTED, NOT_ALIGNED, DATA_INLINE, DATA_TAIL (linux/fiemap.h).
const FIEMAP_VAGUE: u32 = 0x2 | 0x4 | 0x80 | 0x100 | 0x200 | 0x400;

/// Reads at most `most` extents of a file with the FIEMAP ioctl. Fails on file systems without FIEMAP (ZFS,
/// tmpfs, NFS).
pub fn read_extents(fd: impl AsFd, most: usize) -> Result<Vec<Extent>, Errno> {
    let mut found = Vec::new();
    let mut start = 0;
    loop {
        let mut map = Fiemap {
            start,
            length: u64::MAX - start,
            flags: 0,
            mapped: 0,
            count: u32::try_from(EXTENTS_AT_ONCE.min(most)).unwrap_or(1),
            reserved: 0,
            extents: [FiemapExtent::default(); EXTENTS_AT_ONCE],
        };
        // SAFETY: the kernel writes at most `count` extents, which is at most the array's length,
        // and the struct has the layout of `struct fiemap`.
        let status = unsafe {
            libc::ioctl(
                fd.as_fd().as_raw_fd(),
                FS_IOC_FIEMAP,
                std::ptr::from_mut(&mut map),
            )
        };
        if status != 0 {
            return Err(last_error());
        }
        let mapped = (map.mapped as usize).min(EXTENTS_AT_ONCE);
        for extent in &map.extents[..mapped] {
            found.push(Extent {
                logical: extent.logical,
                physical: extent.physical,
                length: extent.length,
                known: extent.flags & FIEMAP_VAGUE == 0 && extent.physical != 0,
                inline: extent.flags & FIEMAP_INLINE != 0,
            });
        }
        let last = map.extents[..mapped].last();
        match last {
            Some(last) if last.flags & FIEMAP_EXTENT_LAST == 0 && found.len() < most => {
                start = last.logical + last.length;
            }
            _ => return Ok(found),
        }
    }
}

/// Flag of an extent whose data is in the metadata (FIEMAP_EXTENT_DATA_INLINE).
const FIEMAP_INLINE: u32 = 0x200;

/// Returns whether the data of an open file is in the file system's metadata; false if unknown.
pub fn is_inline(fd: impl AsFd) -> bool {
    // Unwritten data has no location yet.
    let _ = rustix::fs::fdatasync(fd.as_fd());
    read_extents(fd, 2).is_ok_and(|found| found.iter().any(|extent| extent.inline))
}

/// `_IOWR(0x94, 54, struct file_dedupe_range)` (linux/fs.h).
const FIDEDUPERANGE: libc::c_ulong = 0xc018_9436;

#[repr(C)]
struct DedupeRange {
    src_offset: u64,
    src_length: u64,
    dest_count: u16,
    reserved1: u16,
    reserved2: u32,
    dest_fd: i64,
    dest_offset: u64,
    bytes_deduped: u64,
    status: i32,
    reserved: u32,
}

/// What happened when a range was deduplicated.
#[derive(Debug, PartialEq, Eq)]
pub enum Deduped {
    /// Number of bytes that are now shared.
    Bytes(u64),
    /// The ranges differ; nothing was changed.
    Differs,
}

/// Shares a range of `from` with `to` by FIDEDUPERANGE. The kernel locks both files, compares them, and
/// changes nothing if they differ (ioctl_fideduperange(2)).
pub fn dedupe_range(
    from: impl AsFd,
    to: impl AsFd,
    offset: u64,
    length: u64,
) -> Result<Deduped, Errno> {
    let mut range = DedupeRange {
        src_offset: offset,
        src_length: length,
        dest_count: 1,
        reserved1: 0,
        reserved2: 0,
        dest_fd: i64::from(to.as_fd().as_raw_fd()),
        dest_offset: offset,
        bytes_deduped: 0,
        status: 0,
        reserved: 0,
    };
    // SAFETY: the struct has the layout of `struct file_dedupe_range` with one destination, as
    // `dest_count` says, and lives through the call.
    let status = unsafe {
        libc::ioctl(
            from.as_fd().as_raw_fd(),
            FIDEDUPERANGE,
            std::ptr::from_mut(&mut range),
        )
    };
    match (status, range.status) {
        (0, 0) => Ok(Deduped::Bytes(range.bytes_deduped)),
        (0, 1) => Ok(Deduped::Differs),
        (0, error) => Err(Errno::from_raw_os_error(-error)),
        _ => Err(last_error()),
    }
}

/// Takes a read lease: succeeds only if nobody has the file open for writing. Later writers wait until the
/// lease is released (fcntl(2), F_SETLEASE). The process must ignore SIGIO.
pub fn lease(fd: impl AsFd) -> Result<(), Errno> {
    set_lease(fd, libc::F_RDLCK)
}

/// Releases a lease.
pub fn release(fd: impl AsFd) {
    let _ = set_lease(fd, libc::F_UNLCK);
}

fn set_lease(fd: impl AsFd, kind: libc::c_int) -> Result<(), Errno> {
    // SAFETY: fcntl with an integer argument touches no memory of ours.
    match unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_SETLEASE, kind) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

/// Returns whether a lease is intact, that is, whether no program has tried to open the file for writing.
pub fn lease_holds(fd: impl AsFd) -> bool {
    // SAFETY: fcntl without an argument touches no memory of ours.
    unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_GETLEASE) == libc::F_RDLCK }
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

/// `_IOR(0x15, 0, struct fsuuid2)`: a length and 16 bytes (linux/fs.h, Linux 6.9).
const FS_IOC_GETFSUUID: libc::c_ulong = 0x8011_1500;
/// `_IOR('X', 100, struct xfs_fsop_geom_v1)`: 112 bytes, the UUID from byte 64 (xfs_fs.h).
const XFS_IOC_FSGEOMETRY_V1: libc::c_ulong = 0x8070_5864;
/// `_IOR(0x94, 31, struct btrfs_ioctl_fs_info_args)`: 1024 bytes (linux/btrfs.h).
const BTRFS_IOC_FS_INFO: libc::c_ulong = 0x8400_941f;
/// Offset of the flags in `btrfs_ioctl_fs_info_args`.
const BTRFS_FLAGS_AT: usize = 48;
/// Flag that requests the UUID on disk, at byte 64.
const BTRFS_METADATA_UUID: u64 = 1 << 2;

/// Returns the UUID of a file system on disk. `kind` is its type in mountinfo.
pub fn read_fs_uuid(fd: impl AsFd, kind: &str) -> Option<[u8; 16]> {
    let ask = |request: libc::c_ulong, fill: &dyn Fn(&mut [u8; 1024])| {
        let mut answer = [0; 1024];
        fill(&mut answer);
        // SAFETY: each request writes at most as many bytes as its number says, 1024 or fewer.
        let status = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), request, answer.as_mut_ptr()) };
        (status == 0).then_some(answer)
    };
    let part = |answer: [u8; 1024], at: usize| answer[at..].first_chunk::<16>().copied();
    let found = match kind {
        // A btrfs disk that is mounted twice gets another UUID in memory; this is the UUID on disk.
        "btrfs" => {
            let flags = BTRFS_METADATA_UUID.to_ne_bytes();
            let fill =
                |answer: &mut [u8; 1024]| answer[BTRFS_FLAGS_AT..][..8].copy_from_slice(&flags);
            let answer = ask(BTRFS_IOC_FS_INFO, &fill)?;
            let told = answer[BTRFS_FLAGS_AT..].first_chunk::<8>()?;
            let told = u64::from_ne_bytes(*told) & BTRFS_METADATA_UUID != 0;
            part(answer, if told { 64 } else { 16 })
        }
        "xfs" => part(ask(XFS_IOC_FSGEOMETRY_V1, &|_| {})?, 64),
        _ => match ask(FS_IOC_GETFSUUID, &|_| {}) {
            Some(answer) if answer[0] == 16 => part(answer, 1),
            // ext4 derives f_fsid from the UUID (ext4_statfs()).
            _ if matches!(kind, "ext2" | "ext3" | "ext4") => {
                let id = crate::fsinfo::read_fs_info(&fd, 0).fsid.to_ne_bytes();
                let mut uuid = [0; 16];
                uuid[..8].copy_from_slice(&id);
                Some(uuid)
            }
            _ => None,
        },
    };
    found.filter(|uuid| *uuid != [0; 16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_have_the_kernels_layout() {
        assert_eq!(std::mem::size_of::<FiemapExtent>(), 56);
        assert_eq!(std::mem::offset_of!(Fiemap, extents), 32);
        assert_eq!(std::mem::size_of::<DedupeRange>(), 24 + 32);
        assert_eq!(std::mem::offset_of!(DedupeRange, dest_fd), 24);
    }
}

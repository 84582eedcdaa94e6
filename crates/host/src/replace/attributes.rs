//! Copies the attributes of a file to its replacement: owner, mode, extended attributes (including ACLs and SELinux
//! labels), inode flags and times. Module `swap` exchanges the files.

use super::fail;
use crate::error::HostError;
use crate::held::{Directory, Held};
use crate::inode_flags::{Mark, shell_word};
use crate::replace::Times;
use rustix::fs::{IFlags, Stat, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Name of the extended attribute that contains an access control list (acl(5)).
const ACL: &str = "system.posix_acl_access";

/// The flags `FS_NOCOMP_FL` (`NO_COMPRESSION`) and `FS_DAX_FL` (`DAX`) of ioctl_iflags(2), for which rustix has no
/// names.
const NO_COMPRESSION: IFlags = IFlags::from_bits_retain(0x400);
const DAX: IFlags = IFlags::from_bits_retain(0x0200_0000);

/// Returns the inode flags that users set with chattr(1). Other flags describe how the file system stores the
/// file.
fn settable_flags() -> IFlags {
    IFlags::SECURE_REMOVAL
        | IFlags::UNRM
        | IFlags::COMPRESSED
        | IFlags::SYNC
        | IFlags::NODUMP
        | IFlags::NOATIME
        | NO_COMPRESSION
        | IFlags::JOURNALING
        | IFlags::NOTAIL
        | IFlags::NOCOW
        | DAX
        | IFlags::PROJECT_INHERIT
}

/// Fails if a file cannot be replaced, because the file or its directory is immutable, append-only or sealed.
///
/// # Errors
/// The reason, and the command that permits the replacement.
pub(super) fn refuse_unreplaceable(directory: &Directory, model: &Held) -> Result<(), HostError> {
    let above = model.shown().parent().unwrap_or(Path::new("/"));
    let (which, path, mark) = match (Mark::of(model.file()), Mark::of(directory)) {
        (Some(mark), _) => ("the file", model.shown(), mark),
        (None, Some(mark)) => ("its directory", above, mark),
        (None, None) => return Ok(()),
    };
    let (word, letter) = mark.words();
    let shown = shell_word(path);
    let reason = match mark {
        Mark::Sealed => {
            "the file is sealed by fs-verity, and its replacement would not be: replace it by the means that sealed it".to_owned()
        }
        Mark::Immutable | Mark::AppendOnly => format!(
            "{which} is {word} (chattr +{letter}), so somebody wants it to stay as it is. If it shall change all the same: `chattr -{letter} {shown}`, then the same command again, then `chattr +{letter} {shown}`"
        ),
    };
    Err(HostError::path(model.shown(), reason))
}

/// Writes content to a new file, and copies all attributes of the file `model` to it.
///
/// # Errors
/// The file cannot be written, or its file system cannot store an attribute that determines who may read the file or
/// how it is stored.
pub(super) fn fill(
    made: &Held,
    model: &Held,
    found: &Stat,
    bytes: &[u8],
    times: Option<Times>,
) -> Result<(), HostError> {
    // Copy-on-write can be configured only for an empty file.
    copy_flags(model, made)?;
    fill_file(made.file(), model.file(), found, bytes, times).map_err(fail(made.shown()))
}

fn fill_file(
    mut file: &File,
    model: &File,
    found: &Stat,
    bytes: &[u8],
    times: Option<Times>,
) -> std::io::Result<()> {
    file.write_all(bytes)?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (found.st_uid, found.st_gid) {
        std::os::unix::fs::fchown(file, Some(found.st_uid), Some(found.st_gid))?;
    }
    // Remove the ACL that the file inherited from its directory; the model's ACL is copied below. The mode
    // must be set in between, because it would restrict the copied ACL.
    match rustix::fs::fremovexattr(file, ACL) {
        Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    let mode = found.st_mode & 0o7777;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    copy_attributes(model, file)?;
    if let Some(times) = times {
        let timespec = |(seconds, nanoseconds): (i64, i64)| Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds.clamp(0, 999_999_999) as _,
        };
        let times = Timestamps {
            last_access: timespec(times.accessed),
            last_modification: timespec(times.modified),
        };
        rustix::fs::futimens(file, &times)?;
    }
    file.sync_all()
}

/// Copies the inode flags that users set. Clears flags that the new file inherited from its directory but that the
/// model does not have.
fn copy_flags(model: &Held, made: &Held) -> Result<(), HostError> {
    let Ok(wanted) = rustix::fs::ioctl_getflags(model.file()) else {
        // This file system has no flags.
        return Ok(());
    };
    let now = rustix::fs::ioctl_getflags(made.file()).unwrap_or(IFlags::empty());
    let flags = (now & !settable_flags()) | (wanted & settable_flags());
    if flags == now {
        return Ok(());
    }
    rustix::fs::ioctl_setflags(made.file(), flags).map_err(|error| {
        let error = std::io::Error::from(error);
        let reason = format!(
            "its inode flags (lsattr) could not be given to a replacement, so it was not replaced: {}",
            HostError::io(made.shown(), &error).reason()
        );
        HostError::path(model.shown(), reason)
    })
}

/// Copies extended attributes. Skips attributes that this user may not set, unless they determine who may read the
/// file.
fn copy_attributes(from: &File, to: &File) -> std::io::Result<()> {
    // Maximum sizes in Linux (XATTR_LIST_MAX, XATTR_SIZE_MAX).
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::flistxattr(from, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (mut wanted, mut found) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    for name in names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let os_name = OsStr::from_bytes(name);
        let length = rustix::fs::fgetxattr(from, os_name, &mut wanted)?;
        let wanted = &wanted[..length];
        let Err(error) = rustix::fs::fsetxattr(to, os_name, wanted, XattrFlags::empty()) else {
            continue;
        };
        let same = rustix::fs::fgetxattr(to, os_name, &mut found)
            .is_ok_and(|length| found[..length] == *wanted);
        if !same && (name == ACL.as_bytes() || name == b"security.selinux") {
            return Err(error.into());
        }
    }
    Ok(())
}

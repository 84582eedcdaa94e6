//! Opens outputs that are written directly: inherited descriptors, terminals and /dev/null.

use crate::error::HostError;
use rustix::fs::{Mode, OFlags, Stat, major, minor};
use rustix::io::{Errno, FdFlags};
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::path::Path;

/// Opens the descriptor to which a path refers: `-`, `/dev/stdout`, `/dev/stderr`, `/dev/fd/N` or `/proc/self/fd/N`.
/// Returns `None` for other paths.
///
/// # Errors
/// This process did not inherit the descriptor: it is closed, or assay opened it.
#[allow(
    unsafe_code,
    reason = "a descriptor that the caller names by its number"
)]
pub(super) fn open_descriptor(path: &Path) -> Result<Option<File>, HostError> {
    let Some(number) = parse_descriptor(path) else {
        return Ok(None);
    };
    let missing = || {
        let reason = format!("descriptor {number} is not open; redirect it, as in {number}>FILE");
        HostError::path(path, reason)
    };
    // SAFETY: fcntl(2) alone sees the number, and says whether it is open.
    let given = unsafe { BorrowedFd::borrow_raw(number) };
    // Descriptors that assay opens close on exec; inherited ones survived an exec.
    match rustix::io::fcntl_getfd(given) {
        Ok(flags) if !flags.contains(FdFlags::CLOEXEC) => {}
        _ => return Err(missing()),
    }
    let copy = rustix::io::fcntl_dupfd_cloexec(given, 0);
    copy.map(|fd| Some(File::from(fd))).map_err(|_| missing())
}

fn parse_descriptor(path: &Path) -> Option<RawFd> {
    match path.to_str()? {
        "-" | "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        name => {
            let digits = name
                .strip_prefix("/dev/fd/")
                .or_else(|| name.strip_prefix("/proc/self/fd/"))?;
            let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            plain.then(|| digits.parse().ok())?
        }
    }
}

/// Opens a device that only receives data: /dev/null, /dev/full or a terminal. Returns `None` for other devices,
/// because writing to a device can have any effect.
///
/// Major numbers are from devices.txt of the kernel: 1 is memory, 5 is the terminal of this process, 4 and 136 to 143
/// are terminals.
pub(super) fn open_device(fd: BorrowedFd<'_>, found: &Stat) -> Result<Option<File>, Errno> {
    let harmless = matches!(
        (major(found.st_rdev), minor(found.st_rdev)),
        (1, 3 | 7) | (4 | 136..=143, _) | (5, 0)
    );
    if !harmless {
        return Ok(None);
    }
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(
        crate::held::descriptor_path(fd.as_fd()),
        flags,
        Mode::empty(),
    )?;
    Ok(Some(File::from(opened)))
}

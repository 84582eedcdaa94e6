//! Block devices, held: the node is looked up once, and the descriptor stands for the device to the end.

use super::{Access, Held, Identity, fail};
use crate::DeviceNumber;
use crate::error::HostError;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::path::Path;

impl Held {
    /// Opens a block device for reading; the last component may not be a link.
    ///
    /// # Errors
    /// Not there, not allowed, a link (ELOOP), or no block device.
    pub fn device(path: &Path) -> Result<Self, HostError> {
        open(path, OFlags::empty())
    }

    /// As [`Held::device`], and as long as it is held nobody can mount the device, add it to an array
    /// or claim it in another way (open(2), "O_EXCL ... block device"). Those that do not claim it may
    /// still open it, as [`Held::reopen`] does.
    ///
    /// # Errors
    /// As [`Held::device`]; EBUSY when somebody has claimed it.
    pub fn device_exclusively(path: &Path) -> Result<Self, HostError> {
        open(path, OFlags::EXCL)
    }

    /// Which device it is; none for a regular file.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn device_number(&self) -> Result<Option<DeviceNumber>, HostError> {
        let found = rustix::fs::fstat(&self.file).map_err(fail(&self.shown))?;
        let device = FileType::from_raw_mode(found.st_mode) == FileType::BlockDevice;
        Ok(device.then(|| DeviceNumber {
            major: rustix::fs::major(found.st_rdev),
            minor: rustix::fs::minor(found.st_rdev),
        }))
    }
}

fn open(path: &Path, more: OFlags) -> Result<Held, HostError> {
    let flags = Access::Read.flags() | more;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(fail(path))?;
    let found = rustix::fs::fstat(&fd).map_err(fail(path))?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::BlockDevice => Ok(Held {
            file: File::from(fd),
            shown: path.to_owned(),
            identity: Identity::from_stat(&found),
        }),
        _ => Err(HostError::path(path, "not a block device")),
    }
}

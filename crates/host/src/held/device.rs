//! Block devices that are used through open descriptors.

use super::{Access, Held, Identity, fail};
use crate::DeviceNumber;
use crate::error::HostError;
use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::path::Path;

impl Held {
    /// Opens a block device for reading. The last component must not be a link.
    ///
    /// # Errors
    /// The device does not exist, access is not permitted, it is a link (ELOOP), or it is not a block device.
    pub fn device(path: &Path) -> Result<Self, HostError> {
        open(path, OFlags::empty())
    }

    /// Like [`Held::device`], but also claims the device. While the result exists, nobody else can mount the device,
    /// add it to an array, or claim it in another way (open(2), "O_EXCL ... block device"). Other programs can still
    /// open the device without claiming it, as [`Held::reopen`] does.
    ///
    /// # Errors
    /// As [`Held::device`]; EBUSY if the device is already claimed.
    pub fn device_exclusively(path: &Path) -> Result<Self, HostError> {
        open(path, OFlags::EXCL)
    }

    /// Returns the device number; `None` for a regular file.
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

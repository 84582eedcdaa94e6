//! What lies behind loop devices, as the driver itself says (loop(4)): sysfs knows only a name, which
//! may be another file's by now, or nobody's.

use crate::DeviceNumber;
use crate::error::HostError;
use crate::held::{Held, Identity};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsRawFd as _;

/// `LOOP_GET_STATUS64` of linux/loop.h.
const GET_STATUS: libc::c_ulong = 0x4c05;

/// `struct loop_info64` of linux/loop.h.
#[repr(C)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    sizelimit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// What a loop device stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// The file, or the node of the device.
    pub file: Identity,
    /// Which device, when it is one.
    pub device: Option<DeviceNumber>,
}

/// What is behind a loop device; nothing when it is not set up.
///
/// # Errors
/// It is no loop device.
#[allow(unsafe_code, reason = "this ioctl has no safe wrapper")]
pub fn backing(device: &Held) -> Result<Option<Backing>, HostError> {
    // SAFETY: all bytes zero are a valid Info: plain integers.
    let mut info: Info = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and `info` has the size and layout that the driver fills.
    let asked = unsafe { libc::ioctl(device.file().as_raw_fd(), GET_STATUS as _, &mut info) };
    if asked == -1 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() == Some(Errno::NXIO.raw_os_error()) {
            true => Ok(None),
            false => Err(HostError::io(device.shown(), &error)),
        };
    }
    // Numbers of 64 bits as `huge_encode_dev` of the kernel packs them, as in `st_dev`.
    let number = DeviceNumber {
        major: rustix::fs::major(info.rdevice),
        minor: rustix::fs::minor(info.rdevice),
    };
    Ok(Some(Backing {
        file: Identity {
            device: info.device,
            inode: info.inode,
        },
        device: (info.rdevice != 0).then_some(number),
    }))
}

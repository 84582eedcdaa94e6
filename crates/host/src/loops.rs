//! Attaches loop devices to open files (loop(4)). A loop device is identified by the device and inode number of its
//! file, as the driver reports them. The path in sysfs is not used: if the file is renamed, this path refers to another
//! file or to none.

#![allow(unsafe_code, reason = "a loop device is set up by ioctl alone")]

use crate::DeviceNumber;
use crate::error::HostError;
use crate::held::{Held, Identity};
use linux_raw_sys::loop_device::{
    LO_FLAGS_DIRECT_IO, LOOP_CLR_FD, LOOP_CONFIGURE, LOOP_CTL_GET_FREE, LOOP_GET_STATUS64,
    LOOP_SET_DIRECT_IO, LOOP_SET_FD, loop_config, loop_info64,
};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

const CONTROL: &str = "/dev/loop-control";
/// Maximum number of attempts to attach a free device, because another process may take the device first.
const ATTEMPTS: usize = 64;

/// Attaches a free loop device to an open file, and returns its device node. With `direct`, the device bypasses the
/// page cache if the file permits this.
///
/// # Errors
/// assay does not run as root, loop devices are unavailable, or the file is unsuitable.
pub fn attach(file: &File, direct: bool) -> Result<PathBuf, HostError> {
    let control = open(Path::new(CONTROL))?;
    let mut last = None;
    for _ in 0..ATTEMPTS {
        // SAFETY: this call takes no argument and only returns a number.
        let number =
            unsafe { loop_ioctl(&control, LOOP_CTL_GET_FREE, 0) }.map_err(device_error(CONTROL))?;
        let node = PathBuf::from(format!("/dev/loop{number}"));
        let device = open(&node)?;
        match configure(&device, file, direct) {
            Ok(()) => return Ok(node),
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => last = Some((node, error)),
            Err(error) => return Err(HostError::io(&node, &error)),
        }
    }
    Err(match last {
        Some((node, error)) => HostError::io(&node, &error),
        None => HostError::path(Path::new(CONTROL), "gives no free device"),
    })
}

/// Returns the device nodes of all loop devices that are attached to a file.
///
/// # Errors
/// /sys/block cannot be read.
pub fn find_loop_devices(backing: Identity) -> Result<Vec<PathBuf>, HostError> {
    let sys = Path::new("/sys/block");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(sys).map_err(device_error("/sys/block"))? {
        let name = entry.map_err(device_error("/sys/block"))?.file_name();
        // Only devices in use have this directory.
        if !sys.join(&name).join("loop").exists() {
            continue;
        }
        let node = Path::new("/dev").join(&name);
        if open(&node).is_ok_and(|device| backed_by(&device).ok() == Some(backing)) {
            found.push(node);
        }
    }
    found.sort();
    Ok(found)
}

/// Detaches a loop device if it is still attached to the file `backing`. If the device is in use, the kernel detaches
/// it later.
///
/// # Errors
/// Permission is denied.
pub fn detach(node: &Path, backing: Identity) -> Result<(), HostError> {
    let device = open(node)?;
    let fail = |error: io::Error| HostError::io(node, &error);
    match backed_by(&device) {
        Ok(found) if found == backing => {}
        Ok(_) => return Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Ok(()),
        Err(error) => return Err(fail(error)),
    }
    // SAFETY: this call takes no argument.
    match unsafe { loop_ioctl(&device, LOOP_CLR_FD, 0) } {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(()),
        Err(error) => Err(fail(error)),
    }
}

fn configure(device: &File, file: &File, direct: bool) -> io::Result<()> {
    // SAFETY: both are plain structs of integers and arrays of them, for which zeroes are valid.
    let mut config: loop_config = unsafe { std::mem::zeroed() };
    config.fd = u32::try_from(file.as_raw_fd()).map_err(io::Error::other)?;
    if direct {
        config.info.lo_flags = LO_FLAGS_DIRECT_IO as u32;
    }
    // SAFETY: the argument is a live loop_config, which the kernel only reads.
    let done = unsafe { loop_ioctl(device, LOOP_CONFIGURE, (&raw const config).addr()) };
    match done {
        // Before Linux 5.8.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOTTY)) => {
            let fd = usize::try_from(file.as_raw_fd()).map_err(io::Error::other)?;
            // SAFETY: the argument is the number of an open file.
            unsafe { loop_ioctl(device, LOOP_SET_FD, fd) }?;
            if direct {
                // Optional: not every file supports it. SAFETY: the argument is a number.
                let _ = unsafe { loop_ioctl(device, LOOP_SET_DIRECT_IO, 1) };
            }
            Ok(())
        }
        other => other.map(drop),
    }
}

/// File or device to which a loop device is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    /// Identity of the file. For a device, it is the identity of the device node.
    pub file: Identity,
    /// Number of the device; `None` if the backing is a regular file.
    pub device: Option<DeviceNumber>,
}

/// Returns the file or device to which a loop device is attached; `None` if it is not attached.
///
/// # Errors
/// The device is not a loop device.
pub fn read_backing(device: &Held) -> Result<Option<Backing>, HostError> {
    match read_loop_status(device.file()) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        Err(error) => Err(HostError::io(device.shown(), &error)),
    }
}

fn backed_by(device: &File) -> io::Result<Identity> {
    read_loop_status(device).map(|found| found.file)
}

/// Reads the status of a loop device. The driver encodes device numbers like the kernel's `huge_encode_dev`, as in
/// `st_dev`.
fn read_loop_status(device: &File) -> io::Result<Backing> {
    // SAFETY: a plain struct of integers and arrays of them, for which zeroes are valid.
    let mut info: loop_info64 = unsafe { std::mem::zeroed() };
    // SAFETY: the argument is a live loop_info64, which the kernel fills in.
    unsafe { loop_ioctl(device, LOOP_GET_STATUS64, (&raw mut info).addr()) }?;
    let number = DeviceNumber {
        major: rustix::fs::major(info.lo_rdevice),
        minor: rustix::fs::minor(info.lo_rdevice),
    };
    Ok(Backing {
        file: Identity {
            device: info.lo_device,
            inode: info.lo_inode,
        },
        device: (info.lo_rdevice != 0).then_some(number),
    })
}

fn open(node: &Path) -> Result<File, HostError> {
    let opened = File::options()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW)
        .open(node);
    opened.map_err(|error| HostError::io(node, &error))
}

/// Calls ioctl(2) on a loop device.
///
/// # Safety
/// `argument` must be what the request needs: a number, or the address of a live value of its type.
unsafe fn loop_ioctl(device: &File, request: u32, argument: usize) -> io::Result<i32> {
    // SAFETY: the caller's promise.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), request as libc::Ioctl, argument) };
    match done {
        ..0 => Err(io::Error::last_os_error()),
        done => Ok(done),
    }
}

fn device_error(path: &str) -> impl Fn(io::Error) -> HostError {
    move |error| HostError::io(Path::new(path), &error)
}

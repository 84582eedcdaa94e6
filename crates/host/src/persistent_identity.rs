//! Identity of a file or directory for journals. It stays valid after renames and reboots.

#![allow(
    unsafe_code,
    reason = "rustix has no name_to_handle_at and no open_by_handle_at"
)]

use crate::error::HostError;
use crate::held::Identity;
use rustix::fs::{AtFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::Path;

/// Maximum size of a file handle in bytes, for all file systems (MAX_HANDLE_SZ, name_to_handle_at(2)).
const LONGEST: usize = 128;

/// Identity of a file or directory in a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// Device and inode number. The device number may change with a reboot.
    #[serde(flatten)]
    pub identity: Identity,
    /// File handle, which the file system never gives to another file. Not every file system has handles. Only root can
    /// open a file by its handle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handle: Option<Handle>,
    /// Creation time; `None` if the file system does not store it. A later file with the same inode number has a later
    /// creation time. Programs cannot change this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<Born>,
}

/// Creation time of a file (`stx_btime` of statx(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Born {
    seconds: i64,
    nanoseconds: u32,
}

/// A file handle (name_to_handle_at(2)), as opaque bytes and their type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Handle {
    kind: i32,
    bytes: Vec<u8>,
}

/// Result of searching a known file or directory.
#[derive(Debug)]
pub enum Whereabouts {
    /// The object exists and is open (`O_PATH`).
    Open(OwnedFd),
    /// The object was removed.
    Removed,
    /// Unknown, because the file system does not support the search, or this user may not use it.
    Unknown,
}

/// A file handle in the kernel's format (struct file_handle).
#[repr(C)]
struct Raw {
    length: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; LONGEST],
}

impl KnownFile {
    /// Reads the identity of an open file or directory.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn of(fd: impl AsFd) -> Result<Self, HostError> {
        let path = |error: Errno| HostError::io(Path::new("an open file"), &error.into());
        Ok(Self {
            identity: Identity::of(&fd).map_err(path)?,
            handle: handle(&fd),
            born: read_birth(&fd),
        })
    }

    /// Creates an identity with only device and inode number.
    #[must_use]
    pub fn only(identity: Identity) -> Self {
        Self {
            identity,
            handle: None,
            born: None,
        }
    }

    /// Returns whether an open file is this file, without comparing the handle. The file must have the same inode
    /// number, belong to this user, and have the same creation time. If a creation time is unknown, the device number
    /// must be equal instead, although it may change with a reboot.
    pub(crate) fn is(&self, fd: impl AsFd) -> bool {
        let Ok(found) = rustix::fs::fstat(&fd) else {
            return false;
        };
        let ours = found.st_uid == rustix::process::geteuid().as_raw();
        let born = match (self.born, read_birth(&fd)) {
            (Some(then), Some(now)) => then == now,
            _ => found.st_dev == self.identity.device,
        };
        found.st_ino == self.identity.inode && ours && born
    }

    /// Opens the file by its handle, whatever its current name is. `beside` is any open file or directory on the same
    /// file system.
    #[must_use]
    pub fn find(&self, beside: impl AsFd) -> Whereabouts {
        let Some(handle) = &self.handle else {
            return Whereabouts::Unknown;
        };
        let mut raw = Raw {
            length: 0,
            kind: handle.kind,
            bytes: [0; LONGEST],
        };
        let Some(bytes) = raw.bytes.get_mut(..handle.bytes.len()) else {
            return Whereabouts::Unknown;
        };
        bytes.copy_from_slice(&handle.bytes);
        raw.length = u32::try_from(handle.bytes.len()).unwrap_or(0);
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or(0);
        // SAFETY: `raw` is a live file_handle whose bytes are as long as its length says, and the
        // kernel only reads it.
        let fd = unsafe {
            libc::open_by_handle_at(
                beside.as_fd().as_raw_fd(),
                (&raw mut raw).cast::<libc::file_handle>(),
                flags,
            )
        };
        if fd < 0 {
            return match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::ESTALE) => Whereabouts::Removed,
                _ => Whereabouts::Unknown,
            };
        }
        // SAFETY: the kernel has just given this descriptor to us alone.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        match rustix::fs::fstat(&fd) {
            Ok(found) if found.st_ino != self.identity.inode => Whereabouts::Unknown,
            // Two file systems may use the same handle for different files.
            Ok(_) if self.born.is_some_and(|then| read_birth(&fd) != Some(then)) => {
                Whereabouts::Unknown
            }
            // Somebody still has it open.
            Ok(found) if found.st_nlink == 0 => Whereabouts::Removed,
            Ok(_) => Whereabouts::Open(fd),
            Err(_) => Whereabouts::Unknown,
        }
    }
}

fn read_birth(fd: impl AsFd) -> Option<Born> {
    let found = rustix::fs::statx(fd, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let kept = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    kept.then_some(Born {
        seconds: found.stx_btime.tv_sec,
        nanoseconds: found.stx_btime.tv_nsec,
    })
}

fn handle(fd: impl AsFd) -> Option<Handle> {
    let mut raw = Raw {
        length: u32::try_from(LONGEST).unwrap_or(0),
        kind: 0,
        bytes: [0; LONGEST],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: the path is an empty C string, `raw` has room for as many bytes as its length says, and
    // `mount` is a live int.
    let done = unsafe {
        libc::name_to_handle_at(
            fd.as_fd().as_raw_fd(),
            c"".as_ptr(),
            (&raw mut raw).cast::<libc::file_handle>(),
            &mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    let length = usize::try_from(raw.length).ok()?;
    (done == 0).then_some(Handle {
        kind: raw.kind,
        bytes: raw.bytes.get(..length)?.to_vec(),
    })
}

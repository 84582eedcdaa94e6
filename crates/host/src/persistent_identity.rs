//! What finds a file or directory again although its name may have been changed meanwhile, and after
//! the machine was started again: for journals.

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

/// The longest handle of any file system (MAX_HANDLE_SZ, name_to_handle_at(2)).
const LONGEST: usize = 128;

/// A file or directory as a journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownFile {
    /// Device and inode. After the machine was started again the device may have another number.
    #[serde(flatten)]
    pub identity: Identity,
    /// The file system's own name for it, which no later file gets; not every file system has one,
    /// and only root may open by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handle: Option<Handle>,
    /// When it was made, where the file system keeps that: a later file of the same number was made
    /// later, and no program can say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    born: Option<Born>,
}

/// `stx_btime` (statx(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Born {
    seconds: i64,
    nanoseconds: u32,
}

/// A handle (name_to_handle_at(2)): opaque bytes and their kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Handle {
    kind: i32,
    bytes: Vec<u8>,
}

/// What became of a file or directory that is known.
#[derive(Debug)]
pub enum Whereabouts {
    /// It is there, and open (`O_PATH`).
    Open(OwnedFd),
    /// It was removed.
    Removed,
    /// The file system cannot tell, or this user may not ask.
    Unknown,
}

/// As the kernel takes it (struct file_handle).
#[repr(C)]
struct Raw {
    length: libc::c_uint,
    kind: libc::c_int,
    bytes: [u8; LONGEST],
}

impl KnownFile {
    /// Of an open file or directory.
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

    /// Of a file that is known by its identity alone.
    #[must_use]
    pub fn only(identity: Identity) -> Self {
        Self {
            identity,
            handle: None,
            born: None,
        }
    }

    /// Whether this is it, as far as can be told without its handle: the same number and the same
    /// moment of birth; where that is not kept, the same device, which may have another number after
    /// the machine was started again, and the same user.
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

    /// Opens it by its handle, whatever its name is now. `beside` is anything on the same file
    /// system.
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
            // Two file systems may have given the same name to two files.
            Ok(_) if self.born.is_some_and(|then| read_birth(&fd) != Some(then)) => {
                Whereabouts::Unknown
            }
            // Somebody has it open still.
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

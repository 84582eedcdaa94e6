//! Detects users of an open file that no process list shows: a loop device, a process of another container, or a swap
//! file.

use super::Held;
use crate::error::HostError;
use std::io;
use std::os::fd::AsRawFd as _;

/// The kernel's answer to a request for a lease (F_SETLEASE, fcntl(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// No other process has the file open or mapped.
    Alone,
    /// Another process has the file open or mapped.
    Shared,
    /// The file system or the user's rights do not permit a lease, so it is unknown whether the file has other users.
    NotGranted,
}

/// A byte-range lock of another process on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherLock {
    /// Process number. `None` for a lock of an open file description (F_OFD_SETLK), which QEMU uses.
    pub process: Option<i32>,
    /// Offset of the first locked byte.
    pub start: i64,
}

impl Held {
    /// Checks whether the file is open only here, by requesting a lease and releasing it again.
    ///
    /// # Errors
    /// The lease was granted but cannot be released.
    #[allow(
        unsafe_code,
        reason = "fcntl(2) with these commands has no safe wrapper"
    )]
    pub fn lease(&self) -> Result<Lease, HostError> {
        let fd = self.file.as_raw_fd();
        // SAFETY: the descriptor is open, and the argument of F_SETLEASE is a plain int.
        let taken = unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_WRLCK) };
        if taken == -1 {
            let error = io::Error::last_os_error();
            return Ok(match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EBUSY) => Lease::Shared,
                _ => Lease::NotGranted,
            });
        }
        // SAFETY: as above.
        match unsafe { libc::fcntl(fd, libc::F_SETLEASE, libc::F_UNLCK) } {
            -1 => Err(HostError::io(&self.shown, &io::Error::last_os_error())),
            _ => Ok(Lease::Alone),
        }
    }

    /// Returns a lock that another process has on any byte of the file. Databases lock files with F_SETLK, and QEMU
    /// with F_OFD_SETLK on bytes 100 and following (block/file-posix.c). Locks of flock(2) are not detected.
    ///
    /// # Errors
    /// The file system does not support the query.
    #[allow(
        unsafe_code,
        reason = "fcntl(2) with these commands has no safe wrapper"
    )]
    pub fn locked(&self) -> Result<Option<OtherLock>, HostError> {
        // SAFETY: all bytes zero are a valid flock: plain integers.
        let mut lock: libc::flock = unsafe { std::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as libc::c_short;
        lock.l_whence = libc::SEEK_SET as libc::c_short;
        // From the first byte to the end of the file; `l_pid` must be 0. SAFETY: the descriptor is open, and
        // `lock` lives until the call is over.
        let asked = unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
        if asked == -1 {
            return Err(HostError::io(&self.shown, &io::Error::last_os_error()));
        }
        Ok(
            (lock.l_type != libc::F_UNLCK as libc::c_short).then_some(OtherLock {
                process: (lock.l_pid > 0).then_some(lock.l_pid),
                start: lock.l_start,
            }),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::Access;
    use super::*;
    use rustix::fs::OFlags;

    #[test]
    fn another_descriptor_and_a_mapping_are_seen() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "x").unwrap();
        let held = Held::open(&path, Access::ReadWrite).unwrap();
        let found = held.lease().unwrap();
        if found == Lease::NotGranted {
            assay_testing::skipped("leases", "this file system grants none");
            return;
        }
        assert_eq!(found, Lease::Alone);
        for flags in [OFlags::RDONLY, OFlags::WRONLY] {
            let other = held.reopen(flags).unwrap();
            assert_eq!(held.lease().unwrap(), Lease::Shared);
            drop(other);
            assert_eq!(held.lease().unwrap(), Lease::Alone);
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(held.names().unwrap(), 0);
        assert_eq!(held.whereabouts(), None);
    }

    #[test]
    fn a_lock_is_seen_and_whose_it_is() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = Held::open(file.path(), Access::ReadWrite).unwrap();
        assert_eq!(held.locked().unwrap(), None);
        let other = Held::open(file.path(), Access::ReadWrite).unwrap();
        let operation = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::fcntl_lock(other.file(), operation).unwrap();
        let us = i32::try_from(std::process::id()).unwrap();
        let lock = held.locked().unwrap().unwrap();
        assert_eq!((lock.process, lock.start), (Some(us), 0));
    }
}

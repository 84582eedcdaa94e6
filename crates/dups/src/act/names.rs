//! Changes file names without losing a file, even if another program changes names at the same time.
//!
//! Uses the exchange and no-replace flags of renameat2(2). On file systems without these flags (NFS, OpenZFS
//! before 2.2, some FUSE), extra hard links give the same result: a replaced file gets another name first.

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// Device and inode number, which identify a file.
pub(crate) type Inode = (u64, u64);

/// How file names are changed: with or without the flags of renameat2(2).
#[derive(Clone, Copy, Default)]
pub(crate) struct Names {
    /// Whether to avoid the flags of renameat2, as on a file system that does not support them.
    pub plain: bool,
}

impl Names {
    /// Exchanges the names `name` and `aside`. `name` should be the name of the file `old`. Another program may have
    /// replaced this file, so the caller must check `aside` afterwards.
    pub fn exchange(
        self,
        parent: &OwnedFd,
        aside: &[u8],
        name: &[u8],
        old: Inode,
    ) -> Result<(), Errno> {
        match self.flagged(parent, aside, parent, name, RenameFlags::EXCHANGE) {
            Err(errno) if is_unsupported(errno) => replace(parent, aside, name, old),
            other => other,
        }
    }

    /// Renames the file under `name` to an unused name.
    pub fn take(self, from: &OwnedFd, name: &[u8], to: &OwnedFd, ours: &[u8]) -> Result<(), Errno> {
        match self.flagged(from, name, to, ours, RenameFlags::NOREPLACE) {
            Err(errno) if is_unsupported(errno) => rustix::fs::renameat(from, name, to, ours),
            other => other,
        }
    }

    /// Renames a file from its temporary name to a name that must be free.
    pub fn give(self, from: &OwnedFd, ours: &[u8], to: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        match self.flagged(from, ours, to, name, RenameFlags::NOREPLACE) {
            Err(errno) if is_unsupported(errno) => {
                rustix::fs::linkat(from, ours, to, name, AtFlags::empty())?;
                rustix::fs::unlinkat(from, ours, AtFlags::empty())
            }
            other => other,
        }
    }

    /// Renames `name`, which should be the file `old`, to the unused name `new`. If more than one step is needed, uses
    /// the temporary name `aside` in the source folder.
    pub fn carry(
        self,
        (from, name): (&OwnedFd, &[u8]),
        (to, new): (&OwnedFd, &[u8]),
        aside: &[u8],
        old: Inode,
    ) -> Result<(), Errno> {
        match self.flagged(from, name, to, new, RenameFlags::NOREPLACE) {
            Err(errno) if is_unsupported(errno) => {
                self.take(from, name, from, aside)?;
                let free = if read_inode(from, aside) == Some(old) {
                    self.give(from, aside, to, new)
                } else {
                    Err(Errno::STALE)
                };
                free.inspect_err(|_| {
                    let _ = self.give(from, aside, from, name);
                })
            }
            other => other,
        }
    }

    fn flagged(
        self,
        from: &OwnedFd,
        name: &[u8],
        to: &OwnedFd,
        new: &[u8],
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        match self.plain {
            true => Err(Errno::INVAL),
            false => rustix::fs::renameat_with(from, name, to, new, flags),
        }
    }
}

/// Returns whether an error means that the file system or kernel does not support the flags of renameat2.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Returns a second temporary name, for the replaced file.
pub(crate) fn spare_name(aside: &[u8]) -> Vec<u8> {
    [aside, b"-old"].concat()
}

/// Exchanges two names in three steps. Only the second step changes `name`, and it is atomic, so `name` always refers
/// to one of the two files. If another program creates a file under `name` microseconds before the second step, this
/// file is lost. Only the atomic exchange of renameat2 avoids this.
fn replace(parent: &OwnedFd, aside: &[u8], name: &[u8], old: Inode) -> Result<(), Errno> {
    let spare = spare_name(aside);
    rustix::fs::linkat(parent, name, parent, &*spare, AtFlags::empty())?;
    let as_planned =
        read_inode(parent, &spare) == Some(old) && read_inode(parent, name) == Some(old);
    let replaced = match as_planned {
        true => rustix::fs::renameat(parent, aside, parent, name),
        false => Err(Errno::STALE),
    };
    if replaced.is_err() {
        let _ = rustix::fs::unlinkat(parent, &*spare, AtFlags::empty());
        return replaced;
    }
    rustix::fs::renameat(parent, &*spare, parent, aside)
}

/// Returns device and inode of the file with this name.
pub(crate) fn read_inode(parent: impl AsFd, name: &[u8]) -> Option<Inode> {
    let stat =
        rustix::fs::statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, crate::sys::WANTED).ok()?;
    Some((crate::sys::statx_device(&stat), stat.stx_ino))
}

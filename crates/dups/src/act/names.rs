//! Changes of names that lose no file, also where another program changes them at the same time.
//!
//! Where the file system has them, by renameat2(2)'s exchange and rename-without-replacing. Others
//! (NFS, OpenZFS before 2.2, FUSE without them) get the same by further links: what is replaced has
//! another name first.

use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::os::fd::{AsFd, OwnedFd};

/// Device and inode.
pub(crate) type Inode = (u64, u64);

/// How names are changed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Names {
    /// Whether to do without the flags of renameat2, as on a file system that lacks them.
    pub plain: bool,
}

impl Names {
    /// Lets `name`, which is to be `old`, and `aside` change places. Afterwards the caller looks at
    /// `aside`, which may be something else if another program was faster.
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

    /// Renames whatever stands under `name` to a name that nobody else uses.
    pub fn take(self, from: &OwnedFd, name: &[u8], to: &OwnedFd, ours: &[u8]) -> Result<(), Errno> {
        match self.flagged(from, name, to, ours, RenameFlags::NOREPLACE) {
            Err(errno) if is_unsupported(errno) => rustix::fs::renameat(from, name, to, ours),
            other => other,
        }
    }

    /// Renames a file that stands under a name nobody else uses to one that must be free.
    pub fn give(self, from: &OwnedFd, ours: &[u8], to: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
        match self.flagged(from, ours, to, name, RenameFlags::NOREPLACE) {
            Err(errno) if is_unsupported(errno) => {
                rustix::fs::linkat(from, ours, to, name, AtFlags::empty())?;
                rustix::fs::unlinkat(from, ours, AtFlags::empty())
            }
            other => other,
        }
    }

    /// Renames `name`, which is to be `old`, to a name that must be free, by way of `aside` (in the
    /// folder it comes from) where that cannot be done in one step.
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

/// What renameat2 says when the file system, or the kernel, knows no flags.
fn is_unsupported(errno: Errno) -> bool {
    matches!(errno, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// The second name that the replaced file has meanwhile.
pub(crate) fn spare_name(aside: &[u8]) -> Vec<u8> {
    [aside, b"-old"].concat()
}

/// An exchange in three steps, of which the second is atomic: the name always stands for one of the
/// two. Between the look at the name and that step lie microseconds in which a file that another
/// program puts there would be replaced; only the exchange has no such gap.
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

/// Device and inode of what a name stands for now.
pub(crate) fn read_inode(parent: impl AsFd, name: &[u8]) -> Option<Inode> {
    let stat =
        rustix::fs::statx(parent, name, AtFlags::SYMLINK_NOFOLLOW, crate::sys::WANTED).ok()?;
    Some((crate::sys::statx_device(&stat), stat.stx_ino))
}

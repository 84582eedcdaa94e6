//! What a file has beside its content, owner, permissions and times.

use rustix::fs::{IFlags, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

/// Flags of an inode that somebody set, not the file system for itself (`FS_*_FL`, linux/fs.h):
/// SECRM, UNRM, COMPR, SYNC, IMMUTABLE, APPEND, NODUMP, NOATIME, NOCOMP, ENCRYPT, JOURNAL_DATA,
/// VERITY, NOCOW, DAX.
const KEPT: u32 = 0xff | 0x400 | 0x800 | 0x4000 | 0x10_0000 | 0x80_0000 | 0x200_0000;
/// IMMUTABLE and APPEND: with them a file cannot be filled any more.
const LAST: u32 = 0x10 | 0x20;
/// Longest value and longest list of names that the kernel keeps (linux/limits.h).
const MOST: usize = 64 * 1024;

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Xattr {
    /// Its name, with the namespace.
    #[serde(with = "crate::name_json")]
    pub name: Vec<u8>,
    /// Its value.
    #[serde(with = "crate::name_json")]
    pub value: Vec<u8>,
}

/// Extended attributes, ACLs and capabilities among them, and the flags of the inode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// By name.
    pub xattrs: Vec<Xattr>,
    /// Those that somebody set; none where the file system has none.
    pub flags: u32,
}

impl Attributes {
    /// Of an open file.
    pub(crate) fn of(fd: impl AsFd) -> Result<Self, String> {
        let cannot = |errno| {
            format!(
                "cannot read its extended attributes: {}",
                crate::sys::describe_errno(errno)
            )
        };
        let mut names = vec![0; MOST];
        let length = match rustix::fs::flistxattr(&fd, &mut names[..]) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => 0,
            length => length.map_err(cannot)?,
        };
        let names = names[..length].split(|byte| *byte == 0);
        let mut xattrs = Vec::new();
        for name in names.filter(|name| !name.is_empty()) {
            let mut value = vec![0; MOST];
            let length = rustix::fs::fgetxattr(&fd, name, &mut value[..]).map_err(cannot)?;
            value.truncate(length);
            xattrs.push(Xattr {
                name: name.to_vec(),
                value,
            });
        }
        xattrs.sort();
        Ok(Self {
            xattrs,
            flags: read_flags(&fd) & KEPT,
        })
    }

    /// Gives an empty file the flags that count for what is written to it.
    pub(crate) fn prepare(&self, fd: impl AsFd) {
        set_flags(fd, self.flags & !LAST);
    }

    /// Gives them to a file, whose owner and permissions are right by now: who changes these takes
    /// capabilities away.
    pub(crate) fn give(&self, fd: impl AsFd) -> Result<(), String> {
        for one in &self.xattrs {
            rustix::fs::fsetxattr(&fd, &*one.name, &one.value, XattrFlags::empty()).map_err(
                |errno| {
                    format!(
                        "the copy cannot have its extended attribute {}: {}",
                        crate::name::format_readable(&one.name),
                        crate::sys::describe_errno(errno)
                    )
                },
            )?;
        }
        Ok(())
    }

    /// Gives the flags, after which nothing else may be possible.
    pub(crate) fn close(&self, fd: impl AsFd) {
        set_flags(fd, self.flags);
    }
}

fn read_flags(fd: impl AsFd) -> u32 {
    rustix::fs::ioctl_getflags(fd).map_or(0, |flags| flags.bits())
}

/// Whether it worked shows when the copy is compared.
fn set_flags(fd: impl AsFd, wanted: u32) {
    let now = read_flags(&fd);
    if now & KEPT != wanted {
        let flags = IFlags::from_bits_retain(now & !KEPT | wanted);
        let _ = rustix::fs::ioctl_setflags(fd, flags);
    }
}

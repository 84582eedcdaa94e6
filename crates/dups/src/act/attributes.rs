//! Reads and writes extended attributes and inode flags of files.

use rustix::fs::{IFlags, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

/// Inode flags that users set, as opposed to flags of the file system (`FS_*_FL`, linux/fs.h): SECRM, UNRM,
/// COMPR, SYNC, IMMUTABLE, APPEND, NODUMP, NOATIME, NOCOMP, ENCRYPT, JOURNAL_DATA, VERITY, NOCOW, DAX.
const KEPT: u32 = 0xff | 0x400 | 0x800 | 0x4000 | 0x10_0000 | 0x80_0000 | 0x200_0000;
/// IMMUTABLE and APPEND, which are set last: they prevent writing.
const LAST: u32 = 0x10 | 0x20;
/// Maximum length in bytes of a value and of the list of names (linux/limits.h).
const MOST: usize = 64 * 1024;

/// An extended attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Xattr {
    /// Name including its namespace.
    #[serde(with = "crate::name_json")]
    pub name: Vec<u8>,
    /// Value of the attribute.
    #[serde(with = "crate::name_json")]
    pub value: Vec<u8>,
}

/// Extended attributes (including ACLs and capabilities) and inode flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Extended attributes, ordered by name.
    pub xattrs: Vec<Xattr>,
    /// Inode flags that a user set; 0 if the file system has none.
    pub flags: u32,
}

impl Attributes {
    /// Reads the attributes of an open file.
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

    /// Sets the flags that must be set before data is written.
    pub(crate) fn prepare(&self, fd: impl AsFd) {
        set_flags(fd, self.flags & !LAST);
    }

    /// Sets the extended attributes. Owner and permissions must be set before, because changing them removes
    /// capabilities.
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

    /// Sets the flags that prevent further changes of the file.
    pub(crate) fn close(&self, fd: impl AsFd) {
        set_flags(fd, self.flags);
    }
}

fn read_flags(fd: impl AsFd) -> u32 {
    rustix::fs::ioctl_getflags(fd).map_or(0, |flags| flags.bits())
}

/// Sets flags and ignores errors. The later comparison of the copy shows whether the flags were set.
fn set_flags(fd: impl AsFd, wanted: u32) {
    let now = read_flags(&fd);
    if now & KEPT != wanted {
        let flags = IFlags::from_bits_retain(now & !KEPT | wanted);
        let _ = rustix::fs::ioctl_setflags(fd, flags);
    }
}

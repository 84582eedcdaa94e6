//! Sets and reads all attributes of a file except its contents.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Gives a file an owner, a mode, an access control list, an extended attribute and times. All differ from the
/// defaults, as far as this user and this file system permit.
pub fn adorn(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
    let _ = std::os::unix::fs::chown(path, Some(12345), Some(54321));
    // Version 2, then tag, permissions and id: user 7 may read (linux/posix_acl_xattr.h).
    let none = u32::MAX;
    let entries = [
        (1u16, 6u16, none),
        (2, 4, 7),
        (4, 4, none),
        (16, 4, none),
        (32, 0, none),
    ];
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, access, id) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(access.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    let flags = rustix::fs::XattrFlags::empty();
    for (name, value) in [
        ("system.posix_acl_access", &acl[..]),
        ("user.assay", b"x"),
        ("trusted.assay", b"y"),
    ] {
        let _ = rustix::fs::setxattr(path, name, value, flags);
    }
    if let Ok(file) = fs::File::open(path) {
        let marks = rustix::fs::IFlags::NODUMP | rustix::fs::IFlags::NOATIME;
        if let Ok(flags) = rustix::fs::ioctl_getflags(&file) {
            let _ = rustix::fs::ioctl_setflags(&file, flags | marks);
        }
    }
    let time = |seconds| std::time::UNIX_EPOCH + std::time::Duration::new(seconds, 123_456_789);
    let times = fs::FileTimes::new();
    let times = times
        .set_accessed(time(1_000_000_000))
        .set_modified(time(900_000_000));
    fs::File::open(path).unwrap().set_times(times).unwrap();
}

/// Returns all attributes of a file except its contents and its access time.
pub fn attributes(path: &Path) -> String {
    let found = fs::metadata(path).unwrap();
    let mut names = vec![0; 4096];
    let length = rustix::fs::listxattr(path, &mut names[..]).unwrap_or(0);
    let names = String::from_utf8_lossy(&names[..length]).into_owned();
    let value = |name: &str| {
        let mut value = vec![0; 4096];
        let length = rustix::fs::getxattr(path, name, &mut value[..]).unwrap_or(0);
        format!("{name}={:?}", &value[..length])
    };
    let mut values: Vec<_> = names.split_terminator('\0').map(value).collect();
    values.sort();
    let flags = fs::File::open(path)
        .ok()
        .and_then(|file| rustix::fs::ioctl_getflags(&file).ok());
    format!(
        "{:o} {} {} {} {} {values:?} {flags:?}",
        found.mode(),
        found.uid(),
        found.gid(),
        found.mtime(),
        found.mtime_nsec(),
    )
}

//! Copies of files that are worth as much as the original: content, owner, permissions, extended
//! attributes and times, on disk, and compared afterwards.

use super::Subject;
use crate::read::{CHUNK, Cost};
use rustix::fs::{Mode, OFlags, XattrFlags};
use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};

/// Makes a copy of an open file under a name that nobody else uses, with the owner, permissions and
/// times of `like`; removed again when anything fails.
pub(crate) fn make(
    from: &OwnedFd,
    parent: &OwnedFd,
    name: &[u8],
    like: &Subject,
) -> Result<(), String> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let create = || rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600));
    let remove = || rustix::fs::unlinkat(parent, name, rustix::fs::AtFlags::empty());
    let to = create()
        .or_else(|errno| match errno {
            // What a run that was killed left there.
            rustix::io::Errno::EXIST => remove().and_then(|()| create()),
            errno => Err(errno),
        })
        .map_err(|errno| format!("cannot create the copy: {}", crate::sys::words(errno)))?;
    fill(from, &to, like).inspect_err(|_| {
        let _ = remove();
    })
}

fn fill(from: &OwnedFd, to: &OwnedFd, like: &Subject) -> Result<(), String> {
    let errno = |what: &'static str| {
        move |errno| format!("cannot {what} the copy: {}", crate::sys::words(errno))
    };
    let mut file = std::fs::File::from(to.try_clone().map_err(|error| error.to_string())?);
    let mut buffer = vec![0; CHUNK];
    let mut cost = Cost::default();
    let mut offset = 0;
    while offset < like.size {
        let length = CHUNK.min((like.size - offset) as usize);
        let chunk = &mut buffer[..length];
        cost.fill(from, chunk, offset).map_err(|one| one.detail)?;
        // A hole stays a hole.
        let written = match chunk.iter().all(|byte| *byte == 0) {
            true => file.seek_relative(length as i64),
            false => file.write_all(chunk),
        };
        written.map_err(|error| format!("cannot write the copy: {error}"))?;
        offset += length as u64;
    }
    rustix::fs::ftruncate(to, like.size).map_err(errno("lengthen"))?;
    for (name, value) in attributes(from).unwrap_or_default() {
        rustix::fs::fsetxattr(to, &*name, &value, XattrFlags::empty())
            .map_err(errno("give its extended attributes to"))?;
    }
    let owner = rustix::process::Uid::from_raw(like.uid);
    let group = rustix::process::Gid::from_raw(like.gid);
    rustix::fs::fchown(to, Some(owner), Some(group)).map_err(errno("give its owner to"))?;
    rustix::fs::fchmod(to, Mode::from_raw_mode(like.mode))
        .map_err(errno("give its permissions to"))?;
    let time = rustix::fs::Timespec {
        tv_sec: like.mtime.div_euclid(1_000_000_000),
        tv_nsec: like.mtime.rem_euclid(1_000_000_000),
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(to, &times).map_err(errno("give its times to"))?;
    rustix::fs::fsync(to).map_err(errno("bring to disk"))?;
    match equal(from, to, like.size)? {
        true => Ok(()),
        false => Err("the copy differs from what was copied".into()),
    }
}

/// Compares two open files byte for byte, up to a length that both must have.
pub(crate) fn equal(a: &OwnedFd, b: &OwnedFd, size: u64) -> Result<bool, String> {
    let mut cost = Cost::default();
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut offset = 0;
    while offset < size {
        let length = CHUNK.min((size - offset) as usize);
        for (fd, buffer) in [(a, &mut left), (b, &mut right)] {
            cost.fill(fd, &mut buffer[..length], offset)
                .map_err(|trouble| trouble.detail)?;
        }
        if left[..length] != right[..length] {
            return Ok(false);
        }
        offset += length as u64;
    }
    Ok(true)
}

/// Extended attributes by name, ACLs among them; `None` where the file system has none.
pub(crate) fn attributes(fd: impl AsFd) -> Option<BTreeMap<Vec<u8>, Vec<u8>>> {
    let mut names = vec![0; 64 * 1024];
    let length = rustix::fs::flistxattr(&fd, &mut names[..]).ok()?;
    let mut found = BTreeMap::new();
    for name in names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let mut value = vec![0; 64 * 1024];
        let length = rustix::fs::fgetxattr(&fd, name, &mut value[..]).unwrap_or(0);
        value.truncate(length);
        found.insert(name.to_vec(), value);
    }
    Some(found)
}

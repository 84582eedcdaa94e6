//! Makes exact copies of files: content, owner, permissions, extended attributes, flags and times. A copy is
//! synced to disk and compared with the original.

use super::Subject;
use super::attributes::Attributes;
use crate::read::{CHUNK, Cost};
use crate::sys::describe_errno;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::io::{Seek as _, Write as _};
use std::os::fd::OwnedFd;

/// Identifies the content of a file: the BLAKE3 hash in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Content(String);

impl Content {
    fn new(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize().to_hex().to_string())
    }

    /// Computes the hash of an open file of this size.
    pub(crate) fn of(fd: &OwnedFd, size: u64) -> Result<Self, String> {
        let mut hasher = blake3::Hasher::new();
        let mut cost = Cost::default();
        let mut buffer = vec![0; CHUNK];
        let mut offset = 0;
        while offset < size {
            let length = CHUNK.min((size - offset) as usize);
            let chunk = &mut buffer[..length];
            cost.fill(fd, chunk, offset).map_err(|one| one.detail)?;
            hasher.update(chunk);
            offset += length as u64;
        }
        Ok(Self::new(&hasher))
    }
}

/// Copies an open file to an unused name, with the given attributes and with owner, permissions and times of `like`. If
/// `content` is given, compares the copied content with it. Removes the copy if anything fails or differs. With
/// `clone`, the copy shares the blocks of the open file.
pub(crate) fn make(
    from: &OwnedFd,
    parent: &OwnedFd,
    name: &[u8],
    like: &Subject,
    (attributes, content): (&Attributes, Option<&Content>),
    clone: bool,
) -> Result<(), String> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let create = || rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600));
    let remove = || rustix::fs::unlinkat(parent, name, rustix::fs::AtFlags::empty());
    let to = create()
        .or_else(|errno| match errno {
            // Remove a file that a killed run left.
            rustix::io::Errno::EXIST => remove().and_then(|()| create()),
            errno => Err(errno),
        })
        .map_err(|errno| format!("cannot create the copy: {}", describe_errno(errno)))?;
    fill(from, &to, like, attributes, clone)
        .and_then(|()| check(from, &to, like, (attributes, content)))
        .inspect_err(|_| {
            Attributes::default().close(&to);
            let _ = remove();
        })
}

fn fill(
    from: &OwnedFd,
    to: &OwnedFd,
    like: &Subject,
    attributes: &Attributes,
    clone: bool,
) -> Result<(), String> {
    let errno = |what: &'static str| {
        move |errno| format!("cannot {what} the copy: {}", describe_errno(errno))
    };
    attributes.prepare(to);
    if clone {
        rustix::fs::ioctl_ficlone(to, from).map_err(errno("share blocks with"))?;
    } else {
        write(from, to, like.size)?;
    }
    rustix::fs::ftruncate(to, like.size).map_err(errno("lengthen"))?;
    let owner = rustix::process::Uid::from_raw(like.uid);
    let group = rustix::process::Gid::from_raw(like.gid);
    rustix::fs::fchown(to, Some(owner), Some(group)).map_err(errno("give its owner to"))?;
    rustix::fs::fchmod(to, Mode::from_raw_mode(like.mode))
        .map_err(errno("give its permissions to"))?;
    attributes.give(to)?;
    let time = rustix::fs::Timespec {
        tv_sec: like.mtime.div_euclid(1_000_000_000),
        tv_nsec: like.mtime.rem_euclid(1_000_000_000),
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(to, &times).map_err(errno("give its times to"))?;
    attributes.close(to);
    rustix::fs::fsync(to).map_err(errno("bring to disk"))
}

/// Copies the bytes of one open file to another. Ranges of zeros become holes.
fn write(from: &OwnedFd, to: &OwnedFd, size: u64) -> Result<(), String> {
    let mut file = std::fs::File::from(to.try_clone().map_err(|error| error.to_string())?);
    let mut buffer = vec![0; CHUNK];
    let mut cost = Cost::default();
    let mut offset = 0;
    while offset < size {
        let length = CHUNK.min((size - offset) as usize);
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
    Ok(())
}

/// Checks that a copy equals its original in content, owner, permissions, time, attributes and flags.
fn check(
    from: &OwnedFd,
    to: &OwnedFd,
    like: &Subject,
    (attributes, content): (&Attributes, Option<&Content>),
) -> Result<(), String> {
    let same_content = match content {
        Some(content) => Content::of(to, like.size)? == *content,
        None => compare_content(from, to, like.size)?.is_some(),
    };
    let stat = crate::sys::stat_fd(to).map_err(describe_errno)?;
    let now = Subject::from_stat(Vec::new(), &like.root, &stat);
    let found = Attributes::of(to)?;
    let checks = [
        ("its content", same_content && now.size == like.size),
        ("its owner", (now.uid, now.gid) == (like.uid, like.gid)),
        ("its permissions", now.mode == like.mode),
        ("its time of change", now.mtime == like.mtime),
        (
            "its extended attributes or ACLs",
            found.xattrs == attributes.xattrs,
        ),
        ("its flags (see lsattr(1))", found.flags == attributes.flags),
    ];
    match checks.iter().find(|one| !one.1) {
        None => Ok(()),
        Some((what, _)) => Err(format!("a copy there would not keep {what}")),
    }
}

/// Compares two open files of the given size byte for byte. Returns their content if they are equal.
pub(crate) fn compare_content(
    a: &OwnedFd,
    b: &OwnedFd,
    size: u64,
) -> Result<Option<Content>, String> {
    let mut cost = Cost::default();
    let mut hasher = blake3::Hasher::new();
    let (mut left, mut right) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut offset = 0;
    while offset < size {
        let length = CHUNK.min((size - offset) as usize);
        for (fd, buffer) in [(a, &mut left), (b, &mut right)] {
            cost.fill(fd, &mut buffer[..length], offset)
                .map_err(|trouble| trouble.detail)?;
        }
        if left[..length] != right[..length] {
            return Ok(None);
        }
        hasher.update(&left[..length]);
        offset += length as u64;
    }
    Ok(Some(Content::new(&hasher)))
}

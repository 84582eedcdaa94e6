//! Reading a file and putting another one in its place, while somebody else may rename what lies
//! around it.
//!
//! The path is walked from the root without following a link, the directory is held, and everything
//! happens below that descriptor. Whoever owns the directory can lead this into nothing but their own
//! directory.

use crate::MAX_BYTES;
use crate::error::HostError;
use crate::held::{Access, Directory, Held, Identity};
use crate::ours;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// When a file was read and written last, in seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// `st_atim`.
    pub accessed: (i64, i64),
    /// `st_mtim`.
    pub modified: (i64, i64),
}

/// A file as it was read, to be told from another one of its name and from what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Where it was read, without links.
    pub path: PathBuf,
    /// Which file, and its size; nothing of a machine in memory.
    pub file: Option<(Identity, u64)>,
    /// Its times, likewise.
    pub times: Option<Times>,
}

impl Seen {
    /// A file of a machine in memory, of which there is no more to see.
    #[must_use]
    pub fn plain(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            times: None,
        }
    }

    fn of(path: &Path, found: &Stat) -> Self {
        let identity = Identity {
            device: found.st_dev,
            inode: found.st_ino,
        };
        Self {
            path: path.to_owned(),
            file: Some((identity, u64::try_from(found.st_size).unwrap_or_default())),
            times: Some(Times {
                accessed: (found.st_atime, nanoseconds(found.st_atime_nsec)),
                modified: (found.st_mtime, nanoseconds(found.st_mtime_nsec)),
            }),
        }
    }

    /// Whether this is the same file, not written since.
    fn still(&self, now: &Self) -> bool {
        let written = |seen: &Self| seen.times.map(|times| times.modified);
        self.file == now.file && written(self) == written(now)
    }
}

fn nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or_default()
}

fn fail(path: &Path) -> impl Fn(std::io::Error) -> HostError {
    let path = path.to_owned();
    move |error| HostError::io(&path, &error)
}

/// The directory of a path, held, no link followed.
pub(crate) fn parent(path: &Path) -> Result<(Directory, &OsStr), HostError> {
    let name = ours::last(path)?;
    let above = path.parent().unwrap_or(Path::new("/"));
    let relative = above.strip_prefix("/").map_err(|_| {
        HostError::path(path, "not an absolute path, so it is not known where it is")
    })?;
    let relative = match relative.as_os_str().is_empty() {
        true => Path::new("."),
        false => relative,
    };
    let found = Directory::open(Path::new("/"))?.below(relative);
    let directory = found.map_err(|error| match error.errno().map(Errno::from_raw_os_error) {
        Some(Errno::LOOP) => HostError::path(
            path,
            "a link stands on the way to it by now, which was none before: not followed",
        ),
        _ => error,
    })?;
    Ok((directory, name))
}

fn open(directory: &Directory, name: &OsStr) -> Result<(Held, Stat), HostError> {
    let held = directory.file(name, Access::Read).map_err(|error| {
        match error.errno().map(Errno::from_raw_os_error) {
            Some(Errno::LOOP) => HostError::path(
                &directory.shown().join(name),
                "not a regular file but a link",
            ),
            _ => error,
        }
    })?;
    // Looking at a file leaves no trace, where the kernel lets us: only owners and root may ask.
    let _ = rustix::fs::fcntl_setfl(held.file(), OFlags::NOATIME | OFlags::NONBLOCK);
    let found = rustix::fs::fstat(held.file()).map_err(|error| fail(held.shown())(error.into()))?;
    Ok((held, found))
}

/// Whether a file has a permission bit for writing at all.
pub(crate) fn writable(path: &Path) -> Result<(), HostError> {
    let (directory, name) = parent(path)?;
    let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let found = found.map_err(|error| fail(path)(error.into()))?;
    if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
        return Err(HostError::path(path, "not a regular file but a link"));
    }
    match found.st_mode & 0o222 {
        0 => Err(HostError::path(path, "read-only")),
        _ => Ok(()),
    }
}

/// Writes to a file that is there, with one write(2).
pub(crate) fn write_in_place(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let (directory, name) = parent(path)?;
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&directory, name, flags, Mode::empty());
    let file = file.map_err(|error| fail(path)(error.into()))?;
    match File::from(file).write(bytes).map_err(fail(path))? {
        count if count == bytes.len() => Ok(()),
        count => {
            let reason = format!("took {count} of {} bytes", bytes.len());
            Err(HostError::path(path, reason))
        }
    }
}

/// Reads a file, and sees which one it is.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, Seen), HostError> {
    let (directory, name) = parent(path)?;
    let (held, found) = open(&directory, name)?;
    let mut bytes = Vec::new();
    held.file()
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(fail(path))?;
    match bytes.len() > MAX_BYTES {
        true => Err(HostError::path(
            path,
            format!("longer than {} MiB", MAX_BYTES >> 20),
        )),
        false => Ok((bytes, Seen::of(path, &found))),
    }
}

/// Makes a new file beside one that was read, with its owner, mode and attributes.
pub(crate) fn create_like(
    path: &Path,
    like: &Seen,
    bytes: &[u8],
    times: Option<Times>,
) -> Result<(), HostError> {
    let (directory, name) = parent(path)?;
    if like.path.parent() != path.parent() {
        let reason = format!("not in the directory of {}", like.path.display());
        return Err(HostError::path(path, reason));
    }
    let (model, found) = open(&directory, ours::last(&like.path)?)?;
    same(like, &found)?;
    if found.st_nlink > 1 {
        let reason = format!(
            "it has {} names (hard links), and replacing it would change only one of them",
            found.st_nlink
        );
        return Err(HostError::path(&like.path, reason));
    }
    let made = directory.create(name)?;
    let filled = fill(made.file(), model.file(), &found, bytes, times);
    match filled {
        Ok(()) => directory.sync(),
        Err(error) => {
            let _ = directory.remove(name, made.identity());
            Err(HostError::io(path, &error))
        }
    }
}

fn fill(
    mut file: &File,
    model: &File,
    found: &Stat,
    bytes: &[u8],
    times: Option<Times>,
) -> std::io::Result<()> {
    file.write_all(bytes)?;
    let made = file.metadata()?;
    if (made.uid(), made.gid()) != (found.st_uid, found.st_gid) {
        std::os::unix::fs::fchown(file, Some(found.st_uid), Some(found.st_gid))?;
    }
    // The directory's default ACL has given the new file one; where the model has one, it is
    // copied below. The mode comes in between: it would cut down what is copied.
    match rustix::fs::fremovexattr(file, ACL) {
        Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS) => {}
        Err(error) => return Err(error.into()),
    }
    let mode = found.st_mode & 0o7777;
    file.set_permissions(std::fs::Permissions::from_mode(mode))?;
    copy_attributes(model, file)?;
    if let Some(times) = times {
        let timespec = |(seconds, nanoseconds): (i64, i64)| Timespec {
            tv_sec: seconds,
            tv_nsec: nanoseconds.clamp(0, 999_999_999) as _,
        };
        let times = Timestamps {
            last_access: timespec(times.accessed),
            last_modification: timespec(times.modified),
        };
        rustix::fs::futimens(file, &times)?;
    }
    file.sync_all()
}

/// Gives the file `from` the name of one that was read, at once, when that one is still there and was
/// not written since.
pub(crate) fn exchange(from: &Path, seen: &Seen) -> Result<(), HostError> {
    let (directory, name) = parent(&seen.path)?;
    if from.parent() != seen.path.parent() {
        let reason = format!("not in the directory of {}", seen.path.display());
        return Err(HostError::path(from, reason));
    }
    let (_, found) = open(&directory, name)?;
    same(seen, &found)?;
    // No link, pipe or directory is put in its place.
    let aside = ours::last(from)?;
    open(&directory, aside)?;
    rustix::fs::renameat(&directory, aside, &directory, name)
        .map_err(|error| fail(&seen.path)(error.into()))?;
    directory.sync()
}

fn same(seen: &Seen, found: &Stat) -> Result<(), HostError> {
    match seen.file.is_none() || seen.still(&Seen::of(&seen.path, found)) {
        true => Ok(()),
        false => Err(HostError::path(
            &seen.path,
            "somebody else replaced or wrote it at this moment: nothing was done, try again",
        )),
    }
}

/// An access control list (acl(5)).
const ACL: &str = "system.posix_acl_access";

/// Copies extended attributes. Those that this user may not set are passed over, unless they decide
/// who may read the file.
fn copy_attributes(from: &File, to: &File) -> std::io::Result<()> {
    // The most that Linux gives out at once (XATTR_LIST_MAX, XATTR_SIZE_MAX).
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::flistxattr(from, &mut names) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let (mut wanted, mut found) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    for name in names[..length]
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let os_name = OsStr::from_bytes(name);
        let length = rustix::fs::fgetxattr(from, os_name, &mut wanted)?;
        let wanted = &wanted[..length];
        let Err(error) = rustix::fs::fsetxattr(to, os_name, wanted, XattrFlags::empty()) else {
            continue;
        };
        let same = rustix::fs::fgetxattr(to, os_name, &mut found)
            .is_ok_and(|length| found[..length] == *wanted);
        if !same && (name == ACL.as_bytes() || name == b"security.selinux") {
            return Err(error.into());
        }
    }
    Ok(())
}

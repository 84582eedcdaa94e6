//! Reads a file, and replaces it by another file, although other users may rename files around it.
//!
//! The path is followed from the root without links, the directory is kept open, and all operations use its descriptor.
//! The owner of the directory can therefore redirect assay only within this directory. The module `swap` exchanges the
//! files; the module `attributes` copies the attributes.

mod attributes;
mod swap;

pub(crate) use swap::{exchange, take_away};

use crate::MAX_BYTES;
use crate::directory_owner;
use crate::error::HostError;
use crate::held::{Access, Directory, Held, Identity};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Times of the last access and modification of a file, in seconds and nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// Time of the last access (`st_atim`), as (seconds, nanoseconds).
    pub accessed: (i64, i64),
    /// Time of the last modification (`st_mtim`), as (seconds, nanoseconds).
    pub modified: (i64, i64),
}

/// State of a file when it was read. It is used to detect later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    /// Path of the file, which contains no links.
    pub path: PathBuf,
    /// Identity and size of the file; `None` for a machine in memory.
    pub file: Option<(Identity, u64)>,
    /// Times of the file; `None` for a machine in memory.
    pub times: Option<Times>,
    /// BLAKE3 hash of the content of the file; `None` for a machine in memory.
    pub content: Option<blake3::Hash>,
    /// Whether to replace the file even if another process has it open for writing, because an undo cannot wait without
    /// a limit. Data that the process writes later are lost.
    pub despite_writers: bool,
}

impl FileVersion {
    /// Creates the state of a file on a machine in memory.
    #[must_use]
    pub fn plain(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            times: None,
            content: None,
            despite_writers: false,
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
                accessed: (found.st_atime, to_nanoseconds(found.st_atime_nsec)),
                modified: (found.st_mtime, to_nanoseconds(found.st_mtime_nsec)),
            }),
            content: None,
            despite_writers: false,
        }
    }

    /// Returns whether `now` is the same file without modifications.
    fn still(&self, now: &Self) -> bool {
        let written = |seen: &Self| seen.times.map(|times| times.modified);
        self.file == now.file && written(self) == written(now)
    }
}

fn to_nanoseconds(value: impl TryInto<i64>) -> i64 {
    value.try_into().unwrap_or_default()
}

fn fail(path: &Path) -> impl Fn(std::io::Error) -> HostError {
    let path = path.to_owned();
    move |error| HostError::io(&path, &error)
}

/// Opens the directory that contains a path, without following links.
pub(crate) fn open_parent(path: &Path) -> Result<(Directory, &OsStr), HostError> {
    let name = directory_owner::last_component(path)?;
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
    // Avoid changing the access time, if permitted (owner and root only).
    let _ = rustix::fs::fcntl_setfl(held.file(), OFlags::NOATIME | OFlags::NONBLOCK);
    let found = rustix::fs::fstat(held.file()).map_err(|error| fail(held.shown())(error.into()))?;
    Ok((held, found))
}

/// Checks that a file has at least one write permission bit.
pub(crate) fn writable(path: &Path) -> Result<(), HostError> {
    let (directory, name) = open_parent(path)?;
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

/// Writes to an existing file with a single write(2).
pub(crate) fn write_in_place(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let (directory, name) = open_parent(path)?;
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

/// Reads a file, and returns its content and state.
pub(crate) fn read(path: &Path) -> Result<(Vec<u8>, FileVersion), HostError> {
    let (directory, name) = open_parent(path)?;
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
        false => {
            let content = Some(blake3::hash(&bytes));
            let seen = FileVersion::of(path, &found);
            Ok((bytes, FileVersion { content, ..seen }))
        }
    }
}

/// Creates a new file in the directory of an existing file. Copies owner, mode and attributes of the existing file.
pub(crate) fn create_like(
    path: &Path,
    like: &FileVersion,
    bytes: &[u8],
    times: Option<Times>,
) -> Result<(), HostError> {
    let (directory, name) = open_parent(path)?;
    if like.path.parent() != path.parent() {
        let reason = format!("not in the directory of {}", like.path.display());
        return Err(HostError::path(path, reason));
    }
    let (model, found) = open(&directory, directory_owner::last_component(&like.path)?)?;
    same(like, &found)?;
    attributes::refuse_unreplaceable(&directory, &model)?;
    if found.st_nlink > 1 {
        let reason = format!(
            "it has {} names (hard links), and replacing it would change only one of them",
            found.st_nlink
        );
        return Err(HostError::path(&like.path, reason));
    }
    let made = directory.create(name)?;
    let filled = attributes::fill(&made, &model, &found, bytes, times);
    match filled {
        Ok(()) => directory.sync(),
        Err(error) => {
            let _ = directory.remove(name, made.identity());
            Err(error.named(path))
        }
    }
}

fn same(seen: &FileVersion, found: &Stat) -> Result<(), HostError> {
    match seen.file.is_none() || seen.still(&FileVersion::of(&seen.path, found)) {
        true => Ok(()),
        false => Err(HostError::meanwhile(
            &seen.path,
            "somebody else replaced or wrote it at this moment",
        )),
    }
}

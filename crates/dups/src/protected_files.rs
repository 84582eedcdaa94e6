//! Checks the owner of the files that control assay's actions: the index, its lock and the journals. Other users must
//! not be able to write to them.

use crate::Error;
use crate::error::io_error;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

/// Opens a folder of journals without following links, and checks its owner.
pub(crate) fn open_journal_folder(path: &Path) -> Result<OwnedFd, Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| io_error(path, "cannot open")(errno.into()))?;
    check(path, &fd)?;
    Ok(fd)
}

/// Opens a file in its folder without following links, and checks the owners.
pub(crate) fn file_in_folder(path: &Path, flags: OFlags) -> Result<File, Error> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io_error(path, "cannot open")(
            std::io::ErrorKind::NotFound.into(),
        ));
    };
    let above = open_journal_folder(above)?;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(&above, name, flags, Mode::empty())
        .map_err(|errno| io_error(path, "cannot open")(errno.into()))?;
    if FileType::from_raw_mode(check(path, &fd)?.st_mode) != FileType::RegularFile {
        return Err(foreign_owner_error(
            path,
            "not a regular file; move it away",
        ));
    }
    Ok(fd.into())
}

/// Checks that other users cannot replace an index in this folder.
pub(crate) fn surroundings(path: &Path) -> Result<(), Error> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let stat = rustix::fs::open(path, flags, Mode::empty())
        .and_then(rustix::fs::fstat)
        .map_err(|errno| io_error(path, "cannot open the folder of the index")(errno.into()))?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    let us = rustix::process::geteuid().as_raw();
    let theirs = stat.st_uid != us && stat.st_uid != 0;
    match theirs || mode.contains(Mode::WOTH) && !mode.contains(Mode::SVTX) {
        false => Ok(()),
        true => Err(foreign_owner_error(
            path,
            "other users may put files in the place of the index there, and so tell assay what to do; name an index in a folder of your own with --index",
        )),
    }
}

/// Checks that a file or folder belongs to this user (or root) and that no other user can write to it.
pub(crate) fn check(path: &Path, fd: impl AsFd) -> Result<Stat, Error> {
    let stat =
        rustix::fs::fstat(fd).map_err(|errno| io_error(path, "cannot examine")(errno.into()))?;
    let us = rustix::process::geteuid().as_raw();
    if stat.st_uid != us && stat.st_uid != 0 {
        return Err(foreign_owner_error(
            path,
            "it belongs to another user, who could tell assay what to do; name an index of your own with --index",
        ));
    }
    let others = Mode::from_raw_mode(stat.st_mode) & (Mode::WGRP | Mode::WOTH);
    // Folders often belong to a group whose only member is the user, so group write is permitted for folders.
    let folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    if others.contains(Mode::WOTH) || !folder && !others.is_empty() {
        return Err(foreign_owner_error(
            path,
            "others may write to it, and so tell assay what to do; look at it, then `chmod go-w`",
        ));
    }
    Ok(stat)
}

fn foreign_owner_error(path: &Path, what: &str) -> Error {
    Error::Foreign {
        path: path.into(),
        what: what.into(),
    }
}

//! Checks an index before it is opened: whether the file is an index, and whether another process uses it.

use super::APPLICATION;
use crate::Error;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Checks the first bytes of an index file before SQLite opens it. Returns false if the file does not exist or
/// is empty.
///
/// Offsets from "Database File Format" of the SQLite documentation, section 1.3.
pub(super) fn look(path: &Path) -> Result<bool, Error> {
    let kind = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        found => found.map_err(crate::error::io_error(path, "cannot examine the index"))?,
    };
    let foreign = |what: &str| {
        Err(Error::Foreign {
            path: path.into(),
            what: what.into(),
        })
    };
    if kind.is_dir() {
        return foreign("a folder; name a file in it with --index");
    }
    if kind.is_symlink() {
        return foreign("a link; name the file that it leads to with --index");
    }
    if !kind.is_file() {
        return foreign("not a regular file; name another with --index");
    }
    let mut head = Vec::with_capacity(100);
    without_blocking(File::options().read(true))
        .open(path)
        .and_then(|file| file.take(100).read_to_end(&mut head))
        .map_err(crate::error::io_error(path, "cannot read the index"))?;
    if head.is_empty() {
        return Ok(false);
    }
    if !head.starts_with(b"SQLite format 3\0") {
        return foreign(
            "this is no index of assay (nor any SQLite file); it was left alone. Name another file with --index, or move this one away",
        );
    }
    if head.get(68..72) != Some(&APPLICATION.to_be_bytes()) {
        return foreign(
            "an SQLite file, but not an index of duplicates; it was left alone. Name another file with --index",
        );
    }
    Ok(true)
}

/// Sets open flags: follow no symbolic link, and do not block on a FIFO.
fn without_blocking(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed())
}

/// Checks that an index to be written belongs to this user.
pub(super) fn own(path: &Path) -> Result<(), Error> {
    if let Some(folder) = super::resolve_folder_links(path)?.parent() {
        crate::protected_files::surroundings(folder)?;
    }
    match without_blocking(File::options().read(true)).open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        file => {
            let file = file.map_err(crate::error::io_error(path, "cannot examine the index"))?;
            crate::protected_files::check(path, file).map(drop)
        }
    }
}

/// Returns the path of SQLite's rollback journal.
pub(super) fn sqlite_journal_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-journal");
    name.into()
}

/// Takes the lock of an index, so that only one process writes. The kernel releases the lock if the process crashes.
pub(super) fn lock(path: &Path) -> Result<File, Error> {
    let mut name = path.as_os_str().to_owned();
    name.push("-lock");
    let file = without_blocking(File::options().create(true).truncate(false).write(true))
        .mode(0o600)
        .open(&name)
        .map_err(crate::error::io_error(&name, "cannot lock the index"))?;
    match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Busy { path: path.into() }),
        Err(errno) => Err(crate::error::io_error(&name, "cannot lock the index")(
            errno.into(),
        )),
    }
}

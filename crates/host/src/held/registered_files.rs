//! Creates files and directories that assay must find again after this process was killed, even if another user renamed
//! them. The caller records the identity (device and inode) of each object.
//!
//! A file gets its name only after it was recorded. A directory, and a file on a file system without unnamed files,
//! must be created with a name. Until such an object is recorded, it has a mode that nobody else uses, by which
//! [`Directory::remove_unentered`] recognises it.

use super::{Access, Directory, Held, Identity, fail, plain, read_while_unchanged};
use crate::error::HostError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;

/// Prefix of temporary names that assay assigns.
const PREFIX: &[u8] = b".assay-";
/// Maximum number of attempts to find an object in a directory whose names change during the search.
const ATTEMPTS: usize = 16;
/// Mode that marks a directory that is not yet recorded.
const NEW_DIRECTORY: Mode = Mode::SVTX.union(Mode::RUSR).union(Mode::XUSR);
/// Mode that marks a file that is not yet recorded.
const NEW_FILE: Mode = Mode::WUSR.union(Mode::XUSR);

impl Directory {
    /// Like [`Directory::make`], for a directory that assay must find after this process was killed. `known` must
    /// record the identity of the directory. Until then, the directory has the mode `NEW_DIRECTORY`.
    ///
    /// # Errors
    /// As [`Directory::make`], and errors of `known`.
    pub fn make_known<E: From<HostError>>(
        &self,
        name: &OsStr,
        known: &mut dyn FnMut(&Self) -> Result<(), E>,
    ) -> Result<Self, E> {
        let made = self.make_as(name, NEW_DIRECTORY)?;
        known(&made)?;
        entered(&made.fd, NEW_DIRECTORY, Mode::RWXU).map_err(fail(&made.shown))?;
        Ok(made)
    }

    /// Creates a directory with the mode `mode`, and opens it.
    pub(super) fn make_as(&self, name: &OsStr, mode: Mode) -> Result<Self, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        rustix::fs::mkdirat(&self.fd, name, mode).map_err(fail(&shown))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty()).map_err(fail(&shown))?;
        let made = Self { fd, shown };
        // The owner of the parent directory may have replaced it in between. A directory that is ours, private
        // and empty is equivalent.
        let found = rustix::fs::fstat(&made.fd).map_err(fail(&made.shown))?;
        let closed = Mode::from_raw_mode(found.st_mode) & (Mode::RWXG | Mode::RWXO);
        if !is_ours(&found) || !closed.is_empty() || !made.list()?.is_empty() {
            let reason = "another directory was put in its place while it was made";
            return Err(HostError::path(&made.shown, reason));
        }
        Ok(made)
    }

    /// Like [`Directory::create`], for a file that assay must find after this process was killed. `known` must record
    /// the identity of the file. It is called before the file has a name, so that nobody can rename the file earlier.
    /// On a file system without unnamed files, `known` is called right after the creation.
    ///
    /// # Errors
    /// As [`Directory::create`], and errors of `known`.
    pub fn create_known<E: From<HostError>>(
        &self,
        name: &OsStr,
        known: &mut dyn FnMut(&Held) -> Result<(), E>,
    ) -> Result<Held, E> {
        let Some(mut held) = self.unnamed()? else {
            return self.create_marked(name, known);
        };
        held.shown = self.shown.join(name);
        known(&held)?;
        self.name(&held, name)?;
        // For a descriptor that was opened by name, the kernel reports later renames.
        Ok(match self.file(name, Access::ReadWrite) {
            Ok(named) if named.identity() == held.identity() => named,
            // Somebody has already renamed it.
            _ => held,
        })
    }

    /// Like [`Directory::create_known`], for file systems without unnamed files. The mode `NEW_FILE` marks the file
    /// until the file is recorded.
    pub(super) fn create_marked<E: From<HostError>>(
        &self,
        name: &OsStr,
        known: &mut dyn FnMut(&Held) -> Result<(), E>,
    ) -> Result<Held, E> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        let flags = Access::ReadWrite.flags() | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(&self.fd, name, flags, NEW_FILE).map_err(fail(&shown))?;
        let held = Held::new(fd, shown)?;
        known(&held)?;
        entered(held.file(), NEW_FILE, Mode::RUSR | Mode::WUSR).map_err(fail(&held.shown))?;
        Ok(held)
    }

    /// Removes an object that assay created in this directory as `own`, if the process was killed before it recorded
    /// the object and another user renamed the object. Such an object is empty, belongs to this user, and has the
    /// special mode of unrecorded objects. Objects with another temporary name of assay are not removed, because the
    /// process that created them may still need them. Returns whether an object was removed.
    ///
    /// # Errors
    /// As getdents64(2), fstatat(2) and unlinkat(2).
    pub fn remove_unentered(&self, own: &OsStr) -> Result<bool, HostError> {
        let mut removed = false;
        for _ in 0..ATTEMPTS {
            let (found, settled) = read_while_unchanged(self, || self.remove_unentered_once(own))?;
            removed |= found;
            if settled {
                return Ok(removed);
            }
        }
        let reason = "its names are changed all the time, so nobody can tell what is in it";
        Err(HostError::path(&self.shown, reason))
    }

    fn remove_unentered_once(&self, own: &OsStr) -> Result<bool, HostError> {
        let mut removed = false;
        for name in self.list()? {
            if name != own && name.as_bytes().starts_with(PREFIX) {
                continue;
            }
            let found = match rustix::fs::statat(&self.fd, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => found,
                Err(rustix::io::Errno::NOENT) => continue,
                Err(error) => return Err(fail(&self.shown.join(name))(error)),
            };
            let meant = Identity::from_stat(&found);
            let gone = match find_unregistered(&found) {
                Some(FileType::Directory) => self.remove_directory(&name, meant),
                Some(_) => self.remove(&name, meant),
                None => continue,
            };
            match gone {
                Ok(gone) => removed |= gone == super::Removed::Gone,
                // Somebody has put something into it.
                Err(error) if error.errno() == Some(NOT_EMPTY) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }
}

/// `errno` of rmdir(2) for a directory that is not empty.
const NOT_EMPTY: i32 = rustix::io::Errno::NOTEMPTY.raw_os_error();

/// Replaces the special mode `mark` by `mode` after the object was recorded. Does nothing on a file system without
/// modes.
fn entered(fd: impl AsFd, mark: Mode, mode: Mode) -> Result<(), rustix::io::Errno> {
    match has_mode(&rustix::fs::fstat(&fd)?, mark) {
        true => rustix::fs::fchmod(fd, mode),
        false => Ok(()),
    }
}

/// Returns the file type of an object that assay created but did not record; `None` for other objects.
fn find_unregistered(found: &Stat) -> Option<FileType> {
    let kind = FileType::from_raw_mode(found.st_mode);
    let marked = match kind {
        FileType::Directory => has_mode(found, NEW_DIRECTORY),
        FileType::RegularFile => {
            has_mode(found, NEW_FILE) && found.st_size == 0 && found.st_nlink == 1
        }
        _ => false,
    };
    (marked && is_ours(found)).then_some(kind)
}

/// Returns whether an object has this mode. The set-group-ID bit is ignored, because a directory may inherit it from
/// its parent (mkdir(2)).
fn has_mode(found: &Stat, mode: Mode) -> bool {
    Mode::from_raw_mode(found.st_mode).difference(Mode::SGID) == mode
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

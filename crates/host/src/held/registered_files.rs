//! Files and directories that have to be found again if this process is killed, whatever others name
//! them meanwhile: somebody writes down which ones they are before they can be lost.
//!
//! A file gets its name afterwards. A directory is made under its name, and so is a file where the file
//! system makes none without one; until it is written down it has a mode that nobody else gives, and
//! [`Directory::remove_unentered`] finds it by that.

use super::{Access, Directory, Held, Identity, fail, plain, read_while_unchanged};
use crate::error::HostError;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;

/// The names that assay gives begin so.
const PREFIX: &[u8] = b".assay-";
/// How often it is looked for while somebody changes names.
const ATTEMPTS: usize = 16;
/// Mode of a directory that is not written down yet.
const NEW_DIRECTORY: Mode = Mode::SVTX.union(Mode::RUSR).union(Mode::XUSR);
/// Mode of a file that is not written down yet.
const NEW_FILE: Mode = Mode::WUSR.union(Mode::XUSR);

impl Directory {
    /// As [`Directory::make`], for a directory that has to be found again if this process is killed:
    /// `known` hears of it while it has the mode of what is not written down.
    ///
    /// # Errors
    /// As [`Directory::make`], and those of `known`.
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

    /// Makes a directory, and opens it.
    pub(super) fn make_as(&self, name: &OsStr, mode: Mode) -> Result<Self, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        rustix::fs::mkdirat(&self.fd, name, mode).map_err(fail(&shown))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty()).map_err(fail(&shown))?;
        let made = Self { fd, shown };
        // The owner of the directory above may have exchanged it in between. What is ours, closed to
        // others and empty is as good as what we made.
        let found = rustix::fs::fstat(&made.fd).map_err(fail(&made.shown))?;
        let closed = Mode::from_raw_mode(found.st_mode) & (Mode::RWXG | Mode::RWXO);
        if !is_ours(&found) || !closed.is_empty() || !made.list()?.is_empty() {
            let reason = "another directory was put in its place while it was made";
            return Err(HostError::path(&made.shown, reason));
        }
        Ok(made)
    }

    /// As [`Directory::create`], for a file that has to be found again if this process is killed:
    /// `known` hears of it before it has its name, so there is no moment in which somebody else could
    /// rename what nobody knows of. Where the file system cannot make files without a name, `known`
    /// hears of it right after.
    ///
    /// # Errors
    /// As [`Directory::create`], and those of `known`.
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
        // Through a descriptor that was opened by the name the kernel tells where it is moved to.
        Ok(match self.file(name, Access::ReadWrite) {
            Ok(named) if named.identity() == held.identity() => named,
            // Somebody has renamed it already.
            _ => held,
        })
    }

    /// As [`Directory::create_known`], where a file has its name from the beginning.
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

    /// Removes what was made here as `own`, renamed by somebody else, and not written down, because
    /// the process that made it was killed: it is empty, this user's, and has the mode of what is not
    /// written down yet. What has a name of assay's other than `own` is left to whoever made it.
    /// Whether there was something.
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

/// `errno` of a directory that is not empty (rmdir(2)).
const NOT_EMPTY: i32 = rustix::io::Errno::NOTEMPTY.raw_os_error();

/// Takes the mark away. File systems without modes have not set it.
fn entered(fd: impl AsFd, mark: Mode, mode: Mode) -> Result<(), rustix::io::Errno> {
    match has_mode(&rustix::fs::fstat(&fd)?, mark) {
        true => rustix::fs::fchmod(fd, mode),
        false => Ok(()),
    }
}

/// What kind of file it is, if it was made here and not written down.
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

/// A directory may have its group's bit from the one above (mkdir(2)).
fn has_mode(found: &Stat, mode: Mode) -> bool {
    Mode::from_raw_mode(found.st_mode).difference(Mode::SGID) == mode
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

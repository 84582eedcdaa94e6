//! Files and directories that are used through open descriptors.
//!
//! A path is resolved once. From then on, only the descriptor is used, so that another user who renames or replaces
//! files cannot redirect assay. Other programs get the path from [`Held::through`] or [`Directory::through`],
//! `/proc/PID/fd/N`. The kernel resolves this path to the open object itself (proc_pid_fd(5)) while this process
//! exists.

mod abandoned;
mod device;
mod directory_changes;
mod file_users;
mod registered_files;

pub(crate) use directory_changes::read_while_unchanged;
pub use file_users::{Lease, OtherLock};

use crate::error::HostError;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// Identity of a file: device and inode number. It is valid while the file is open or has a name.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Identity {
    /// Device number (`st_dev`).
    pub device: u64,
    /// Inode number (`st_ino`).
    pub inode: u64,
}

impl Identity {
    /// Reads the identity of an open file or directory.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn of(fd: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(fd).map(|found| Self::from_stat(&found))
    }

    pub(crate) fn from_stat(found: &rustix::fs::Stat) -> Self {
        Self {
            device: found.st_dev,
            inode: found.st_ino,
        }
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Opens the file for reading.
    Read,
    /// Opens the file for reading and writing.
    ReadWrite,
}

impl Access {
    /// Returns the open flags. With them, the last component must not be a link, and opening a pipe does not block.
    fn flags(self) -> OFlags {
        let mode = match self {
            Self::Read => OFlags::RDONLY,
            Self::ReadWrite => OFlags::RDWR,
        };
        mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
    }
}

/// An open directory, with the path by which it was opened.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    shown: PathBuf,
}

/// An open regular file or block device, with the path by which it was opened.
#[derive(Debug)]
pub struct Held {
    file: File,
    shown: PathBuf,
    identity: Identity,
}

/// Result of removing a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// The name was removed. If it was the last name, the file was removed, too.
    Gone,
    /// The name did not exist.
    Absent,
    /// Another object has this name or path. It was not changed.
    Another,
    /// The file exists under an unknown name. It was truncated, so that it uses no space.
    Emptied,
}

impl Directory {
    /// Opens a directory that the user named. Links in the path are followed once, because the user chose the path.
    ///
    /// # Errors
    /// The path does not exist, is not a directory, or access is not permitted.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(fail(path))?;
        Ok(Self {
            fd,
            shown: path.to_owned(),
        })
    }

    /// Creates the value for an open directory; `path` is the path by which it was opened.
    pub(crate) fn of(fd: OwnedFd, path: &Path) -> Self {
        let shown = path.to_owned();
        Self { fd, shown }
    }

    /// Opens a directory below this one. No component may be a link. Mount points are entered.
    ///
    /// # Errors
    /// As [`Directory::open`]; ELOOP or ENOTDIR if a component is a link, EXDEV if the path leads out of this
    /// directory.
    pub fn below(&self, relative: &Path) -> Result<Self, HostError> {
        let shown = self.shown.join(relative);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open_beneath(&self.fd, relative, flags).map_err(fail(&shown))?;
        Ok(Self { fd, shown })
    }

    /// Creates a directory that only this user can access, and opens it.
    ///
    /// # Errors
    /// The name exists, access is not permitted, or another user replaced the directory before it was opened.
    pub fn make(&self, name: &OsStr) -> Result<Self, HostError> {
        self.make_as(name, Mode::RWXU)
    }

    /// Creates a file that only this user can access, open for reading and writing.
    ///
    /// # Errors
    /// The name exists, or access is not permitted.
    pub fn create(&self, name: &OsStr) -> Result<Held, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        let flags = Access::ReadWrite.flags() | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(fail(&shown))?;
        Held::new(fd, shown)
    }

    /// Creates an unnamed file in the directory that only this user can access. The file disappears with its last
    /// descriptor, unless [`Directory::name`] gives it a name. Returns `None` if the file system does not support
    /// unnamed files.
    ///
    /// # Errors
    /// Permission is denied, or there is no space.
    pub fn unnamed(&self) -> Result<Option<Held>, HostError> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => Held::new(fd, self.shown.clone()).map(Some),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
            Err(error) => Err(fail(&self.shown)(error)),
        }
    }

    /// Gives an open file a name in this directory, which must be on the same file system.
    ///
    /// # Errors
    /// The name exists, or as linkat(2).
    pub fn name(&self, held: &Held, name: &OsStr) -> Result<(), HostError> {
        let (from, flags) = (held.through(), AtFlags::SYMLINK_FOLLOW);
        plain(name)
            .and_then(|()| rustix::fs::linkat(CWD, from, &self.fd, name, flags))
            .map_err(fail(&self.shown.join(name)))
    }

    /// Opens a regular file in this directory.
    ///
    /// # Errors
    /// The file does not exist, access is not permitted, it is a link (ELOOP), or it is not a regular file.
    pub fn file(&self, name: &OsStr, access: Access) -> Result<Held, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        let fd = rustix::fs::openat(&self.fd, name, access.flags(), Mode::empty())
            .map_err(fail(&shown))?;
        Held::new(fd, shown)
    }

    /// Returns the sorted names in the directory.
    ///
    /// # Errors
    /// As getdents64(2).
    pub fn list(&self) -> Result<Vec<OsString>, HostError> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.fd).map_err(fail(&self.shown))? {
            let entry = entry.map_err(fail(&self.shown))?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsStr::from_bytes(name).to_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the identity of the object with a name; `None` if there is none. Does not follow a link.
    ///
    /// # Errors
    /// As fstatat(2).
    pub fn look(&self, name: &OsStr) -> Result<Option<Identity>, HostError> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(Identity::from_stat(&found))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(fail(&self.shown.join(name))(error)),
        }
    }

    /// Removes a file in this directory if it is still the file `meant`. A user who can write to the directory could
    /// exchange the file between the check and the removal. This is harmless, because such a user could remove the file
    /// anyway.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub fn remove(&self, name: &OsStr, meant: Identity) -> Result<Removed, HostError> {
        self.unlink(name, meant, AtFlags::empty())
    }

    /// Like [`Directory::remove`], for an empty directory.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub fn remove_directory(&self, name: &OsStr, meant: Identity) -> Result<Removed, HostError> {
        self.unlink(name, meant, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, name: &OsStr, meant: Identity, flags: AtFlags) -> Result<Removed, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        match self.look(name)? {
            None => return Ok(Removed::Absent),
            Some(found) if found != meant => return Ok(Removed::Another),
            Some(_) => {}
        }
        match rustix::fs::unlinkat(&self.fd, name, flags) {
            Ok(()) => Ok(Removed::Gone),
            Err(Errno::NOENT) => Ok(Removed::Absent),
            Err(error) => Err(fail(&shown)(error)),
        }
    }

    /// Renames a file within this directory. An existing file with the new name is replaced.
    ///
    /// # Errors
    /// As renameat(2).
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> Result<(), HostError> {
        let shown = self.shown.join(to);
        plain(from)
            .and_then(|()| plain(to))
            .and_then(|()| rustix::fs::renameat(&self.fd, from, &self.fd, to))
            .map_err(fail(&shown))
    }

    /// Writes added and removed names to the disk, if the file system supports this.
    ///
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self) -> Result<(), HostError> {
        match rustix::fs::fsync(&self.fd) {
            // A directory without read permission is opened as a path only, which cannot be synced.
            Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
            Err(error) => Err(fail(&self.shown)(error)),
        }
    }

    /// Returns the identity of the directory.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn identity(&self) -> Result<Identity, HostError> {
        Identity::of(&self.fd).map_err(fail(&self.shown))
    }

    /// Returns the path by which the file was opened, for messages.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Returns the current path of the directory, for messages and lists. Another process may rename the directory at
    /// any time, so the path must not be used to open it.
    #[must_use]
    pub fn whereabouts(&self) -> PathBuf {
        find_current_path(self.fd.as_fd()).unwrap_or_else(|| self.shown.clone())
    }

    /// Returns a path for programs of this user that refers to this directory, even after a rename. The path is valid
    /// while this value exists.
    #[must_use]
    pub fn through(&self) -> PathBuf {
        descriptor_path(&self.fd)
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Held {
    /// Opens a regular file. The last component of the path must not be a link.
    ///
    /// # Errors
    /// The file does not exist, access is not permitted, it is a link (ELOOP), or it is not a regular file.
    pub fn open(path: &Path, access: Access) -> Result<Self, HostError> {
        let fd = rustix::fs::open(path, access.flags(), Mode::empty()).map_err(fail(path))?;
        Self::new(fd, path.to_owned())
    }

    /// Opens a regular file that the user named. Follows a link once. If the path is a pipe, fails at once instead of
    /// waiting.
    ///
    /// # Errors
    /// The file does not exist, access is not permitted, or it is not a regular file.
    pub fn follow(path: &Path, access: Access) -> Result<Self, HostError> {
        let flags = access.flags().difference(OFlags::NOFOLLOW);
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(fail(path))?;
        Self::new(fd, path.to_owned())
    }

    /// Opens a block device. Follows links, because udev creates links as names of volumes.
    ///
    /// # Errors
    /// The device does not exist, access is not permitted, or it is not a block device.
    pub fn open_device(path: &Path, access: Access) -> Result<Self, HostError> {
        let flags = access.flags().difference(OFlags::NOFOLLOW);
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(fail(path))?;
        Self::of_type(fd, path.to_owned(), FileType::BlockDevice)
    }

    fn new(fd: OwnedFd, shown: PathBuf) -> Result<Self, HostError> {
        Self::of_type(fd, shown, FileType::RegularFile)
    }

    fn of_type(fd: OwnedFd, shown: PathBuf, wanted: FileType) -> Result<Self, HostError> {
        let found = rustix::fs::fstat(&fd).map_err(fail(&shown))?;
        if FileType::from_raw_mode(found.st_mode) != wanted {
            let what = match wanted {
                FileType::BlockDevice => "not a block device",
                _ => "not a regular file",
            };
            return Err(HostError::path(&shown, what));
        }
        Ok(Self {
            file: File::from(fd),
            shown,
            identity: Identity::from_stat(&found),
        })
    }

    /// Returns the open file, for reading and writing through the descriptor.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the open file, and drops the path and the identity.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Opens the same file again with other flags, such as `O_DIRECT`.
    ///
    /// # Errors
    /// As open(2), or /proc is not mounted.
    pub fn reopen(&self, flags: OFlags) -> Result<File, HostError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd =
            rustix::fs::open(self.through(), flags, Mode::empty()).map_err(fail(&self.shown))?;
        match Identity::of(&fd) {
            Ok(found) if found == self.identity => Ok(File::from(fd)),
            _ => Err(HostError::path(&self.shown, "/proc led to another file")),
        }
    }

    /// Returns the identity of the file.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the path by which the file was opened, for messages.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Returns the number of hard links; 0 if all names were removed.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn names(&self) -> Result<u64, HostError> {
        let found = rustix::fs::fstat(&self.file).map_err(fail(&self.shown))?;
        #[allow(clippy::useless_conversion, reason = "it has 32 bits on arm64")]
        let names = u64::from(found.st_nlink);
        Ok(names)
    }

    /// Returns the user id of the owner.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn owner(&self) -> Result<u32, HostError> {
        let found = rustix::fs::fstat(&self.file).map_err(fail(&self.shown))?;
        Ok(found.st_uid)
    }

    /// Returns the current path of the file, for messages; `None` if its name was removed.
    #[must_use]
    pub fn whereabouts(&self) -> Option<PathBuf> {
        find_current_path(self.file.as_fd())
    }

    /// Returns a path for programs of this user that refers to this file, even after a rename. The path is valid while
    /// this value exists.
    #[must_use]
    pub fn through(&self) -> PathBuf {
        descriptor_path(&self.file)
    }
}

fn find_current_path(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let found = rustix::fs::readlink(descriptor_path(fd), Vec::new()).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(found.to_bytes()));
    // The kernel appends ` (deleted)` to the name.
    let there = path.is_absolute() && read_identity(&path).ok() == Identity::of(fd).ok();
    there.then_some(path)
}

/// Returns a path for programs of this user that refers to an open file, directory or device, even after a rename. The
/// path is valid while the descriptor is open.
#[must_use]
pub fn descriptor_path(fd: impl AsFd) -> PathBuf {
    let (process, number) = (std::process::id(), fd.as_fd().as_raw_fd());
    format!("/proc/{process}/fd/{number}").into()
}

/// Opens a path below a directory without following links (openat2(2)). Opens the path component by component on
/// kernels before 5.6, and in sandboxes that do not permit openat2(2).
///
/// # Errors
/// ELOOP or ENOTDIR if a component is a link, EXDEV if the path leads out of the directory.
pub fn open_beneath(
    directory: impl AsFd,
    relative: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(&directory, relative, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => {
                return step_by_step(directory.as_fd(), relative, flags);
            }
            // A rename happened in between, and the kernel asks for another attempt.
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

fn step_by_step(
    directory: BorrowedFd<'_>,
    relative: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::ParentDir => {
                return Err(Errno::XDEV);
            }
        }
    }
    let Some((last, above)) = names.split_last() else {
        return rustix::fs::openat(directory, ".", flags, Mode::empty());
    };
    let mut at: Option<OwnedFd> = None;
    for name in above {
        let from = at.as_ref().map_or(directory, AsFd::as_fd);
        let way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = Some(rustix::fs::openat(from, *name, way, Mode::empty())?);
    }
    let from = at.as_ref().map_or(directory, AsFd::as_fd);
    rustix::fs::openat(from, *last, flags, Mode::empty())
}

/// Checks that a name is a single component of a path.
fn plain(name: &OsStr) -> Result<(), Errno> {
    let bytes = name.as_bytes();
    match bytes.is_empty() || bytes == b"." || bytes == b".." || bytes.contains(&b'/') {
        true => Err(Errno::INVAL),
        false => Ok(()),
    }
}

fn fail(path: &Path) -> impl Fn(Errno) -> HostError {
    move |error| HostError::io(path, &error.into())
}

/// Returns the identity of the object at a path. Follows links.
///
/// # Errors
/// As stat(2).
pub fn read_identity(path: &Path) -> Result<Identity, HostError> {
    match rustix::fs::statat(CWD, path, AtFlags::empty()) {
        Ok(found) => Ok(Identity::from_stat(&found)),
        Err(error) => Err(fail(path)(error)),
    }
}

#[cfg(test)]
mod tests;

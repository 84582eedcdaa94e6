//! Files and directories held by their descriptors.
//!
//! A path is looked up once. Afterwards the descriptor stands for what was found, and nobody who may
//! rename or replace names on the way to it leads assay anywhere else. Other programs get the path
//! [`Held::through`] or [`Directory::through`], `/proc/PID/fd/N`, which the kernel resolves to the
//! held object itself (proc_pid_fd(5)) as long as this process lives.

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

/// Which file it is: device and inode number, as long as something holds it open or names it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Identity {
    /// `st_dev`.
    pub device: u64,
    /// `st_ino`.
    pub inode: u64,
}

impl Identity {
    /// Of an open file or directory.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn of(fd: impl AsFd) -> Result<Self, Errno> {
        rustix::fs::fstat(fd).map(|found| Self::from_stat(&found))
    }

    fn from_stat(found: &rustix::fs::Stat) -> Self {
        Self {
            device: found.st_dev,
            inode: found.st_ino,
        }
    }
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To be read.
    Read,
    /// To be read and written.
    ReadWrite,
}

impl Access {
    /// Never through a link in the last place, and never waiting for the other end of a pipe.
    fn flags(self) -> OFlags {
        let mode = match self {
            Self::Read => OFlags::RDONLY,
            Self::ReadWrite => OFlags::RDWR,
        };
        mode | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
    }
}

/// A directory, held.
#[derive(Debug)]
pub struct Directory {
    fd: OwnedFd,
    shown: PathBuf,
}

/// A regular file or a block device, held.
#[derive(Debug)]
pub struct Held {
    file: File,
    shown: PathBuf,
    identity: Identity,
}

/// What became of a name that was to be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removed {
    /// It is gone.
    Gone,
    /// It was not there.
    Absent,
    /// Something else has the name by now, or lies where it was; it was left alone.
    Another,
    /// It is there under a name that nobody can tell; it was emptied, so that it takes no space.
    Emptied,
}

impl Directory {
    /// Opens a directory that the user named. Links on the way are the user's and are followed,
    /// this once.
    ///
    /// # Errors
    /// Not there, not a directory, not allowed.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(fail(path))?;
        Ok(Self {
            fd,
            shown: path.to_owned(),
        })
    }

    /// A directory that was opened by a path.
    pub(crate) fn of(fd: OwnedFd, path: &Path) -> Self {
        let shown = path.to_owned();
        Self { fd, shown }
    }

    /// Opens a directory below this one. No component may be a link, a mount is passed through.
    ///
    /// # Errors
    /// As [`Directory::open`]; ELOOP or ENOTDIR where a link stands in the way, EXDEV where the path
    /// leads out.
    pub fn below(&self, relative: &Path) -> Result<Self, HostError> {
        let shown = self.shown.join(relative);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = open_beneath(&self.fd, relative, flags).map_err(fail(&shown))?;
        Ok(Self { fd, shown })
    }

    /// Makes a directory for this user alone, and opens it.
    ///
    /// # Errors
    /// There is something of that name, not allowed, or somebody put another directory there before
    /// it was opened.
    pub fn make(&self, name: &OsStr) -> Result<Self, HostError> {
        self.make_as(name, Mode::RWXU)
    }

    /// Makes a new, empty file for this user alone, open for reading and writing.
    ///
    /// # Errors
    /// There is something of that name, or not allowed.
    pub fn create(&self, name: &OsStr) -> Result<Held, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        let flags = Access::ReadWrite.flags() | OFlags::CREATE | OFlags::EXCL;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(fail(&shown))?;
        Held::new(fd, shown)
    }

    /// Makes a file without a name in it, for this user alone, which goes with its last descriptor
    /// unless it is given one by [`Directory::name`]. None where the file system cannot.
    ///
    /// # Errors
    /// Not allowed, or no room.
    pub fn unnamed(&self) -> Result<Option<Held>, HostError> {
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.fd, ".", flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => Held::new(fd, self.shown.clone()).map(Some),
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
            Err(error) => Err(fail(&self.shown)(error)),
        }
    }

    /// Gives a file of the same file system a name in this directory.
    ///
    /// # Errors
    /// There is something of that name, or as linkat(2).
    pub fn name(&self, held: &Held, name: &OsStr) -> Result<(), HostError> {
        let (from, flags) = (held.through(), AtFlags::SYMLINK_FOLLOW);
        plain(name)
            .and_then(|()| rustix::fs::linkat(CWD, from, &self.fd, name, flags))
            .map_err(fail(&self.shown.join(name)))
    }

    /// Opens a regular file of this directory.
    ///
    /// # Errors
    /// Not there, not allowed, a link (ELOOP), or no regular file.
    pub fn file(&self, name: &OsStr, access: Access) -> Result<Held, HostError> {
        let shown = self.shown.join(name);
        plain(name).map_err(fail(&shown))?;
        let fd = rustix::fs::openat(&self.fd, name, access.flags(), Mode::empty())
            .map_err(fail(&shown))?;
        Held::new(fd, shown)
    }

    /// What is in it, sorted.
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

    /// What a name stands for now, a link for itself; nothing when there is none.
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

    /// Removes a file of this directory if it is still the one that is meant. Between the look and
    /// the removal somebody who may write here can put another file of their own under the name;
    /// they could as well have removed it themselves.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub fn remove(&self, name: &OsStr, meant: Identity) -> Result<Removed, HostError> {
        self.unlink(name, meant, AtFlags::empty())
    }

    /// As [`Directory::remove`], an empty directory.
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

    /// Gives a file of this directory another name in it, replacing what has that name.
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

    /// Makes names that were added or removed durable, where the file system knows how.
    ///
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self) -> Result<(), HostError> {
        match rustix::fs::fsync(&self.fd) {
            // One that may not be listed is held without reading it.
            Ok(()) | Err(Errno::INVAL | Errno::BADF) => Ok(()),
            Err(error) => Err(fail(&self.shown)(error)),
        }
    }

    /// Which directory it is.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn identity(&self) -> Result<Identity, HostError> {
        Identity::of(&self.fd).map_err(fail(&self.shown))
    }

    /// The path it was opened by, for messages.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Where the directory is by now, as the kernel names it; for messages and lists only, because
    /// its name may be another's a moment later.
    #[must_use]
    pub fn whereabouts(&self) -> PathBuf {
        find_current_path(self.fd.as_fd()).unwrap_or_else(|| self.shown.clone())
    }

    /// A path that leads to this directory for every program of this user, whatever becomes of its
    /// name, as long as it is held.
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
    /// Opens a regular file by its path; the last component may not be a link.
    ///
    /// # Errors
    /// Not there, not allowed, a link (ELOOP), or no regular file.
    pub fn open(path: &Path, access: Access) -> Result<Self, HostError> {
        let fd = rustix::fs::open(path, access.flags(), Mode::empty()).map_err(fail(path))?;
        Self::new(fd, path.to_owned())
    }

    /// Opens a regular file that the user named: a link is the user's and is followed, this once, and
    /// a pipe is not waited for.
    ///
    /// # Errors
    /// Not there, not allowed, or no regular file.
    pub fn follow(path: &Path, access: Access) -> Result<Self, HostError> {
        let flags = access.flags().difference(OFlags::NOFOLLOW);
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(fail(path))?;
        Self::new(fd, path.to_owned())
    }

    fn new(fd: OwnedFd, shown: PathBuf) -> Result<Self, HostError> {
        let found = rustix::fs::fstat(&fd).map_err(fail(&shown))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(HostError::path(&shown, "not a regular file"));
        }
        Ok(Self {
            file: File::from(fd),
            shown,
            identity: Identity::from_stat(&found),
        })
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The file alone; its name and identity are forgotten.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }

    /// Opens the same file once more, with flags of its own, such as `O_DIRECT`.
    ///
    /// # Errors
    /// As open(2), or /proc is not there.
    pub fn reopen(&self, flags: OFlags) -> Result<File, HostError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd =
            rustix::fs::open(self.through(), flags, Mode::empty()).map_err(fail(&self.shown))?;
        match Identity::of(&fd) {
            Ok(found) if found == self.identity => Ok(File::from(fd)),
            _ => Err(HostError::path(&self.shown, "/proc led to another file")),
        }
    }

    /// Which file it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// The path it was opened by, for messages.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// How many names it has; none when all were removed.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn names(&self) -> Result<u64, HostError> {
        let found = rustix::fs::fstat(&self.file).map_err(fail(&self.shown))?;
        #[allow(clippy::useless_conversion, reason = "it has 32 bits on arm64")]
        let names = u64::from(found.st_nlink);
        Ok(names)
    }

    /// Number of the user that it belongs to.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn owner(&self) -> Result<u32, HostError> {
        let found = rustix::fs::fstat(&self.file).map_err(fail(&self.shown))?;
        Ok(found.st_uid)
    }

    /// Where it is by now, as the kernel names it; for messages only. None when its name was removed.
    #[must_use]
    pub fn whereabouts(&self) -> Option<PathBuf> {
        find_current_path(self.file.as_fd())
    }

    /// A path that leads to this file for every program of this user, whatever becomes of its name,
    /// as long as it is held.
    #[must_use]
    pub fn through(&self) -> PathBuf {
        descriptor_path(&self.file)
    }
}

fn find_current_path(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let found = rustix::fs::readlink(descriptor_path(fd), Vec::new()).ok()?;
    let path = PathBuf::from(OsStr::from_bytes(found.to_bytes()));
    // The kernel says ` (deleted)` in the name itself.
    let there = path.is_absolute() && read_identity(&path).ok() == Identity::of(fd).ok();
    there.then_some(path)
}

/// A path that leads to an open file, directory or device for every program of this user, whatever
/// becomes of its name, as long as it is open here.
#[must_use]
pub fn descriptor_path(fd: impl AsFd) -> PathBuf {
    let (process, number) = (std::process::id(), fd.as_fd().as_raw_fd());
    format!("/proc/{process}/fd/{number}").into()
}

/// Opens what lies below a directory without following any link (openat2(2)). Kernels before 5.6 and
/// sandboxes that refuse the call get the same component by component.
///
/// # Errors
/// ELOOP or ENOTDIR where a link stands in the way, EXDEV where the path leads out.
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
            // Something was renamed meanwhile, and the kernel could not be sure.
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

/// A name of one component.
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

/// What a path stands for now, links followed.
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

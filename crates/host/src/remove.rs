//! Removes objects that assay created, although other users may control the names in their paths.
//!
//! Follows no link and crosses no mount point: the object and every directory in it are used through descriptors. If
//! the identity of an object differs from that in the journal, the object does not belong to assay and is not removed.

use crate::error::HostError;
use crate::held::{Directory, Identity, Removed, open_beneath, read_while_unchanged};
use crate::persistent_identity::{KnownFile, Whereabouts};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Maximum number of attempts to find the object while another process renames it.
const ATTEMPTS: usize = 64;

/// Removes a file that assay created at `path`, or a directory with its content.
///
/// If the identity is known, the object with this identity is removed wherever it is on its file system, and no other
/// object is removed. If assay was killed before it recorded the identity, a directory is removed with its content only
/// if nobody else can have replaced it; otherwise it is removed only if it is empty.
pub(crate) fn remove_created(path: &Path, known: Option<&KnownFile>) -> Result<Removed, HostError> {
    let name = path.file_name().unwrap_or_default();
    let (above, known) = match (Directory::open(parent_path(path)), known) {
        (Ok(above), Some(known)) => (above, known),
        (Ok(above), None) => return remove_unconfirmed(&above, name, path),
        (Err(error), None) if error.is_absent() => return Ok(Removed::Absent),
        // The parent directory was moved or removed; any directory on the same file system is sufficient.
        (Err(error), Some(known)) if error.is_absent() => (open_nearest_parent(path)?, known),
        (Err(error), _) => return Err(error),
    };
    let (mut failed, mut nameless, mut taken) = (None, None, false);
    for _ in 0..ATTEMPTS {
        let (above, name, meant) = match place(&above, name, known)? {
            Place::Here(above, name, meant) => (above, name, meant),
            Place::Absent | Place::Another if taken => return Ok(Removed::Gone),
            Place::Absent => return Ok(Removed::Absent),
            Place::Another => return Ok(Removed::Another),
            Place::Moving(fd) => {
                nameless = fd.or(nameless);
                continue;
            }
        };
        match take(&above, &name, meant, &above.shown().join(&name)) {
            Ok(Removed::Gone) => {
                above.sync()?;
                taken = true;
                // Somebody may have created another link, or reused the name between check and removal.
                if let Whereabouts::Removed = known.find(&above) {
                    return Ok(Removed::Gone);
                }
            }
            // Somebody was faster; search again.
            Ok(_) => {}
            Err(error) => match error.errno().map(Errno::from_raw_os_error) {
                Some(Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY | Errno::LOOP) => {
                    failed = Some(error);
                }
                _ if error.is_absent() => failed = Some(error),
                _ => return Err(error),
            },
        }
    }
    match (failed, nameless) {
        (Some(error), _) => Err(error),
        (None, Some(fd)) => empty_file(fd),
        (None, None) => Ok(Removed::Another),
    }
}

/// Truncates a file whose name cannot be found, so that it uses no space. After a reboot, the kernel does not know the
/// name of a file that is opened by its handle until a process looks the name up.
fn empty_file(fd: OwnedFd) -> Result<Removed, HostError> {
    let link = PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    let found = rustix::fs::fstat(&fd).map_err(fail(&link))?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(Removed::Another);
    }
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(&link, flags, Mode::empty()).map_err(fail(&link))?;
    rustix::fs::ftruncate(&file, 0).map_err(fail(&link))?;
    Ok(Removed::Emptied)
}

/// Removes a file without following links.
pub(crate) fn file(path: &Path) -> Result<(), HostError> {
    let (above, name) = crate::replace::open_parent(path)?;
    rustix::fs::unlinkat(&above, name, AtFlags::empty()).map_err(fail(path))?;
    above.sync()
}

/// Removes a directory and everything in it.
pub(crate) fn tree(dir: &Path) -> Result<(), HostError> {
    let above = Directory::open(parent_path(dir))?;
    let name = dir.file_name().unwrap_or_default();
    match above.look(name)? {
        None => Err(HostError::NotFound {
            path: dir.to_owned(),
        }),
        Some(meant) => {
            let found = stat_at(above.as_fd(), name).map_err(fail(dir))?;
            if FileType::from_raw_mode(found.st_mode) != FileType::Directory {
                return Err(HostError::path(dir, "not a directory"));
            }
            match take(&above, name, meant, dir)? {
                Removed::Another => Err(HostError::path(
                    dir,
                    "another directory was put in its place while it was removed",
                )),
                Removed::Gone | Removed::Absent | Removed::Emptied => above.sync(),
            }
        }
    }
}

/// Removes an open directory and everything in it, provided that the directory still has the given name.
pub(crate) fn all_of(
    above: &Directory,
    name: &OsStr,
    meant: Identity,
) -> Result<Removed, HostError> {
    take(above, name, meant, &above.shown().join(name))
}

/// Opens the nearest existing parent directory.
fn open_nearest_parent(path: &Path) -> Result<Directory, HostError> {
    for above in path.ancestors().skip(1) {
        match Directory::open(above) {
            Err(error) if error.is_absent() => {}
            other => return other,
        }
    }
    Err(HostError::NotFound {
        path: path.to_owned(),
    })
}

/// Where a known object is at this moment.
enum Place {
    /// In this directory under this name, with its current identity.
    Here(Directory, OsString, Identity),
    /// The file system reports that the object was removed. Or no object has its name, and the file system cannot
    /// report more.
    Absent,
    /// Another object has the name of the object or is at its path. Nothing else is known.
    Another,
    /// Names change during the search. The object exists and is open, but its name is unknown. `None` if it is unknown
    /// whether the object exists.
    Moving(Option<OwnedFd>),
}

fn place(above: &Directory, name: &OsStr, known: &KnownFile) -> Result<Place, HostError> {
    let found = above.look(name)?;
    let here = |name: OsString, meant| {
        let above = above.below(Path::new("."))?;
        Ok(Place::Here(above, name, meant))
    };
    // On another file system, or with another number after a reboot, its absence cannot be proved.
    let elsewhere = above.identity()?.device != known.identity.device;
    let fd = match known.find(above) {
        Whereabouts::Open(fd) => fd,
        Whereabouts::Removed if elsewhere => return Ok(Place::Another),
        Whereabouts::Removed => return Ok(Place::Absent),
        Whereabouts::Unknown => {
            if let Some((name, meant)) = find_renamed(above, name, known)? {
                return here(name, meant);
            }
            // It may have been renamed during the search. Only an unchanged directory gives a reliable answer.
            let (seen, settled) = read_while_unchanged(above, || {
                Ok((find_renamed(above, name, known)?, above.look(name)?))
            })?;
            return match seen {
                (Some((name, meant)), _) => here(name, meant),
                _ if !settled => Ok(Place::Moving(None)),
                (None, None) if !elsewhere => Ok(Place::Absent),
                _ => Ok(Place::Another),
            };
        }
    };
    let meant = Identity::of(&fd).map_err(fail(above.shown()))?;
    if found == Some(meant) {
        return here(name.to_owned(), meant);
    }
    // The kernel reports its current name (proc_pid_fd(5)).
    let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let now = rustix::fs::readlink(&link, Vec::new()).map_err(fail(Path::new(&link)))?;
    let now = PathBuf::from(OsString::from_vec(now.into_bytes()));
    let there = match Directory::open(parent_path(&now)) {
        Ok(there) => there,
        Err(error) if error.is_absent() => return Ok(Place::Moving(Some(fd))),
        Err(error) => return Err(error),
    };
    let name = now.file_name().unwrap_or_default();
    if !name.is_empty() && there.look(name)? == Some(meant) {
        return Ok(Place::Here(there, name.to_owned(), meant));
    }
    match find_renamed(above, name, known)? {
        Some((name, meant)) => here(name, meant),
        None => Ok(Place::Moving(Some(fd))),
    }
}

/// Searches the directory for a known object under any name, beginning with `name`. If an object was renamed, it is
/// most likely still in its directory.
fn find_renamed(
    above: &Directory,
    name: &OsStr,
    known: &KnownFile,
) -> Result<Option<(OsString, Identity)>, HostError> {
    let names = above.list()?.into_iter();
    for name in std::iter::once(name.to_owned()).chain(names) {
        let Ok(Some(found)) = above.look(&name) else {
            continue;
        };
        if found.inode != known.identity.inode {
            continue;
        }
        let way = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(above, &name, way, Mode::empty());
        if fd.is_ok_and(|fd| known.is(&fd) && Identity::of(&fd) == Ok(found)) {
            return Ok(Some((name, found)));
        }
    }
    Ok(None)
}

/// Handles an object that may not exist, because assay was killed after it wrote the journal entry and before it
/// recorded the object's identity.
fn remove_unconfirmed(above: &Directory, name: &OsStr, path: &Path) -> Result<Removed, HostError> {
    // Somebody may have renamed it at that moment.
    let renamed = above.remove_unentered(name)?;
    let removed = match remove_named(above, name, path)? {
        Removed::Absent | Removed::Another if renamed => Removed::Gone,
        removed => removed,
    };
    above.sync()?;
    Ok(removed)
}

/// Removes the object with this name if assay may have created it.
fn remove_named(above: &Directory, name: &OsStr, path: &Path) -> Result<Removed, HostError> {
    let found = match stat_at(above.as_fd(), name) {
        Ok(found) => found,
        Err(Errno::NOENT) => return Ok(Removed::Absent),
        Err(error) => return Err(fail(path)(error)),
    };
    let meant = Identity {
        device: found.st_dev,
        inode: found.st_ino,
    };
    let directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    let us = rustix::process::geteuid().as_raw();
    let holder = rustix::fs::fstat(above).map_err(fail(path))?;
    let others = Mode::WGRP | Mode::WOTH;
    let alone = holder.st_uid == us && !Mode::from_raw_mode(holder.st_mode).intersects(others);
    match (alone, directory) {
        (true, _) => take(above, name, meant, path),
        // Only its owner, this user, and users who could remove it anyway can have created it there.
        (false, _) if found.st_uid != us => Ok(Removed::Another),
        (false, true) => above.remove_directory(name, meant),
        (false, false) => above.remove(name, meant),
    }
}

/// Removes an object with its content if it has the expected identity.
fn take(
    above: &Directory,
    name: &OsStr,
    meant: Identity,
    shown: &Path,
) -> Result<Removed, HostError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = match open_beneath(above, Path::new(name), flags) {
        Ok(fd) => fd,
        Err(Errno::NOTDIR | Errno::LOOP) => {
            // An expected directory is not removed as a file, whatever has its name now.
            let found = stat_at(above.as_fd(), name).map_err(fail(shown))?;
            return match FileType::from_raw_mode(found.st_mode) {
                FileType::Directory => Ok(Removed::Another),
                _ if (found.st_dev, found.st_ino) != (meant.device, meant.inode) => {
                    Ok(Removed::Another)
                }
                _ => above.remove(name, meant),
            };
        }
        Err(Errno::NOENT) => return Ok(Removed::Absent),
        Err(error) => return Err(fail(shown)(error)),
    };
    let found = Identity::of(&fd).map_err(fail(shown))?;
    if found != meant {
        return Ok(Removed::Another);
    }
    if is_mount_root(fd.as_fd(), c"".to_bytes()).map_err(fail(shown))? {
        return Err(mounted_error(shown));
    }
    nothing_mounted(fd.as_fd(), found.device, shown)?;
    clear(fd.as_fd(), shown)?;
    drop(fd);
    above.remove_directory(name, meant)
}

/// Removes everything in a directory. The caller has checked that nothing is mounted in the directory. A mount that is
/// added later is not entered.
fn clear(dir: BorrowedFd<'_>, shown: &Path) -> Result<(), HostError> {
    for name in read_names(dir, shown)? {
        let path = shown.join(&name);
        match rustix::fs::unlinkat(dir, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(fail(&path)(error)),
        }
        let below = match open_inside(dir, &name) {
            Err(Errno::XDEV) => return Err(mounted_error(&path)),
            other => other.map_err(fail(&path))?,
        };
        clear(below.as_fd(), &path)?;
        match rustix::fs::unlinkat(dir, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(fail(&path)(error)),
        }
    }
    Ok(())
}

/// Fails if something is mounted below the directory.
fn nothing_mounted(dir: BorrowedFd<'_>, device: u64, shown: &Path) -> Result<(), HostError> {
    for name in read_names(dir, shown)? {
        let path = shown.join(&name);
        let found = stat_at(dir, &name).map_err(fail(&path))?;
        let root = is_mount_root(dir, name.as_bytes()).map_err(fail(&path))?;
        if found.st_dev != device || root {
            return Err(mounted_error(&path));
        }
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            let below = open_inside(dir, &name).map_err(fail(&path))?;
            nothing_mounted(below.as_fd(), device, &path)?;
        }
    }
    Ok(())
}

fn mounted_error(path: &Path) -> HostError {
    HostError::path(path, "something is mounted here: not removed")
}

/// Returns whether a directory is a mount point. Kernels before 5.8 do not report this; for them, the device number is
/// compared.
fn is_mount_root(dir: BorrowedFd<'_>, name: &[u8]) -> Result<bool, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::EMPTY_PATH;
    match rustix::fs::statx(dir, OsStr::from_bytes(name), flags, StatxFlags::empty()) {
        Ok(found) => Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)),
        Err(Errno::NOSYS) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Opens a subdirectory; returns EXDEV if it is a mount point. Kernels before 5.6 do not detect this here.
fn open_inside(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    loop {
        match rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM) => {
                return rustix::fs::openat(dir, name, flags, Mode::empty());
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            other => return other,
        }
    }
}

fn read_names(dir: BorrowedFd<'_>, shown: &Path) -> Result<Vec<OsString>, HostError> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir).map_err(fail(shown))? {
        let entry = entry.map_err(fail(shown))?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    Ok(names)
}

fn stat_at(dir: BorrowedFd<'_>, name: &OsStr) -> Result<rustix::fs::Stat, Errno> {
    rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)
}

fn parent_path(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        Some(_) => Path::new("."),
        None => Path::new("/"),
    }
}

fn fail(path: &Path) -> impl Fn(Errno) -> HostError {
    move |error| HostError::io(path, &error.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn attack_what_is_mounted_after_the_look_is_not_entered() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let precious = other.path().join("precious");
        std::fs::write(&precious, "x").unwrap();
        let at = dir.path().join("mnt");
        std::fs::create_dir(&at).unwrap();
        // On the same file system, so that the device number is equal.
        let bound = Command::new("mount")
            .arg("--bind")
            .args([other.path(), &at])
            .status();
        if !bound.is_ok_and(|status| status.success()) {
            return assay_testing::skipped("mount", "nothing can be mounted here");
        }
        let held = std::fs::File::open(dir.path()).unwrap();
        let cleared = clear(held.as_fd(), dir.path());
        let unmounted = Command::new("umount").arg(&at).status().unwrap();
        assert!(unmounted.success());
        let held = cleared.is_err() && precious.exists();
        assay_testing::attacked("a mount made while a directory is removed", 1, held.into());
    }
}

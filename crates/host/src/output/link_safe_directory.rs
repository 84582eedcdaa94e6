//! Opens the directory of an output file. Follows only links that no other user can have created.

use crate::error::HostError;
use crate::held::Directory;
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links in a path, the same as in the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// Opens the directory that contains an output file. Follows a link only if it belongs to this user, to root or to the
/// owner of `/`.
///
/// # Errors
/// The directory does not exist, access is not permitted, it is not a directory, or a link belongs to another user.
pub(super) fn open_parent(path: &Path) -> Result<Directory, HostError> {
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    walk(parent, false)
}

/// Like [`open_parent`], for an output directory that a user named. Creates missing parts of the path.
pub(super) fn make_directory(path: &Path) -> Result<Directory, HostError> {
    walk(path, true)
}

/// Checks that no link in the path of a file, and not the file itself as a link, belongs to another user. For callers
/// that open the file themselves.
///
/// # Errors
/// A link belongs to another user. Other problems are reported when the file is opened.
pub fn check_links(path: &Path) -> Result<(), HostError> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let above = match open_parent(&path) {
            Err(error) if error.errno().is_some() || error.is_absent() => return Ok(()),
            above => above?,
        };
        let Some(name) = path.file_name() else {
            return Ok(());
        };
        let link = match open_step_at(&above, name) {
            Ok(found) => found,
            // The later open reports the problem.
            Err(_) => return Ok(()),
        };
        let found = rustix::fs::fstat(&link).map_err(|error| fail(&path, error))?;
        if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
            return Ok(());
        }
        if !is_trusted(found.st_uid).map_err(|error| fail(&path, error))? {
            let reason = format!(
                "a link of user {}; name the file that it leads to",
                found.st_uid
            );
            return Err(HostError::path(&path, reason));
        }
        let target = rustix::fs::readlinkat(&link, "", Vec::new());
        let target = target.map_err(|error| fail(&path, error))?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    Err(HostError::path(&path, "too many links on the way"))
}

/// Returns whether links of this user id are followed. These are links of this user, of root, and of the owner of `/`,
/// because in a user namespace root may have no number.
fn is_trusted(user: u32) -> Result<bool, Errno> {
    let root = rustix::fs::stat("/")?;
    let us = rustix::process::geteuid().as_raw();
    Ok([0, us, root.st_uid].contains(&user))
}

fn open_step_at(at: impl AsFd, step: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(at, step, flags, Mode::empty())
}

fn walk(path: &Path, makes: bool) -> Result<Directory, HostError> {
    let root = open_step(None, OsStr::new("/")).map_err(|error| fail(path, error))?;
    let mut at = match path.is_absolute() {
        true => root,
        false => open_step(None, OsStr::new(".")).map_err(|error| fail(path, error))?,
    };
    let mut steps = split_steps(path);
    let (mut links, mut shown) = (0, PathBuf::new());
    while let Some(step) = steps.pop_front() {
        shown.push(&step);
        let next = match open_step(Some(&at), &step) {
            Err(Errno::NOENT) if makes => make_step(&at, &step),
            next => next,
        };
        let next = next.map_err(|error| fail(&shown, error))?;
        let found = rustix::fs::fstat(&next).map_err(|error| fail(&shown, error))?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(HostError::path(path, "too many links on the way"));
                }
                if !is_trusted(found.st_uid).map_err(|error| fail(&shown, error))? {
                    let reason = format!(
                        "a link of user {}; name the directory that it leads to",
                        found.st_uid
                    );
                    return Err(HostError::path(&shown, reason));
                }
                let target = rustix::fs::readlinkat(&next, "", Vec::new());
                let target = target.map_err(|error| fail(&shown, error))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    at = open_step(None, OsStr::new("/")).map_err(|error| fail(path, error))?;
                }
                for step in split_steps(&target).into_iter().rev() {
                    steps.push_front(step);
                }
                shown.pop();
                if target.is_absolute() {
                    shown = PathBuf::from("/");
                }
            }
            FileType::Directory => at = next,
            _ => return Err(HostError::path(&shown, "not a directory")),
        }
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = match rustix::fs::openat(&at, ".", flags, Mode::empty()) {
        // A directory may be writable without being readable.
        Err(Errno::ACCESS) => {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            rustix::fs::openat(&at, ".", flags, Mode::empty())
        }
        fd => fd,
    };
    Ok(Directory::of(fd.map_err(|error| fail(path, error))?, path))
}

fn open_step(at: Option<&OwnedFd>, step: &OsStr) -> Result<OwnedFd, Errno> {
    match at {
        Some(at) => open_step_at(at, step),
        None => open_step_at(CWD, step),
    }
}

fn make_step(at: &OwnedFd, step: &OsStr) -> Result<OwnedFd, Errno> {
    let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match rustix::fs::mkdirat(at, step, mode) {
        Ok(()) | Err(Errno::EXIST) => open_step(Some(at), step),
        Err(error) => Err(error),
    }
}

fn split_steps(path: &Path) -> VecDeque<OsString> {
    let steps = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    steps.collect()
}

fn fail(path: &Path, error: Errno) -> HostError {
    HostError::io(path, &error.into())
}

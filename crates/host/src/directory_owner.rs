//! Checks that only this user and root can change or replace a directory.
//!
//! If assay runs as root, it executes what it reads from its own directory. Therefore no other user may be able to
//! write to the directory or its parents.

use crate::error::HostError;
use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

/// Maximum number of links in a path, the same as in the kernel (path_resolution(7)).
const MOST_LINKS: usize = 40;

/// A remaining step while a path is followed.
enum Step {
    /// Change to the parent directory.
    Up,
    /// Change to the entry with this name. The flag is true if the user wrote the name, false if it comes from a link.
    Down(OsString, bool),
}

/// Checks that no other user can write to or replace the existing part of a path. The missing part can then be created
/// safely. Follows links that nobody else can replace, but the directory itself must not be a link.
///
/// # Errors
/// Another user can write to a directory; the message contains the directory and the user.
pub fn check(path: &Path) -> Result<(), HostError> {
    let absolute = std::path::absolute(path).map_err(|error| HostError::io(path, &error))?;
    let root = look(Path::new("/"))?.ok_or_else(|| HostError::path(path, "there is no root"))?;
    let mut at = PathBuf::from("/");
    let mut last = judge(&at, &root, &root, false);
    let mut steps: VecDeque<Step> = path_steps(&absolute, true).collect();
    let mut links = 0;
    while let Some(step) = steps.pop_front() {
        let (name, named) = match step {
            Step::Up => {
                at.pop();
                last = Ok(());
                continue;
            }
            Step::Down(name, named) => (name, named),
        };
        // A directory with further components below it.
        last?;
        let next = at.join(&name);
        let Some(found) = look(&next)? else {
            return Ok(());
        };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => {
                at = next;
                last = judge(&at, &found, &root, steps.is_empty());
            }
            FileType::Symlink if named && steps.is_empty() => {
                return Err(HostError::path(&next, "a link, not a directory"));
            }
            FileType::Symlink => {
                owner(&next, &found, &root)?;
                links += 1;
                if links > MOST_LINKS {
                    return Err(HostError::path(path, "too many links on the way"));
                }
                let target = rustix::fs::readlinkat(CWD, &next, Vec::new())
                    .map_err(|error| HostError::io(&next, &error.into()))?;
                let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                if target.is_absolute() {
                    at = PathBuf::from("/");
                }
                last = Ok(());
                for step in self::path_steps(&target, false).rev() {
                    steps.push_front(step);
                }
            }
            _ => return Err(HostError::path(&next, "not a directory")),
        }
    }
    last
}

fn path_steps(path: &Path, named: bool) -> impl DoubleEndedIterator<Item = Step> {
    let parts = path.components().filter_map(move |part| match part {
        Component::Normal(name) => Some(Step::Down(name.to_owned(), named)),
        Component::ParentDir => Some(Step::Up),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect::<Vec<_>>().into_iter()
}

fn look(path: &Path) -> Result<Option<Stat>, HostError> {
    match rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(HostError::io(path, &error.into())),
    }
}

/// Checks one directory. `inmost` is true for the requested directory itself, false for its parents.
fn judge(path: &Path, found: &Stat, root: &Stat, inmost: bool) -> Result<(), HostError> {
    owner(path, found, root)?;
    let mode = Mode::from_raw_mode(found.st_mode);
    // In a sticky directory such as /tmp, nobody may rename files of others.
    let sticky = mode.contains(Mode::SVTX) && !inmost;
    // Many systems give each user a private group with the same number and group write access.
    let us = rustix::process::geteuid().as_raw();
    let alone = !inmost && (found.st_gid == 0 || found.st_gid == us);
    let who = match (mode.contains(Mode::WOTH), mode.contains(Mode::WGRP)) {
        (true, _) if !sticky => "everybody".to_owned(),
        (_, true) if !sticky && !alone => format!("group {}", found.st_gid),
        _ => return Ok(()),
    };
    Err(HostError::path(path, format!("{who} may write here")))
}

/// Checks that a directory belongs to this user or to root. The owner of `/` counts as root, because in a user
/// namespace root may have no number (user_namespaces(7)).
fn owner(path: &Path, found: &Stat, root: &Stat) -> Result<(), HostError> {
    let us = rustix::process::geteuid().as_raw();
    match [0, us, root.st_uid].contains(&found.st_uid) {
        true => Ok(()),
        false => Err(HostError::path(
            path,
            format!("belongs to user {}, and this is user {us}", found.st_uid),
        )),
    }
}

/// Checks that a directory belongs to this user, and that other users have no access.
pub(crate) fn closed(path: &Path, found: &Stat) -> Result<(), HostError> {
    let us = rustix::process::geteuid().as_raw();
    if found.st_uid != us {
        let reason = format!("belongs to user {}, and this is user {us}", found.st_uid);
        return Err(HostError::path(path, reason));
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    match (mode & (Mode::RWXG | Mode::RWXO)).is_empty() {
        true => Ok(()),
        false => Err(HostError::path(path, "open to other users (chmod 700 it)")),
    }
}

/// Returns the last component of a path.
pub(crate) fn last_component(path: &Path) -> Result<&OsStr, HostError> {
    path.file_name()
        .ok_or_else(|| HostError::path(path, "has no name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_others_may_write_or_exchange_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        std::fs::create_dir_all(&deep).unwrap();
        check(&deep).unwrap();
        check(&deep.join("not/yet")).unwrap();
        for (path, bits) in [
            ("a/b/c", 0o777),
            ("a/b/c", 0o1777),
            ("a/b/c", 0o770),
            ("a/b", 0o777),
            ("a", 0o757),
        ] {
            let path = dir.path().join(path);
            mode(&path, bits);
            let refused = check(&deep).unwrap_err();
            let HostError::Path { path: told, .. } = refused else {
                panic!("{refused}");
            };
            assert_eq!(told, path);
            // Missing directories are created as in /tmp.
            let closed = bits & 0o1002 == 0o002;
            assert_eq!(check(&deep.join("not/yet")).is_err(), closed, "{bits:o}");
            mode(&path, 0o755);
        }
        // Like /tmp.
        mode(&dir.path().join("a"), 0o1777);
        check(&deep).unwrap();
    }

    #[test]
    fn links_are_followed_only_on_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("real/state")).unwrap();
        std::fs::create_dir_all(path("open/state")).unwrap();
        mode(&path("open"), 0o777);
        symlink("real", path("way")).unwrap();
        symlink("open", path("trap")).unwrap();
        symlink(path("real"), path("absolute")).unwrap();
        symlink("real/../way", path("around")).unwrap();
        symlink("real/state", path("end")).unwrap();
        symlink("loop", path("loop")).unwrap();
        for fine in ["way/state", "absolute/state", "around/state/x", "way/new"] {
            check(&path(fine)).unwrap();
        }
        for refused in ["end", "trap/state", "loop/x", "way/../trap/state"] {
            assert!(check(&path(refused)).is_err(), "{refused}");
        }
    }

    #[test]
    fn what_belongs_to_others_is_refused() {
        if !rustix::process::geteuid().is_root() {
            assay_testing::skipped("root", "only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(path("theirs/state")).unwrap();
        symlink(path("theirs"), path("link")).unwrap();
        check(&path("theirs/state")).unwrap();
        chown(path("theirs"), Some(1234), None).unwrap();
        assert!(check(&path("theirs/state")).is_err());
        assert!(check(&path("theirs")).is_err());
        std::os::unix::fs::lchown(path("link"), Some(1234), None).unwrap();
        chown(path("theirs"), Some(0), None).unwrap();
        assert!(check(&path("link/state")).is_err());
    }
}

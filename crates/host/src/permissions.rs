//! Reads and changes permission bits of files and directories without following links.
//!
//! The object is opened below its directory, whose path contains no link. All calls use the descriptor of the object,
//! so that another user who exchanges names cannot redirect them.

use crate::error::HostError;
use crate::held::Identity;
use crate::inode_flags::{Mark, shell_word};
use crate::replace::open_parent;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Permission bits, owner and group of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permissions {
    /// Permission bits including setuid, setgid and sticky bit: 0 to 0o7777.
    pub mode: u32,
    /// User id of the owner.
    pub user: u32,
    /// Group id of the owning group.
    pub group: u32,
}

impl Permissions {
    fn of(found: &Stat) -> Self {
        Self {
            mode: found.st_mode & 0o7777,
            user: found.st_uid,
            group: found.st_gid,
        }
    }
}

fn fail(path: &Path) -> impl Fn(Errno) -> HostError {
    let path = path.to_owned();
    move |error| HostError::io(&path, &error.into())
}

fn open(path: &Path) -> Result<(File, Stat), HostError> {
    let (directory, name) = open_parent(path)?;
    let found = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let found = found.map_err(fail(path))?;
    let kind = FileType::from_raw_mode(found.st_mode);
    match kind {
        FileType::RegularFile | FileType::Directory => {}
        FileType::Symlink => return Err(HostError::path(path, "a link, which is not followed")),
        _ => return Err(HostError::path(path, "neither a file nor a directory")),
    }
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&directory, name, flags, Mode::empty()).map_err(fail(path))?;
    let opened = rustix::fs::fstat(&file).map_err(fail(path))?;
    match Identity::from_stat(&opened) == Identity::from_stat(&found) {
        true => Ok((File::from(file), opened)),
        false => Err(meanwhile(path)),
    }
}

fn meanwhile(path: &Path) -> HostError {
    HostError::meanwhile(path, "somebody else changed it at this moment")
}

/// Returns the permissions of a file or directory.
pub(crate) fn read(path: &Path) -> Result<Permissions, HostError> {
    open(path).map(|(_, found)| Permissions::of(&found))
}

/// Checks that permissions can be changed: the object has only one name, and no flag of chattr(1).
pub(crate) fn check(path: &Path) -> Result<(), HostError> {
    let (file, found) = open(path)?;
    check_opened(path, &file, &found)
}

fn check_opened(path: &Path, file: &File, found: &Stat) -> Result<(), HostError> {
    if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_nlink > 1 {
        let reason = format!(
            "it has {} names (hard links), and its permissions are those of all of them",
            found.st_nlink
        );
        return Err(HostError::path(path, reason));
    }
    if let Some(mark @ (Mark::Immutable | Mark::AppendOnly)) = Mark::of(file) {
        let (word, letter) = mark.words();
        let shown = shell_word(path);
        let reason = format!(
            "it is {word} (chattr +{letter}), so somebody wants it to stay as it is. If it shall change all the \
             same: `chattr -{letter} {shown}`, then the same command again, then `chattr +{letter} {shown}`"
        );
        return Err(HostError::path(path, reason));
    }
    Ok(())
}

/// Changes the permission bits of a file or directory whose current permissions are `seen`. The owner does not change.
pub(crate) fn set(path: &Path, seen: Permissions, wanted: Permissions) -> Result<(), HostError> {
    let (file, found) = open(path)?;
    if Permissions::of(&found) != seen {
        return Err(meanwhile(path));
    }
    let io = |error: std::io::Error| HostError::io(path, &error);
    check_opened(path, &file, &found)?;
    file.set_permissions(std::fs::Permissions::from_mode(wanted.mode))
        .map_err(io)?;
    file.sync_all().map_err(io)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn bits_change_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let file = dir.join("a");
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o4646)).unwrap();
        let before = std::fs::metadata(&file).unwrap();
        let seen = read(&file).unwrap();
        assert_eq!(seen.mode, 0o4646);
        let wanted = Permissions {
            mode: 0o640,
            ..seen
        };
        set(&file, seen, wanted).unwrap();
        assert_eq!(read(&file).unwrap(), wanted);
        assert!(set(&file, seen, wanted).unwrap_err().is_meanwhile());
        set(&file, wanted, seen).unwrap();
        let after = std::fs::metadata(&file).unwrap();
        assert_eq!(before.mode(), after.mode());
        assert_eq!(
            (before.mtime(), before.mtime_nsec()),
            (after.mtime(), after.mtime_nsec())
        );
        let sub = dir.join("d");
        std::fs::create_dir(&sub).unwrap();
        let seen = read(&sub).unwrap();
        set(
            &sub,
            seen,
            Permissions {
                mode: 0o1777,
                ..seen
            },
        )
        .unwrap();
        assert_eq!(mode(&sub), 0o1777);
    }

    #[test]
    fn attack_links_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let file = dir.join("a");
        std::fs::write(&file, "x").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        let seen = read(&file).unwrap();
        let open = Permissions {
            mode: 0o666,
            ..seen
        };
        symlink(&file, dir.join("link")).unwrap();
        symlink(&dir, dir.join("way")).unwrap();
        for path in [dir.join("link"), dir.join("way/a")] {
            assert!(read(&path).is_err(), "{}", path.display());
            assert!(set(&path, seen, open).is_err(), "{}", path.display());
            assert!(check(&path).is_err(), "{}", path.display());
        }
        assert_eq!(mode(&file), 0o600);
        std::fs::hard_link(&file, dir.join("second")).unwrap();
        assert!(check(&file).is_err());
        assert!(set(&file, seen, open).is_err());
        assert_eq!(mode(&file), 0o600);
    }
}

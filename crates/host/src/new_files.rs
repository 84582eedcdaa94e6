//! Creates files and directories without replacing anything, and removes the directories while they are empty.
//!
//! The path is followed from the root without links, the directory is kept open, and all operations use its descriptor,
//! as in module `replace`. Module `replace::swap` removes a file only if nobody else changed it.

use crate::directory_owner;
use crate::error::HostError;
use crate::held::{Directory, Identity, Removed};
use crate::inode_flags::{Mark, shell_word};
use crate::persistent_identity::KnownFile;
use crate::replace::open_parent;
use rustix::fs::{AtFlags, Mode, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Permission bits of a new file, whatever the umask is.
const FILE_MODE: u32 = 0o644;
/// Permission bits of a new directory, whatever the umask is.
const DIRECTORY_MODE: u32 = 0o755;
/// Names of the extended attributes that contain the access control lists that a directory passes on (acl(5)).
const ACLS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];
/// `errno` of a path with a link that is not followed.
const LINK: i32 = Errno::LOOP.raw_os_error();

fn fail(path: &Path) -> impl Fn(Errno) -> HostError {
    let path = path.to_owned();
    move |error| HostError::io(&path, &error.into())
}

/// Checks that a file can be created in a directory: only this user and root may write to the directory and its
/// parents, and it has no flag of chattr(1). The path must not contain a link.
pub(crate) fn check_directory(dir: &Path) -> Result<(), HostError> {
    directory_owner::check(dir)?;
    let (directory, _) = open_parent(&dir.join("-"))?;
    if let Some(mark @ (Mark::Immutable | Mark::AppendOnly)) = Mark::of(&directory) {
        let (word, letter) = mark.words();
        let shown = shell_word(dir);
        let reason = format!(
            "it is {word} (chattr +{letter}), so somebody wants it to stay as it is. If it shall change all the \
             same: `chattr -{letter} {shown}`, then the same command again, then `chattr +{letter} {shown}`"
        );
        return Err(HostError::path(dir, reason));
    }
    Ok(())
}

/// Creates a file with this content. It belongs to this user, and all users may read it.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let (directory, name) = open_parent(path)?;
    let made = directory.create(name)?;
    let written = made.file().write_all(bytes);
    let filled = written
        .and_then(|()| share(made.file(), FILE_MODE))
        .and_then(|()| made.file().sync_all())
        .map_err(|error| HostError::io(path, &error));
    match filled {
        Ok(()) => directory.sync(),
        Err(error) => {
            let _ = directory.remove(name, made.identity());
            Err(error)
        }
    }
}

/// Gives a new file or directory its owner and permission bits. What its directory passes on (group, ACL) is removed.
fn share(file: &File, mode: u32) -> std::io::Result<()> {
    for acl in ACLS {
        match rustix::fs::fremovexattr(file, acl) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let group = rustix::process::getegid().as_raw();
    if file.metadata()?.gid() != group {
        std::os::unix::fs::fchown(file, None, Some(group))?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// Renames the file `from` to a name in the same directory that no file has.
pub(crate) fn rename(from: &Path, to: &Path) -> Result<(), HostError> {
    let (directory, name) = open_parent(to)?;
    if from.parent() != to.parent() {
        let reason = format!("not in the directory of {}", to.display());
        return Err(HostError::path(from, reason));
    }
    let aside = directory_owner::last_component(from)?;
    let renamed = match rustix::fs::renameat_with(
        &directory,
        aside,
        &directory,
        name,
        RenameFlags::NOREPLACE,
    ) {
        // NFS, and some other file systems.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(&directory, aside, &directory, name, AtFlags::empty())
                .and_then(|()| rustix::fs::unlinkat(&directory, aside, AtFlags::empty()))
        }
        other => other,
    };
    match renamed {
        Ok(()) => directory.sync(),
        Err(Errno::EXIST) => Err(HostError::meanwhile(
            to,
            "somebody else created it at this moment",
        )),
        Err(error) => Err(fail(to)(error)),
    }
}

/// Creates a directory; returns `None` if the name exists already.
pub(crate) fn create_directory(path: &Path) -> Result<Option<KnownFile>, HostError> {
    let (directory, name) = open_parent(path)?;
    match rustix::fs::mkdirat(&directory, name, Mode::RWXU) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(None),
        Err(error) => return Err(fail(path)(error)),
    }
    let made = directory.below(Path::new(name))?;
    let file = made.as_fd().try_clone_to_owned();
    file.map(File::from)
        .and_then(|file| share(&file, DIRECTORY_MODE))
        .map_err(|error| HostError::io(path, &error))?;
    made.sync()?;
    directory.sync()?;
    KnownFile::of(&made).map(Some)
}

/// Removes a directory if it is empty and still the one that assay created. If `known` is `None`, assay was killed
/// before it recorded the identity; the directory must then belong to this user. Returns [`Removed::Another`] for any
/// other object, and for a directory with content.
pub(crate) fn remove_directory(
    path: &Path,
    known: Option<&KnownFile>,
) -> Result<Removed, HostError> {
    let (directory, name) = match open_parent(path) {
        Err(error) if error.is_absent() => return Ok(Removed::Absent),
        other => other?,
    };
    if directory.look(name)?.is_none() {
        return Ok(Removed::Absent);
    }
    let made = match directory.below(Path::new(name)) {
        Ok(made) => made,
        // A file or a link; ENOTDIR counts as absent.
        Err(error) if error.is_absent() || error.errno() == Some(LINK) => {
            return Ok(Removed::Another);
        }
        Err(error) => return Err(error),
    };
    let ours = match known {
        Some(known) => known.is(&made),
        None => is_own(&made),
    };
    if !ours {
        return Ok(Removed::Another);
    }
    let identity = Identity::of(&made).map_err(fail(path))?;
    match directory.remove_directory(name, identity) {
        Ok(removed) => {
            directory.sync()?;
            Ok(removed)
        }
        Err(error) => match error.errno().map(Errno::from_raw_os_error) {
            Some(Errno::NOTEMPTY | Errno::EXIST | Errno::BUSY) => Ok(Removed::Another),
            _ => Err(error),
        },
    }
}

fn is_own(made: &Directory) -> bool {
    let us = rustix::process::geteuid().as_raw();
    rustix::fs::fstat(made).is_ok_and(|found| found.st_uid == us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn place() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn nothing_is_replaced() {
        let (_dir, place) = place();
        let (aside, file) = (place.join("aside"), place.join("file"));
        create(&aside, b"new\n").unwrap();
        assert!(create(&aside, b"again\n").is_err());
        for there in [b"theirs\n".as_slice(), b""] {
            fs::write(&file, there).unwrap();
            assert!(rename(&aside, &file).unwrap_err().is_meanwhile());
            assert_eq!(fs::read(&file).unwrap(), there);
            fs::remove_file(&file).unwrap();
        }
        symlink(place.join("nowhere"), &file).unwrap();
        assert!(rename(&aside, &file).unwrap_err().is_meanwhile());
        assert!(!place.join("nowhere").exists());
        fs::remove_file(&file).unwrap();
        rename(&aside, &file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new\n");
        assert_eq!(mode(&file), 0o644);
        assert!(!aside.exists());
    }

    #[test]
    fn a_group_of_the_directory_is_not_passed_on() {
        let (_dir, place) = place();
        fs::set_permissions(&place, fs::Permissions::from_mode(0o2755)).unwrap();
        let _ = std::os::unix::fs::chown(&place, None, Some(54321));
        create(&place.join("file"), b"x\n").unwrap();
        create_directory(&place.join("below")).unwrap().unwrap();
        let us = rustix::process::getegid().as_raw();
        for (name, wanted) in [("file", 0o644), ("below", 0o755)] {
            let found = fs::metadata(place.join(name)).unwrap();
            assert_eq!((found.gid(), mode(&place.join(name))), (us, wanted));
        }
    }

    #[test]
    fn only_own_empty_directories_are_removed() {
        let (_dir, place) = place();
        let below = place.join("below");
        let known = create_directory(&below).unwrap().unwrap();
        assert!(create_directory(&below).unwrap().is_none());
        fs::write(below.join("theirs"), "").unwrap();
        let removed = |known| remove_directory(&below, known).unwrap();
        assert_eq!(removed(Some(&known)), Removed::Another);
        assert_eq!(removed(None), Removed::Another);
        fs::remove_file(below.join("theirs")).unwrap();
        assert_eq!(removed(Some(&known)), Removed::Gone);
        assert_eq!(removed(Some(&known)), Removed::Absent);
        // Another directory of that name, kept apart by its inode number.
        let other = create_directory(&place.join("other")).unwrap().unwrap();
        fs::create_dir(&below).unwrap();
        assert_eq!(removed(Some(&other)), Removed::Another);
        assert_eq!(removed(None), Removed::Gone);
        symlink(place.join("other"), &below).unwrap();
        assert_eq!(removed(None), Removed::Another);
        assert!(place.join("other").exists());
    }

    #[test]
    fn directories_of_others_are_refused() {
        let (_dir, place) = place();
        let below = place.join("below");
        fs::create_dir(&below).unwrap();
        check_directory(&below).unwrap();
        fs::set_permissions(&below, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(check_directory(&below).is_err());
        fs::set_permissions(&below, fs::Permissions::from_mode(0o755)).unwrap();
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&below, Some(12345), None).unwrap();
            assert!(check_directory(&below).is_err());
        }
        symlink(&place, place.join("link")).unwrap();
        assert!(check_directory(&place.join("link")).is_err());
    }
}

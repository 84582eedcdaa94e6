//! Directory of the user's guest images.

use crate::error::LabError;
use assay_host::HostError;
use assay_host::held::Directory;
use rustix::fs::{AtFlags, FileType, Mode};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Environment variable that overrides the directory of guest images.
pub(crate) const VARIABLE: &str = "ASSAY_LAB_CACHE";

/// Returns `$ASSAY_LAB_CACHE`, else `$XDG_CACHE_HOME/assay/lab`, else `~/.cache/assay/lab`. As in the XDG Base
/// Directory Specification 0.8, a relative path in an XDG variable is ignored.
pub(crate) fn cache_directory(
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<PathBuf, LabError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    if let Some(dir) = set(VARIABLE).map(PathBuf::from) {
        return std::path::absolute(&dir).map_err(LabError::io(&dir));
    }
    let absolute = |name: &str| {
        set(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".cache")))
        .map(|base| base.join("assay/lab"))
        .ok_or(LabError::NoCache)
}

/// Checks that no other user can change or replace an image. A guest may access the host's disks, so its image
/// must be trustworthy.
///
/// # Errors
/// Another user owns or may write a path.
pub(crate) fn ours(dir: &Path) -> Result<(), LabError> {
    let refuse = |source| LabError::NotOurs { source };
    assay_host::directory_owner::check(dir).map_err(refuse)?;
    let Ok(held) = Directory::open(dir) else {
        return Ok(());
    };
    let us = rustix::process::geteuid().as_raw();
    for name in held.list()? {
        let found = rustix::fs::statat(&held, &name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(found) = found else {
            continue;
        };
        let path = dir.join(&name);
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            continue;
        }
        let others = Mode::from_raw_mode(found.st_mode) & (Mode::WGRP | Mode::WOTH);
        if ![0, us].contains(&found.st_uid) {
            let reason = format!("belongs to user {}, and this is user {us}", found.st_uid);
            return Err(refuse(wrong_directory(path, reason)));
        }
        if !others.is_empty() {
            return Err(refuse(wrong_directory(
                path,
                "others may write it".to_owned(),
            )));
        }
    }
    Ok(())
}

fn wrong_directory(path: PathBuf, reason: String) -> HostError {
    HostError::Path {
        path,
        errno: None,
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown};

    #[test]
    fn attack_a_cache_that_others_may_change_is_refused() {
        if !rustix::process::geteuid().is_root() {
            assay_testing::skipped("root", "only root can give a directory away");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (cache, image) = (dir.path().join("cache"), dir.path().join("cache/image"));
        std::fs::create_dir_all(&image).unwrap();
        std::fs::write(image.join("root.img"), "x").unwrap();
        let root = image.join("root.img");
        let set = |path: &Path, bits| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
        };
        let (mut tried, mut held) = (0, 0);
        for (path, good, bad) in [
            (dir.path(), 0o755, 0o777),
            (&*cache, 0o755, 0o777),
            (&*cache, 0o755, 0o1777),
            (&*image, 0o755, 0o775),
            (&*root, 0o644, 0o664),
        ] {
            ours(&image).unwrap();
            set(path, bad);
            // A user who may write the parent directory can replace the image.
            let refused = ours(&image).is_err() || (bad == 0o1777 && ours(&cache).is_err());
            set(path, good);
            tried += 1;
            held += u64::from(refused);
        }
        for path in [&*cache, &*image, &*root] {
            chown(path, Some(65534), None).unwrap();
            let refused = ours(&image);
            chown(path, Some(0), None).unwrap();
            tried += 1;
            held += u64::from(matches!(refused, Err(LabError::NotOurs { .. })));
        }
        ours(&dir.path().join("cache/not/yet")).unwrap();
        assay_testing::attacked("guest images that others may change", tried, held);
    }

    fn place(variables: &[(&str, &str)]) -> Option<PathBuf> {
        cache_directory(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
        .ok()
    }

    #[test]
    fn the_nearest_variable_says_where() {
        let home = ("HOME", "/home/u");
        let is = |variables: &[_], path| assert_eq!(place(variables).as_deref(), path);
        is(&[home], Some(Path::new("/home/u/.cache/assay/lab")));
        let xdg = ("XDG_CACHE_HOME", "/cache");
        is(&[home, xdg], Some(Path::new("/cache/assay/lab")));
        is(
            &[home, xdg, (VARIABLE, "/images")],
            Some(Path::new("/images")),
        );
        is(
            &[home, ("XDG_CACHE_HOME", "relative"), (VARIABLE, "")],
            Some(Path::new("/home/u/.cache/assay/lab")),
        );
        is(&[], None);
    }
}

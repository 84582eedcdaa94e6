//! Creates an output folder that the user named. The folder has a hidden name until it is complete.

use super::{file_name, link_safe_directory};
use crate::error::HostError;
use crate::held::Directory;
use crate::remove;
use rustix::fs::{Mode, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// A new folder that only this user can access. It has a hidden name until [`Self::publish`] gives it the user's name.
/// If the value is dropped earlier, the folder is removed with its content.
#[derive(Debug)]
pub struct OutputFolder {
    shown: PathBuf,
    above: Directory,
    name: OsString,
    aside: OsString,
    folder: Directory,
    published: bool,
}

impl OutputFolder {
    /// Creates the folder. Its parent must exist, and its name must not.
    ///
    /// # Errors
    /// The name exists, a link in the path belongs to another user, or access is not permitted.
    pub fn create(path: &Path) -> Result<Self, HostError> {
        let name = path.file_name().map_or_else(|| file_name(path), Ok)?;
        let above = link_safe_directory::open_parent(path)?;
        if above.look(name)?.is_some() {
            return Err(name_taken_error(path));
        }
        let aside = super::temporary_name(OsStr::new("folder"));
        let folder = above.make(&aside)?;
        Ok(Self {
            shown: path.to_owned(),
            name: name.to_owned(),
            above,
            aside,
            folder,
            published: false,
        })
    }

    /// Returns a path of the open folder that remains valid after a rename.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.through()
    }

    /// Gives the folder its final name. The caller must have synced the files in it.
    ///
    /// # Errors
    /// The name exists at this time, or as rename(2).
    pub fn publish(mut self) -> Result<(), HostError> {
        let (above, flags) = (&self.above, RenameFlags::NOREPLACE);
        self.folder.sync()?;
        let moved = match rustix::fs::renameat_with(above, &*self.aside, above, &*self.name, flags)
        {
            // rename(2) replaces a directory only if it is empty.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::renameat(above, &*self.aside, above, &*self.name)
            }
            moved => moved,
        };
        moved.map_err(|error| match error {
            Errno::EXIST | Errno::NOTEMPTY => name_taken_error(&self.shown),
            error => HostError::io(&self.shown, &error.into()),
        })?;
        self.published = true;
        match self.above.look(&self.name)? == Some(self.folder.identity()?) {
            true => self.above.sync(),
            false => Err(HostError::path(
                &self.shown,
                "somebody put another folder in its place while it was written",
            )),
        }
    }
}

/// Opens a directory for output files, and creates missing parts of its path. Fails if another user can write to the
/// directory, because that user could place links in it.
///
/// # Errors
/// The directory belongs to another user, others can write to it, a link in the path belongs to another user, or access
/// is not permitted.
pub fn open_own_directory(path: &Path) -> Result<Directory, HostError> {
    let folder = link_safe_directory::make_directory(path)?;
    let found = rustix::fs::fstat(&folder).map_err(|error| HostError::io(path, &error.into()))?;
    let us = rustix::process::geteuid().as_raw();
    if found.st_uid != us {
        let reason = format!(
            "belongs to user {}, who could plant links in it; name a directory that does not exist",
            found.st_uid
        );
        return Err(HostError::path(path, reason));
    }
    let mode = Mode::from_raw_mode(found.st_mode);
    // Many systems give each user a private group with the same number.
    let alone = found.st_gid == 0 || found.st_gid == us;
    match mode.contains(Mode::WOTH) || mode.contains(Mode::WGRP) && !alone {
        true => Err(HostError::path(
            path,
            "others may write here and plant links; name a directory that does not exist",
        )),
        false => Ok(folder),
    }
}

fn name_taken_error(path: &Path) -> HostError {
    HostError::path(path, "is there already; name a folder that is not")
}

impl Drop for OutputFolder {
    fn drop(&mut self) {
        if !self.published
            && let Ok(meant) = self.folder.identity()
        {
            let _ = remove::all_of(&self.above, &self.aside, meant);
        }
    }
}

//! Recognises files that a killed assay left, and removes them. Files of other users and of running assay processes are
//! not touched.

use super::{Access, Directory, Held, Removed};
use crate::error::HostError;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;

impl Held {
    /// Returns whether an assay process of this user may have created the file. The file must belong to this user and
    /// have only one hard link.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn can_be_ours(&self) -> Result<bool, HostError> {
        Ok(self.owner()? == rustix::process::geteuid().as_raw() && self.names()? == 1)
    }
}

impl Directory {
    /// Removes a file that a killed assay left under a name in assay's format. The file must belong to this user and
    /// have one hard link. It must not be locked, because a running assay locks its files. Returns `None` if one of
    /// these conditions is not met.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub fn remove_abandoned(&self, name: &OsStr) -> Result<Option<Removed>, HostError> {
        let Ok(held) = self.file(name, Access::Read) else {
            return Ok(None);
        };
        let ours = held.can_be_ours().unwrap_or(false);
        match ours && flock(held.file(), FlockOperation::NonBlockingLockExclusive).is_ok() {
            true => self.remove(name, held.identity()).map(Some),
            false => Ok(None),
        }
    }
}

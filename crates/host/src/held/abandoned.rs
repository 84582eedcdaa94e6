//! Recognises and removes files that a killed assay left, as opposed to files of others or of a running assay.

use super::{Access, Directory, Held, Removed};
use crate::error::HostError;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;

impl Held {
    /// Whether a file may have been created by this user's assay: it belongs to this user and has only one hard link.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn can_be_ours(&self) -> Result<bool, HostError> {
        Ok(self.owner()? == rustix::process::geteuid().as_raw() && self.names()? == 1)
    }
}

impl Directory {
    /// Removes a file with a name in assay's format that a killed assay left. The file must belong to this user, have
    /// one hard link, and not be locked, because a running assay locks its files. Returns `None` if a condition is not
    /// met.
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

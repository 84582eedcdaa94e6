//! Files that a killed assay left, told from those of other people and of a living assay.

use super::{Access, Directory, Held, Removed};
use crate::error::HostError;
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsStr;

impl Held {
    /// Whether it is this user's, and under no other name.
    ///
    /// # Errors
    /// As fstat(2).
    pub fn can_be_ours(&self) -> Result<bool, HostError> {
        Ok(self.owner()? == rustix::process::geteuid().as_raw() && self.names()? == 1)
    }
}

impl Directory {
    /// Removes a file of this directory that bears a name of ours, when it is this user's, under no other
    /// name, and locked by nobody: as long as an assay uses its file it holds a lock on it. None when it
    /// is not so.
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

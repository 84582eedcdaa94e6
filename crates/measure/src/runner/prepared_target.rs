//! Opens a target for commands other than `assay run`.

use crate::runner::TargetRefused;
use crate::runner::target_lock::{Claim, take};
use crate::runner::targets::{self, Place, scratch_fits, target_changed};
use assay_host::Host;
use assay_host::held::{Directory, Held};
use assay_model::{Bytes, TargetInfo};
use std::path::PathBuf;
use std::sync::Arc;

/// An open target: a directory of the user, or a file or device that is only read. Its name is resolved only once. So
/// assay measures the object that the user saw, even if the name later refers to another object.
#[derive(Debug)]
pub struct OpenTarget {
    place: Place,
    info: TargetInfo,
}

impl OpenTarget {
    /// Opens a target and finds the layers below it.
    ///
    /// # Errors
    /// The target does not exist, cannot be opened or read, or was replaced during the check.
    pub fn open(host: &dyn Host, target: &str) -> Result<Self, TargetRefused> {
        let (place, info) = targets::look(host, target)?;
        Ok(Self { place, info })
    }

    /// Returns the description of the target from the time of opening.
    #[must_use]
    pub fn info(&self) -> &TargetInfo {
        &self.info
    }

    /// Returns the open directory; `None` if the target is not a directory.
    #[must_use]
    pub fn directory(&self) -> Option<&Arc<Directory>> {
        match &self.place {
            Place::Directory(directory) => Some(directory),
            Place::File(_) => None,
        }
    }

    /// Returns the open file or device; `None` if the target is a directory.
    #[must_use]
    pub fn file(&self) -> Option<&Held> {
        match &self.place {
            Place::Directory(_) => None,
            Place::File(held) => Some(held),
        }
    }

    /// Returns a path that refers to the open target.
    #[must_use]
    pub fn through(&self) -> PathBuf {
        match &self.place {
            Place::Directory(directory) => directory.through(),
            Place::File(held) => held.through(),
        }
    }

    /// Locks the target, so that no other assay process measures it.
    ///
    /// # Errors
    /// Another assay process measures the target.
    pub fn claim(&self) -> Result<Claim, TargetRefused> {
        let name = &self.info.name;
        let key = self.place.key();
        take(&key.map_err(|error| target_changed(name, error))?, name)
    }

    /// Checks that files with a total size of `size` can be created in the directory.
    ///
    /// # Errors
    /// The directory is not writable, or too full.
    pub fn fits(&self, size: Bytes) -> Result<(), TargetRefused> {
        let info = TargetInfo {
            size,
            ..self.info.clone()
        };
        scratch_fits(&info, &self.through())
    }
}

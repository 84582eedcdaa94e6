//! A target that a verb other than `run` measures.

use crate::runner::TargetRefused;
use crate::runner::target_lock::{Claim, take};
use crate::runner::targets::{self, Place, scratch_fits, target_changed};
use assay_host::Host;
use assay_host::held::{Directory, Held};
use assay_model::{Bytes, TargetInfo};
use std::path::PathBuf;
use std::sync::Arc;

/// A directory of the user, or a read-only file or device. The name is resolved once: the object
/// that the user saw is measured, even if its name is reused.
#[derive(Debug)]
pub struct Ground {
    place: Place,
    info: TargetInfo,
}

impl Ground {
    /// Opens a target and finds the layers below it.
    ///
    /// # Errors
    /// The target does not exist, cannot be opened or read, or was replaced during the check.
    pub fn open(host: &dyn Host, target: &str) -> Result<Self, TargetRefused> {
        let (place, info) = targets::look(host, target)?;
        Ok(Self { place, info })
    }

    /// Returns the description at the time of opening.
    #[must_use]
    pub fn info(&self) -> &TargetInfo {
        &self.info
    }

    /// Returns the directory, if it is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Arc<Directory>> {
        match &self.place {
            Place::Directory(directory) => Some(directory),
            Place::File(_) => None,
        }
    }

    /// Returns the file or device, if it is one.
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

    /// Locks the target for a measurement.
    ///
    /// # Errors
    /// Another assay measures it.
    pub fn claim(&self) -> Result<Claim, TargetRefused> {
        let name = &self.info.name;
        let key = self.place.key();
        take(&key.map_err(|error| target_changed(name, error))?, name)
    }

    /// Checks that files of `size` in total can be created in the directory.
    ///
    /// # Errors
    /// It is not writable, or too full.
    pub fn fits(&self, size: Bytes) -> Result<(), TargetRefused> {
        let info = TargetInfo {
            size,
            ..self.info.clone()
        };
        scratch_fits(&info, &self.through())
    }
}

//! A target that another verb than `run` measures in its own way.

use crate::runner::TargetRefused;
use crate::runner::target_lock::{Claim, take};
use crate::runner::targets::{self, Place, scratch_fits, target_changed};
use assay_host::Host;
use assay_host::held::{Directory, Held};
use assay_model::{Bytes, TargetInfo};
use std::path::PathBuf;
use std::sync::Arc;

/// A directory of the user's, or a file or device that is only read. Its name was looked up once:
/// what was shown to the user is what is measured, whatever takes its name meanwhile.
#[derive(Debug)]
pub struct Ground {
    place: Place,
    info: TargetInfo,
}

impl Ground {
    /// Opens a target, and finds out what lies below it.
    ///
    /// # Errors
    /// Nothing is there, it cannot be opened or looked at, or it changed meanwhile.
    pub fn open(host: &dyn Host, target: &str) -> Result<Self, TargetRefused> {
        let (place, info) = targets::look(host, target)?;
        Ok(Self { place, info })
    }

    /// What it was when it was opened.
    #[must_use]
    pub fn info(&self) -> &TargetInfo {
        &self.info
    }

    /// The directory, when it is one.
    #[must_use]
    pub fn directory(&self) -> Option<&Arc<Directory>> {
        match &self.place {
            Place::Directory(directory) => Some(directory),
            Place::File(_) => None,
        }
    }

    /// The file or device, when it is one.
    #[must_use]
    pub fn file(&self) -> Option<&Held> {
        match &self.place {
            Place::Directory(_) => None,
            Place::File(held) => Some(held),
        }
    }

    /// A path that leads to it as long as it is held.
    #[must_use]
    pub fn through(&self) -> PathBuf {
        match &self.place {
            Place::Directory(directory) => directory.through(),
            Place::File(held) => held.through(),
        }
    }

    /// Takes the right to measure it.
    ///
    /// # Errors
    /// Another assay measures it.
    pub fn claim(&self) -> Result<Claim, TargetRefused> {
        let name = &self.info.name;
        let key = self.place.key();
        take(&key.map_err(|error| target_changed(name, error))?, name)
    }

    /// Whether files of `size` in all may be made in the directory.
    ///
    /// # Errors
    /// It may not be written to, or there is no room.
    pub fn fits(&self, size: Bytes) -> Result<(), TargetRefused> {
        let info = TargetInfo {
            size,
            ..self.info.clone()
        };
        scratch_fits(&info, &self.through())
    }
}

//! The environment that a bench receives from the study.

use crate::StudyError;
use assay_changes::{ChangeSession, MadeId, OwnDirectory};
use assay_lab::{Accel, Disk, Guest, GuestOptions, GuestRegistry, Image};
use assay_measure::engine::Environment;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Time limit of a guest's boot, long enough for an emulated guest on a busy machine.
const BOOT_LIMIT: Duration = Duration::from_secs(900);

/// Machine, directories and journal session of a study. Benches borrow the context for their lifetime.
pub struct BenchContext<'a> {
    /// Services that every measurement needs.
    pub env: Environment<'a>,
    /// Existing directory on the storage to test. The user named the directory, and the caller holds it open
    /// ([`assay_host::held::Directory::through`]).
    pub dir: PathBuf,
    /// ZFS file system that the user named. If set, zvols and file systems are created below it on this
    /// machine, and no guest has a pool.
    pub on: Option<String>,
    /// Directories on particular file systems; the keys are the names that the study uses.
    pub dirs: BTreeMap<String, PathBuf>,
    /// Journal session in which objects are recorded before they are created.
    pub session: &'a ChangeSession,
    /// Guest image; present if the bench needs guests.
    pub image: Option<Image>,
    /// Registry of guests.
    pub guests: &'a GuestRegistry,
    /// KVM or TCG; detected if `None`.
    pub accel: Option<Accel>,
    /// Seed of order, offsets and data.
    pub seed: u64,
    /// Callback that shows the current activity to the user, next to the progress.
    pub say: &'a dyn Fn(&str),
}

impl BenchContext<'_> {
    /// Boots a guest that ends on drop. `name` distinguishes the guests of a study.
    ///
    /// # Errors
    /// There is no image, QEMU or space, or the guest does not boot.
    pub fn boot(
        &self,
        name: &str,
        memory_mib: u32,
        cpus: u32,
        disks: Vec<Disk>,
    ) -> Result<Guest, StudyError> {
        self.go_on()?;
        (self.say)("booting a guest");
        let image = self.image.as_ref().ok_or(StudyError::NoImage)?;
        let mut options = GuestOptions::new(&format!("study-{}-{name}", std::process::id()));
        options.memory_mib = memory_mib;
        options.cpus = cpus;
        options.disks = disks;
        options.accel = self.accel;
        options.boot_limit = BOOT_LIMIT;
        Ok(Guest::boot(image, &options, self.guests, self.env.cancel)?)
    }

    /// Creates a private directory in [`BenchContext::dir`], recorded in the journal beforehand and used
    /// through its descriptor. It is removed when the session closes, or by [`BenchContext::remove`].
    ///
    /// # Errors
    /// The journal cannot be written, or the directory cannot be created.
    pub fn scratch_dir(&self, name: &str) -> Result<OwnDirectory, StudyError> {
        self.scratch_dir_in(&self.dir, name)
    }

    /// Like [`BenchContext::scratch_dir`], in another directory that the user named.
    ///
    /// # Errors
    /// As [`BenchContext::scratch_dir`].
    pub fn scratch_dir_in(&self, dir: &Path, name: &str) -> Result<OwnDirectory, StudyError> {
        Ok(self.session.own_directory(self.env.host, dir, name)?)
    }

    /// Creates a directory in the session's own directory, for mounts and for programs that need a path. No other user
    /// can replace it. It has little space.
    ///
    /// # Errors
    /// The directory cannot be created.
    pub fn kept_dir(&self, name: &str) -> Result<PathBuf, StudyError> {
        let dir = self.session.dir().join(self.session.name(name));
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir);
        made.map_err(StudyError::io(&dir))?;
        Ok(dir)
    }

    /// Removes an object that the journal contains.
    ///
    /// # Errors
    /// The object cannot be removed; the removal is tried again when the session closes.
    pub fn remove(&self, id: MadeId) -> Result<(), StudyError> {
        Ok(self.session.unmake(self.env.host, id)?)
    }

    /// Checks whether the user wants to stop.
    ///
    /// # Errors
    /// [`StudyError::Cancelled`] if so.
    pub fn go_on(&self) -> Result<(), StudyError> {
        match self.env.cancel.is_cancelled() {
            true => Err(StudyError::Cancelled),
            false => Ok(()),
        }
    }
}

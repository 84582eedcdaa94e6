//! The environment that a study passes to its bench.

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
    /// Machine, fio, journal and clock, which every measurement needs.
    pub env: Environment<'a>,
    /// Directory on the storage to test, from the user. The caller keeps the directory open
    /// ([`assay_host::held::Directory::through`]).
    pub dir: PathBuf,
    /// ZFS file system from the user. If set, zvols and file systems are created below this file system on this
    /// machine, and no guest has a pool.
    pub on: Option<String>,
    /// Directories from the user on particular file systems. The keys are the names that the study uses.
    pub dirs: BTreeMap<String, PathBuf>,
    /// Journal session in which objects are recorded before they are created.
    pub session: &'a ChangeSession,
    /// Guest image; `None` if the bench needs no guests.
    pub image: Option<Image>,
    /// Registry that records running guests, so that they can be removed after a crash.
    pub guests: &'a GuestRegistry,
    /// Accelerator of the guests, KVM or TCG; `None` means that assay detects it.
    pub accel: Option<Accel>,
    /// Seed of the random order, the offsets and the data.
    pub seed: u64,
    /// Callback that shows the current activity to the user.
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

    /// Creates a private directory in [`BenchContext::dir`]. The directory is recorded in the journal before it is
    /// created, and is used through its descriptor. Closing the session or [`BenchContext::remove`] removes the
    /// directory.
    ///
    /// # Errors
    /// The journal cannot be written, or the directory cannot be created.
    pub fn scratch_dir(&self, name: &str) -> Result<OwnDirectory, StudyError> {
        self.scratch_dir_in(&self.dir, name)
    }

    /// Like [`BenchContext::scratch_dir`], but in another directory that the user named.
    ///
    /// # Errors
    /// See [`BenchContext::scratch_dir`].
    pub fn scratch_dir_in(&self, dir: &Path, name: &str) -> Result<OwnDirectory, StudyError> {
        Ok(self.session.own_directory(self.env.host, dir, name)?)
    }

    /// Creates a directory in the session's own directory, for mounts and for programs that need a path. No other user
    /// can replace this directory. There is little space in it.
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

    /// Removes an object that is recorded in the journal.
    ///
    /// # Errors
    /// The object cannot be removed. Closing the session tries the removal again.
    pub fn remove(&self, id: MadeId) -> Result<(), StudyError> {
        Ok(self.session.unmake(self.env.host, id)?)
    }

    /// Fails if the user wants to stop.
    ///
    /// # Errors
    /// [`StudyError::Cancelled`].
    pub fn go_on(&self) -> Result<(), StudyError> {
        match self.env.cancel.is_cancelled() {
            true => Err(StudyError::Cancelled),
            false => Ok(()),
        }
    }
}

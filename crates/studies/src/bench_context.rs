//! What a bench gets from outside.

use crate::StudyError;
use assay_changes::{ChangeSession, MadeId, OwnDirectory};
use assay_lab::{Accel, Disk, Guest, GuestOptions, GuestRegistry, Image};
use assay_measure::engine::Environment;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A study is worth waiting for: an emulated guest on a machine that others load as well takes its
/// time to boot.
const BOOT_LIMIT: Duration = Duration::from_secs(900);

/// Where a study is carried out, and with what. Benches borrow it for as long as they live.
pub struct BenchContext<'a> {
    /// What every measurement needs.
    pub env: Environment<'a>,
    /// An existing directory on the storage that is to be tried: the user named it for that, and
    /// whoever lends this holds it ([`assay_host::held::Directory::through`]).
    pub dir: PathBuf,
    /// A ZFS file system that the user named for it: zvols and file systems are made below it, on
    /// this machine, and no guest has a pool.
    pub on: Option<String>,
    /// Directories that the user named for file systems that a study asks for, by its words for them.
    pub dirs: BTreeMap<String, PathBuf>,
    /// Where things are entered before they are made.
    pub session: &'a ChangeSession,
    /// The guest image; there whenever the bench says that it needs guests.
    pub image: Option<Image>,
    /// Where guests are entered.
    pub guests: &'a GuestRegistry,
    /// KVM or TCG; found out when none.
    pub accel: Option<Accel>,
    /// Seed of order, offsets and data.
    pub seed: u64,
    /// Tells the user what is being done now, in a few words; shown beside the progress.
    pub say: &'a dyn Fn(&str),
}

impl BenchContext<'_> {
    /// Boots a guest that ends when it is dropped. `name` tells it from other guests of the same
    /// study.
    ///
    /// # Errors
    /// No image, no QEMU, no room, or it does not come up.
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

    /// Makes a directory for this user alone in [`Place::dir`], entered before it is made, and used
    /// through its descriptor. It goes when the session is closed, or with [`Place::remove`].
    ///
    /// # Errors
    /// The journal cannot be written, or the directory cannot be made.
    pub fn scratch_dir(&self, name: &str) -> Result<OwnDirectory, StudyError> {
        self.scratch_dir_in(&self.dir, name)
    }

    /// The same in another directory that the user named.
    ///
    /// # Errors
    /// As [`Place::scratch_dir`].
    pub fn scratch_dir_in(&self, dir: &Path, name: &str) -> Result<OwnDirectory, StudyError> {
        Ok(self.session.own_directory(self.env.host, dir, name)?)
    }

    /// Makes a directory in the session's own: there nobody else can give its path to something else,
    /// as mounts and programs that remember paths need it. It has room for little.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn kept_dir(&self, name: &str) -> Result<PathBuf, StudyError> {
        let dir = self.session.dir().join(self.session.name(name));
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir);
        made.map_err(StudyError::io(&dir))?;
        Ok(dir)
    }

    /// Takes away what was entered.
    ///
    /// # Errors
    /// It does not go; it is tried again when the session is closed.
    pub fn remove(&self, id: MadeId) -> Result<(), StudyError> {
        Ok(self.session.unmake(self.env.host, id)?)
    }

    /// Whether to go on.
    ///
    /// # Errors
    /// [`StudyError::Cancelled`] when the user wants to stop.
    pub fn go_on(&self) -> Result<(), StudyError> {
        match self.env.cancel.is_cancelled() {
            true => Err(StudyError::Cancelled),
            false => Ok(()),
        }
    }
}

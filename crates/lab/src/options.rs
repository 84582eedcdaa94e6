//! Options with which a guest is booted.

use crate::accel::Accel;
use crate::devices::Places;
use crate::disk::Disk;
use crate::disk_guard::Claims;
use crate::emulator::check_cpu;
use crate::error::LabError;
use crate::state::GuestRegistry;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// Minimum memory in MiB that a guest needs to boot.
pub const LEAST_MEMORY: u32 = 256;

/// Options with which a guest is booted.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// Name of the guest: letters, digits and dashes, at most 32 characters.
    pub name: String,
    /// Memory of the guest in MiB.
    pub memory_mib: u32,
    /// Number of virtual CPUs.
    pub cpus: u32,
    /// CPU model with features for `-cpu` (`Haswell,-aes`). Default: the host's CPU (KVM), or all features
    /// that can be emulated (TCG).
    pub cpu_model: Option<String>,
    /// Path of an assay binary on the host, which is installed in the guest as `/usr/local/bin/assay`. Its loader and
    /// libraries are copied too, so the guest's C library does not matter.
    pub assay: Option<PathBuf>,
    /// Disks of the guest in addition to the root disk.
    pub disks: Vec<Disk>,
    /// Permits the guest to overwrite the data of the block devices in `disks`.
    pub destroy_data: bool,
    /// Permits overwriting even if the device contains data of an unknown type.
    pub destroy_unknown_data: bool,
    /// Accelerator to use; `None` to detect it.
    pub accel: Option<Accel>,
    /// Time limit from the start until the agent in the guest answers.
    pub boot_limit: Duration,
    /// Whether the guest continues after this process ends.
    pub detached: bool,
}

impl GuestOptions {
    /// Returns options for a small guest without disks: 1 GiB, two CPUs, and ten minutes to boot, because an emulated
    /// guest on a busy machine is slow.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            memory_mib: 1024,
            cpus: 2,
            cpu_model: None,
            assay: None,
            disks: Vec::new(),
            destroy_data: false,
            destroy_unknown_data: false,
            accel: None,
            boot_limit: Duration::from_secs(600),
            detached: false,
        }
    }

    /// Checks early whether this machine can run the guest, because building an image takes minutes. Examines the block
    /// devices of the guest's disks without changing them.
    ///
    /// # Errors
    /// The name is invalid or used, or a disk is not possible.
    pub fn check(&self, state: &GuestRegistry) -> Result<(), LabError> {
        state.free(&self.name)?;
        let mut places = Places::default();
        let mut names = BTreeSet::new();
        for disk in &self.disks {
            disk.check()?;
            places.device(disk, &mut Vec::new())?;
            if !names.insert(&disk.name) {
                return Err(disk.refuse("two disks of the guest have this name"));
            }
            let dir = disk.dir.as_deref().filter(|dir| !dir.is_dir());
            if let Some(dir) = dir {
                return Err(disk.refuse(format!("{} is no directory", dir.display())));
            }
        }
        Claims::take(self)?;
        self.cpu_model.as_deref().map_or(Ok(()), check_cpu)
    }

    pub(crate) fn memory_mib(&self) -> u32 {
        self.memory_mib.max(LEAST_MEMORY)
    }

    pub(crate) fn cpus(&self) -> u32 {
        self.cpus.max(1)
    }
}

//! What a guest is to be like.

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

/// Least memory with which the guest boots, in MiB.
pub const LEAST_MEMORY: u32 = 256;

/// What a guest is to be like.
#[derive(Clone, Debug)]
pub struct GuestOptions {
    /// Its name: letters, digits, dashes, at most 32.
    pub name: String,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Virtual processors.
    pub cpus: u32,
    /// QEMU's model of the processor, with features as `-cpu` takes them (`Haswell,-aes`); the
    /// host's own (KVM) or all that can be emulated (TCG) when none.
    pub cpu_model: Option<String>,
    /// The assay that is put into the guest as `/usr/local/bin/assay`, with its loader and
    /// libraries; it runs whatever C library it was linked to.
    pub assay: Option<PathBuf>,
    /// Its disks besides the root.
    pub disks: Vec<Disk>,
    /// Whether block devices that disks name may lose what they hold.
    pub destroy_data: bool,
    /// Also when they are not all zeroes, and what is on them is not known to be unused.
    pub destroy_unknown_data: bool,
    /// KVM or TCG; found out when none.
    pub accel: Option<Accel>,
    /// Longest time until its agent answers.
    pub boot_limit: Duration,
    /// Whether it runs on when this process ends.
    pub detached: bool,
}

impl GuestOptions {
    /// A small guest without disks: 1 GiB, two processors, ten minutes to boot (an emulated guest
    /// on a busy machine needs its time).
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

    /// Whether such a guest can be had on this machine, as far as that is known before there is an image:
    /// building one takes minutes. Devices of its disks are looked at, and left as they are.
    ///
    /// # Errors
    /// Its name is none or taken, or a disk cannot be had.
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

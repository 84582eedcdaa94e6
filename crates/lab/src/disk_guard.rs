//! Checks and claims a host block device before a guest uses it as a disk, so that no data is overwritten by mistake.

use crate::disk::Disk;
use crate::error::LabError;
use crate::options::GuestOptions;
use assay_host::LiveHost;
use assay_host::held::Held;
use assay_model::Bytes;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// The open block devices of a guest's disks. They are opened exclusively (`O_EXCL`).
pub(crate) struct Claims(Vec<(String, Held)>);

impl Claims {
    /// Claims the block devices of all disks. QEMU inherits the claims. So no other program can mount or claim the
    /// devices while the guest runs, even if assay ends.
    ///
    /// # Errors
    /// Permission is denied, a device is or may be in use, or a device is too small.
    pub(crate) fn take(options: &GuestOptions) -> Result<Self, LabError> {
        let mut claims = Vec::new();
        for disk in &options.disks {
            let Some(device) = disk.device.as_deref() else {
                continue;
            };
            if !options.destroy_data {
                return Err(disk.refuse(format!(
                    "what {} holds would be lost: --destroy-data allows that",
                    device.display()
                )));
            }
            let held = claim(disk, device, options.destroy_unknown_data)?;
            claims.push((disk.name.clone(), held));
        }
        Ok(Self(claims))
    }

    /// Returns two paths to a disk's device through the open descriptor: one for programs that assay starts, one for
    /// QEMU, where the descriptor has the same number. The device's own path is not used, because it may refer to
    /// another device by now. `None` for a disk in a file.
    pub(crate) fn paths(&self, disk: &Disk) -> Option<(PathBuf, PathBuf)> {
        let (_, held) = self.0.iter().find(|(name, _)| *name == disk.name)?;
        let inherited = format!("/proc/self/fd/{}", held.file().as_raw_fd());
        Some((held.through(), inherited.into()))
    }

    /// Returns the descriptors for QEMU to inherit.
    pub(crate) fn into_files(self) -> Vec<File> {
        let claims = self.0.into_iter();
        claims.map(|(_, held)| held.into_file()).collect()
    }
}

fn claim(disk: &Disk, device: &Path, unknown: bool) -> Result<Held, LabError> {
    let held = assay_facts::overwrite::device(&LiveHost, device, unknown)
        .map_err(|refused| disk.refuse(format!("{}: {refused}", device.display())))?;
    let size = held.file().seek(SeekFrom::End(0));
    let size = size.map_err(LabError::io(device))?;
    match size < disk.size {
        true => Err(disk.refuse(format!(
            "{} has only {} ({size} bytes)",
            device.display(),
            Bytes(size)
        ))),
        false => Ok(held),
    }
}

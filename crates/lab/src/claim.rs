//! The guard before a block device of the host becomes a guest's disk.

use crate::boot::Options;
use crate::disk::Disk;
use crate::error::LabError;
use assay_host::Live;
use assay_model::Bytes;
use std::fs::File;
use std::io::{Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Claims the block devices of all disks. QEMU inherits the claims, so that nothing else can mount
/// or claim them while the guest lives, whatever becomes of assay.
///
/// # Errors
/// It is not allowed, the device is in use or may be, or it is too small.
pub(crate) fn devices(options: &Options) -> Result<Vec<File>, LabError> {
    let disks = options.disks.iter();
    disks
        .filter_map(|disk| Some((disk, disk.device.as_deref()?)))
        .map(|(disk, device)| match options.destroy_data {
            true => claim(disk, device),
            false => Err(disk.refuse(format!(
                "what {} holds would be lost: --destroy-data allows that",
                device.display()
            ))),
        })
        .collect()
}

fn claim(disk: &Disk, device: &Path) -> Result<File, LabError> {
    assay_facts::device_use(&Live, device).map_err(|in_use| disk.refuse(in_use.to_string()))?;
    let flags = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap_or(0);
    let claim = File::options().read(true).custom_flags(flags).open(device);
    let mut claim = claim.map_err(|error| {
        let device = device.display();
        disk.refuse(format!(
            "{device} was taken by something else just now: {error}"
        ))
    })?;
    let size = claim.seek(SeekFrom::End(0)).map_err(LabError::io(device))?;
    match size < disk.size {
        true => Err(disk.refuse(format!(
            "{} has only {} ({size} bytes)",
            device.display(),
            Bytes(size)
        ))),
        false => Ok(claim),
    }
}

//! Finds the virtual machines on this machine whose QEMU uses an image.

use super::Finder;
use assay_facts::qemu::Storage;
use assay_host::{Host, HostError};
use std::path::Path;

/// Returns the ids of the QEMU processes that have an image or device as a disk, lowest first.
///
/// # Errors
/// The processes cannot be listed.
pub fn find_users(host: &dyn Host, image: &Path) -> Result<Vec<u32>, HostError> {
    let finder = Finder::new(host);
    let real = host.realpath(image)?;
    let mut pids = Vec::new();
    for process in finder.processes()? {
        let uses = process
            .machine
            .disks
            .iter()
            .any(|disk| match &disk.storage {
                Storage::File(path) => {
                    let path = finder.as_qemu_sees(path, Some(process.pid));
                    host.realpath(&path).is_ok_and(|path| path == real)
                }
                _ => false,
            });
        if uses {
            pids.push(process.pid);
        }
    }
    pids.sort_unstable();
    Ok(pids)
}

//! Finds devices of the device mapper in sysfs by their name.

use assay_host::{HostError, HostMut};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// Finds the device node of a mapping.
pub(crate) fn find_mapping(host: &dyn HostMut, name: &str) -> Result<Option<PathBuf>, HostError> {
    const BLOCK: &str = "/sys/block";
    for device in host.list(Path::new(BLOCK))? {
        if !device.as_bytes().starts_with(b"dm-") {
            continue;
        }
        match host.read(&Path::new(BLOCK).join(&device).join("dm/name")) {
            Ok(found) if found.trim_ascii_end() == name.as_bytes() => {
                return Ok(Some(Path::new("/dev").join(device)));
            }
            Ok(_) => {}
            // It was removed in between.
            Err(error) if error.is_absent() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

//! Stores a copy of this program in a place that survives a reboot, an upgrade and the removal of the package.

use super::{OutsideError, sync_dir};
use assay_host::{HostMut, Limits};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

/// Path of the running program. The path is valid even if the program's file was replaced.
const ITSELF: &str = "/proc/self/exe";
const TO_START: Duration = Duration::from_secs(60);

/// Copies this program into a directory of root and checks that the copy starts.
///
/// # Errors
/// The disk is full, or the file system does not allow programs to start (`noexec`).
pub(super) fn of_this_program(
    dir: &Path,
    name: &str,
    host: &dyn HostMut,
) -> Result<(), OutsideError> {
    let path = dir.join(name);
    copy_program(&path).map_err(OutsideError::file(&path))?;
    let argv = [path.as_os_str(), OsStr::new("--version")];
    let limits = Limits { timeout: TO_START };
    let started = host.run(&argv, limits)?;
    match started.success() {
        true => Ok(()),
        false => {
            let reason = format!(
                "a copy of assay does not start from there ({})",
                started.complaint()
            );
            Err(OutsideError::file(&path)(io::Error::other(reason)))
        }
    }
}

fn copy_program(to: &Path) -> io::Result<()> {
    // A hard link suffices if only root can change the file.
    let itself = fs::read_link(ITSELF)?;
    let found = fs::metadata(ITSELF)?;
    let linked = found.uid() == 0 && found.mode() & 0o022 == 0 && fs::hard_link(itself, to).is_ok();
    if !linked {
        fs::copy(ITSELF, to)?;
        fs::set_permissions(to, fs::Permissions::from_mode(0o700))?;
        fs::File::open(to)?.sync_all()?;
    }
    to.parent().map_or(Ok(()), sync_dir)
}

//! A copy of this program where it survives a boot, an upgrade and the removal of the package.

use super::{OutsideError, sync_dir};
use assay_host::{HostMut, Limits};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

/// The program itself, also after its file was replaced.
const ITSELF: &str = "/proc/self/exe";
const TO_START: Duration = Duration::from_secs(60);

/// Puts a copy into a directory of root's, and makes sure that it starts from there.
///
/// # Errors
/// No room, or programs do not start from that file system (`noexec`).
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
    // A further name is as good where nobody but root can change the bytes.
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

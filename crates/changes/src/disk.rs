//! Files of a session, and functions that write them durably.

use crate::error::ChangeError;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

pub(crate) const LOCK: &str = "lock";
pub(crate) const LINES: &str = "journal";
pub(crate) const PREFIX: &str = "assay-";

/// Removes the directory of a session in which nothing is left to roll back. The journal is removed last.
pub(crate) fn forget(dir: &Path) -> Result<(), ChangeError> {
    let forgotten = || -> io::Result<()> {
        for one in fs::read_dir(dir)? {
            let one = one?;
            let name = one.file_name();
            if name == LINES || name == LOCK {
                continue;
            }
            match one.file_type()?.is_dir() {
                true => fs::remove_dir_all(one.path())?,
                false => fs::remove_file(one.path())?,
            }
        }
        sync_dir(dir)?;
        for name in [LINES, LOCK] {
            match fs::remove_file(dir.join(name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        fs::remove_dir(dir)
    };
    match forgotten() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(ChangeError::journal(dir)),
    }
}

pub(crate) fn make_dir(dir: &Path) -> Result<(), ChangeError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(ChangeError::journal(dir))
}

pub(crate) fn new_file(path: &Path) -> io::Result<File> {
    File::options()
        .append(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

/// Returns the kernel's random id of the current boot.
pub(crate) fn read_boot_id() -> Result<String, ChangeError> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let text = fs::read_to_string(path).map_err(ChangeError::journal(path))?;
    Ok(text.trim().to_owned())
}

pub(crate) fn unix_time() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

/// Returns 64 random bits in hex, for the name of a session. The names differ even between machines that share a file
/// system.
pub(crate) fn random_name() -> io::Result<String> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

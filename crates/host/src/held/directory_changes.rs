//! Detects changes of a directory during a search: a file that is renamed at the same time may be found under
//! neither name.

use super::{Directory, fail};
use crate::error::HostError;
use std::time::Duration;

/// Longer than any clock tick: file systems use the time of the last tick as timestamp (CONFIG_HZ is at least
/// 100 on Debian's machines).
const TICK: Duration = Duration::from_millis(25);

/// Calls `look` and returns its result, and whether the directory stayed unchanged. Its owner can set its
/// mtime but not its ctime (inode(7)).
pub(crate) fn read_while_unchanged<T>(
    above: &Directory,
    mut look: impl FnMut() -> Result<T, HostError>,
) -> Result<(T, bool), HostError> {
    let before = read_change_time(above)?;
    std::thread::sleep(TICK);
    let seen = look()?;
    Ok((seen, read_change_time(above)? == before))
}

/// Returns `st_ctime` of a directory in seconds and nanoseconds.
fn read_change_time(above: &Directory) -> Result<(i128, i128), HostError> {
    let found = rustix::fs::fstat(&above.fd).map_err(fail(&above.shown))?;
    Ok((found.st_ctime.into(), found.st_ctime_nsec.into()))
}

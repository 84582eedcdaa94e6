//! Detects whether a directory changed during a search. If a file is renamed during the search, the search may find
//! neither its old nor its new name.

use super::{Directory, fail};
use crate::error::HostError;
use std::time::Duration;

/// Time that is longer than one clock tick. File systems use the time of the last tick as timestamp, so that two
/// changes within a tick get the same timestamp (CONFIG_HZ is at least 100 on Debian).
const TICK: Duration = Duration::from_millis(25);

/// Calls `look`. Returns its result, and whether the directory remained unchanged during the call. Compares the ctime,
/// because the owner of the directory can set the mtime but not the ctime (inode(7)).
pub(crate) fn read_while_unchanged<T>(
    above: &Directory,
    mut look: impl FnMut() -> Result<T, HostError>,
) -> Result<(T, bool), HostError> {
    let before = read_change_time(above)?;
    std::thread::sleep(TICK);
    let seen = look()?;
    Ok((seen, read_change_time(above)? == before))
}

/// Returns the ctime (`st_ctime`) of a directory in seconds and nanoseconds.
fn read_change_time(above: &Directory) -> Result<(i128, i128), HostError> {
    let found = rustix::fs::fstat(&above.fd).map_err(fail(&above.shown))?;
    Ok((found.st_ctime.into(), found.st_ctime_nsec.into()))
}

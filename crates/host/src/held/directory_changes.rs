//! Whether somebody changed the names of a directory while they were looked through: a file that is
//! renamed meanwhile is found under neither name.

use super::{Directory, fail};
use crate::error::HostError;
use std::time::Duration;

/// Longer than any tick: file systems stamp changes with the time of the last one (CONFIG_HZ is 100 at
/// least on the machines that Debian knows).
const TICK: Duration = Duration::from_millis(25);

/// What `look` sees, and whether the directory stayed as it was all the while. Its owner can set the
/// time of its contents, but not that of its change (inode(7)).
pub(crate) fn read_while_unchanged<T>(
    above: &Directory,
    mut look: impl FnMut() -> Result<T, HostError>,
) -> Result<(T, bool), HostError> {
    let before = read_change_time(above)?;
    std::thread::sleep(TICK);
    let seen = look()?;
    Ok((seen, read_change_time(above)? == before))
}

/// `st_ctime` of a directory, in seconds and nanoseconds.
fn read_change_time(above: &Directory) -> Result<(i128, i128), HostError> {
    let found = rustix::fs::fstat(&above.fd).map_err(fail(&above.shown))?;
    Ok((found.st_ctime.into(), found.st_ctime_nsec.into()))
}

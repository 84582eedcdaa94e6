//! Lock files (flock(2)) for operations that only one process at a time may execute. The kernel releases the lock when
//! the process ends for any reason.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Takes the lock; waits if another process has it. Creates the file if it is missing.
///
/// # Errors
/// The file cannot be created or opened, or its file system does not support locks.
pub fn wait(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

/// Takes the lock; returns `None` if another process has it.
///
/// # Errors
/// As [`wait`].
pub fn attempt(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        let held = wait(&path).unwrap();
        assert!(attempt(&path).unwrap().is_none());
        drop(held);
        assert!(attempt(&path).unwrap().is_some());
        assert!(wait(&dir.path().join("not/there")).is_err());
    }
}

//! Access to the files of a configuration, which the caller implements.

use assay_host::{Host, HostError};
use std::ffi::OsString;
use std::path::Path;

/// Reason why a file or directory could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// The file does not exist.
    #[error("it does not exist")]
    Absent,
    /// The file exists or may exist, but cannot be read. The text is the reason.
    #[error("{0}")]
    Unreadable(String),
}

/// Source of the files of a configuration: a machine, a capture of a machine, or a test. Paths are absolute.
pub trait Files {
    /// Returns the contents of a file.
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault>;

    /// Returns the names in a directory in any order, without `.` and `..`.
    ///
    /// # Errors
    /// The directory does not exist or cannot be read.
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, FileFault>;

    /// Returns whether a file or directory with this path exists.
    ///
    /// # Errors
    /// It cannot be determined whether it exists.
    fn exists(&self, path: &Path) -> Result<bool, FileFault>;
}

/// The files of a machine, or of a capture of a machine.
pub struct OfHost<'a>(pub &'a dyn Host);

impl Files for OfHost<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault> {
        self.0.read(path).or_else(|error| {
            // A symbolic link to /dev/null masks a drop-in; it counts as an empty file.
            let target = self.0.realpath(path);
            match target.is_ok_and(|target| target == Path::new("/dev/null")) {
                true => Ok(Vec::new()),
                false => Err(to_fault(error)),
            }
        })
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, FileFault> {
        self.0.list(dir).map_err(to_fault)
    }

    fn exists(&self, path: &Path) -> Result<bool, FileFault> {
        // glob(3) also matches a dangling symbolic link.
        match self.0.link(path) {
            Ok(_) => Ok(true),
            Err(_) => self.0.exists(path).map_err(to_fault),
        }
    }
}

fn to_fault(error: HostError) -> FileFault {
    match error.is_absent() {
        true => FileFault::Absent,
        false => FileFault::Unreadable(error.reason()),
    }
}

//! The files of a configuration, as somebody who may read them gives them to us.

use assay_host::{Host, HostError};
use std::ffi::OsString;
use std::path::Path;

/// Why a file or directory gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileFault {
    /// It is not there.
    #[error("it does not exist")]
    Absent,
    /// It is there, or may be, but cannot be read: the reason.
    #[error("{0}")]
    Unreadable(String),
}

/// Where the files of a configuration come from: a machine, a capture of one, or a test. Paths are
/// absolute.
pub trait Files {
    /// Contents of a file.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault>;

    /// Names in a directory, in any order, without `.` and `..`.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, FileFault>;

    /// Whether there is a file or directory of this name.
    ///
    /// # Errors
    /// It cannot be found out.
    fn exists(&self, path: &Path) -> Result<bool, FileFault>;
}

/// The files of a machine, or of what was captured of one.
pub struct OfHost<'a>(pub &'a dyn Host);

impl Files for OfHost<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, FileFault> {
        self.0.read(path).or_else(|error| {
            // A link to it masks a drop-in: an empty file.
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
        // glob(3) finds a link that leads nowhere too.
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

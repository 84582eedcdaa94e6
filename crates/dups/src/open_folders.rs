//! Keeps folders open from the walk until their files are read. Opening a file relative to an open folder takes one
//! third of the time of resolving the whole path. In a scan of small files, resolving whole paths would take one tenth
//! of the time.

use crate::sys;
use crate::table::{FileId, Files};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;

/// Maximum number of open folders. Each open folder uses about half a KiB of kernel memory.
const MOST: u64 = 65_536;
/// File descriptors reserved for other uses: 32 threads with 64 files each, the index, the output.
const RESERVE: u64 = 4096;

/// Raises the limit of file descriptors to its maximum and returns the limit.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    allowed.unwrap_or(u64::MAX)
}

/// Open folders, by number. A folder that is not kept open is opened again by its path.
#[derive(Default, Debug)]
pub(crate) struct Doors {
    open: Vec<Option<OwnedFd>>,
    left: u64,
}

impl Doors {
    /// Raises the limit of file descriptors, and computes how many of them may be used for folders.
    pub fn new() -> Self {
        Self {
            open: Vec::new(),
            left: raise_descriptor_limit().saturating_sub(RESERVE).min(MOST),
        }
    }

    /// Keeps a folder open if the limit permits.
    pub fn keep(&mut self, dir: u32, fd: OwnedFd) {
        if self.left > 0 {
            self.left -= 1;
            self.open.resize_with(dir as usize, || None);
            self.open.push(Some(fd));
        }
    }

    /// Opens a file for reading without following links.
    pub fn open(&self, files: &Files, id: FileId) -> Result<OwnedFd, Errno> {
        match self.open.get(files.file(id).dir as usize) {
            Some(Some(folder)) => sys::open_file_at(folder, files.name(id)),
            _ => files.roots.open_file(&files.path(id)),
        }
    }
}

//! Folders kept open from the walk until their files are read: opening a file by its name in an open
//! folder costs a third of looking its whole path up, which is a tenth of a scan of small files.

use crate::sys;
use crate::table::{FileId, Files};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;

/// Most folders kept open: each pins about half a KiB of kernel memory.
const MOST: u64 = 65_536;
/// Descriptors left for everything else: 32 threads with 64 files each, the index, the output.
const RESERVE: u64 = 4096;

/// Allows this process as many descriptors as it may allow itself, and says how many those are.
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

/// Open folders by number; the others are reached by their paths.
#[derive(Default, Debug)]
pub(crate) struct Doors {
    open: Vec<Option<OwnedFd>>,
    left: u64,
}

impl Doors {
    /// Allows this process as many descriptors as it may allow itself, and keeps its share of them.
    pub fn new() -> Self {
        Self {
            open: Vec::new(),
            left: raise_descriptor_limit().saturating_sub(RESERVE).min(MOST),
        }
    }

    /// Keeps a folder open, if it may.
    pub fn keep(&mut self, dir: u32, fd: OwnedFd) {
        if self.left > 0 {
            self.left -= 1;
            self.open.resize_with(dir as usize, || None);
            self.open.push(Some(fd));
        }
    }

    /// Opens a file for reading, through no link.
    pub fn open(&self, files: &Files, id: FileId) -> Result<OwnedFd, Errno> {
        match self.open.get(files.file(id).dir as usize) {
            Some(Some(folder)) => sys::open_file_at(folder, files.name(id)),
            _ => files.roots.open_file(&files.path(id)),
        }
    }
}

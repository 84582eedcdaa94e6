//! Writing the files of an export so that a kill leaves no half of one under its name.

use crate::Error;
use crate::error::io;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Makes a folder that the user named, and keeps others from writing to it at the same time.
pub fn hold(dir: &Path) -> Result<OwnedFd, Error> {
    std::fs::create_dir_all(dir).map_err(io(dir, "cannot create"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|errno| io(dir, "cannot open")(errno.into()))?;
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(fd),
        Err(errno) => Err(io(dir, "cannot write while another assay writes there")(
            errno.into(),
        )),
    }
}

/// The name of a machine as part of a file's name: what is neither letter, digit, `-`, `_` nor `.` as `%XX`, and so
/// is what would hide the file from Spark, which passes over names that begin with a dot or an underscore.
#[must_use]
pub fn file_name(machine: &str) -> String {
    let mut out = String::with_capacity(machine.len());
    for (at, byte) in machine.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || at > 0 && matches!(byte, b'-' | b'_' | b'.');
        match plain {
            true => out.push(char::from(byte)),
            false => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// A file under a name that nobody reads, until it is complete.
pub struct Pending {
    hidden: PathBuf,
    path: PathBuf,
}

impl Pending {
    /// Begins a file of this name in a folder. Only its owner can read it: who knows a hash knows whether the
    /// machine has that content.
    pub fn begin(dir: &Path, name: &str) -> Result<(Self, BufWriter<File>), Error> {
        use std::os::unix::fs::OpenOptionsExt as _;
        std::fs::create_dir_all(dir).map_err(io(dir, "cannot create"))?;
        let (path, hidden) = (dir.join(name), dir.join(format!(".{name}.part")));
        // What a kill left.
        match std::fs::remove_file(&hidden) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io(&hidden, "cannot remove")(error));
            }
            _ => {}
        }
        let mut options = File::options();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&hidden);
        let file = file.map_err(io(&hidden, "cannot create"))?;
        let pending = Self { hidden, path };
        Ok((pending, BufWriter::with_capacity(256 * 1024, file)))
    }

    /// Where it will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings it to the disk; it has no name yet.
    pub fn complete(&self, mut out: BufWriter<File>) -> Result<(), Error> {
        let done = out.flush().and_then(|()| out.get_ref().sync_all());
        done.map_err(io(&self.hidden, "cannot write"))
    }

    /// Gives it its name, in place of what had it.
    pub fn publish(self) -> Result<(), Error> {
        std::fs::rename(&self.hidden, &self.path).map_err(io(&self.path, "cannot write"))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Gone already where it was published.
        let _ = std::fs::remove_file(&self.hidden);
    }
}

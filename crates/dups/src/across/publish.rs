//! Writing the files of an export so that a kill leaves no half of one under its name.

use crate::Error;
use crate::error::io_error;
use assay_host::held::Directory;
use assay_host::open_own_directory;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// A folder that the user named for output, held and locked.
pub struct Folder {
    held: Directory,
    shown: PathBuf,
}

impl Folder {
    /// A path into the folder that holds whatever becomes of its name.
    pub fn path(&self) -> PathBuf {
        self.held.through()
    }
}

/// Makes a folder that the user named, and keeps others from writing to it at the same time. Other users may not
/// write in it: they could plant links.
pub fn hold(dir: &Path) -> Result<Folder, Error> {
    let held = open_own_directory(dir).map_err(|error| Error::Usage(error.to_string()))?;
    match rustix::fs::flock(&held, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Folder {
            held,
            shown: dir.to_owned(),
        }),
        Err(errno) => Err(io_error(
            dir,
            "cannot write while another assay writes there",
        )(errno.into())),
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
    shown: PathBuf,
}

impl Pending {
    /// Begins a file of this name in a folder, or in `below` it. Only its owner can read it: who knows a hash knows
    /// whether the machine has that content.
    pub fn begin(
        folder: &Folder,
        below: &str,
        name: &str,
    ) -> Result<(Self, BufWriter<File>), Error> {
        use std::os::unix::fs::OpenOptionsExt as _;
        let (dir, shown) = (folder.path().join(below), folder.shown.join(below));
        std::fs::create_dir_all(&dir).map_err(io_error(&shown, "cannot create"))?;
        let (path, hidden) = (dir.join(name), dir.join(format!(".{name}.part")));
        let shown = shown.join(name);
        // What a kill left.
        match std::fs::remove_file(&hidden) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(io_error(&shown, "cannot remove what was begun of it")(
                    error,
                ));
            }
            _ => {}
        }
        let mut options = File::options();
        let file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&hidden);
        let file = file.map_err(io_error(&shown, "cannot create"))?;
        let pending = Self {
            hidden,
            path,
            shown,
        };
        Ok((pending, BufWriter::with_capacity(256 * 1024, file)))
    }

    /// Where it will be, through the folder that is held.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it will be, for messages.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Brings it to the disk; it has no name yet.
    pub fn complete(&self, mut out: BufWriter<File>) -> Result<(), Error> {
        let done = out.flush().and_then(|()| out.get_ref().sync_all());
        done.map_err(io_error(&self.shown, "cannot write"))
    }

    /// Gives it its name, in place of what had it.
    pub fn publish(self) -> Result<(), Error> {
        std::fs::rename(&self.hidden, &self.path).map_err(io_error(&self.shown, "cannot write"))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // Gone already where it was published.
        let _ = std::fs::remove_file(&self.hidden);
    }
}

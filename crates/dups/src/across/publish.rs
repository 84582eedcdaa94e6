//! Writes the files of an export so that a killed process leaves no incomplete file under a final name.

use crate::Error;
use crate::error::io_error;
use assay_host::held::Directory;
use assay_host::open_own_directory;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// An output folder that is locked against other writers.
pub struct Folder {
    held: Directory,
    shown: PathBuf,
}

impl Folder {
    /// Returns a path into the open folder that stays valid after the folder is renamed.
    pub fn path(&self) -> PathBuf {
        self.held.through()
    }
}

/// Creates an output folder and locks it against other writers. Refuses a folder in which other users may
/// write, because they could plant links.
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

/// Converts a machine's name into a file name. Bytes other than letters, digits, `-`, `_` and `.` become
/// `%XX`, and so does a leading dot or underscore, because Spark ignores such files.
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

/// A file under a hidden name until it is complete.
pub struct Pending {
    hidden: PathBuf,
    path: PathBuf,
    shown: PathBuf,
}

impl Pending {
    /// Creates a file in a folder, or in its subfolder `below`. Only the owner can read the file, because a hash
    /// reveals whether the machine has a content.
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
        // Remove a file that a killed process left.
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

    /// Returns the final path, through the open folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the final path as the user specified it, for messages.
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Syncs the file to disk, but does not give it its final name.
    pub fn complete(&self, mut out: BufWriter<File>) -> Result<(), Error> {
        let done = out.flush().and_then(|()| out.get_ref().sync_all());
        done.map_err(io_error(&self.shown, "cannot write"))
    }

    /// Gives the file its final name and replaces an older file.
    pub fn publish(self) -> Result<(), Error> {
        std::fs::rename(&self.hidden, &self.path).map_err(io_error(&self.shown, "cannot write"))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // After publishing, the hidden name no longer exists.
        let _ = std::fs::remove_file(&self.hidden);
    }
}

//! Access to a machine: reads files, lists directories and runs commands. A host is the live machine, a captured
//! directory, recorded answers, or a faulty host for tests.
//!
//! All other code uses `&dyn Host`, so that the same code examines this machine, a directory that somebody sent, and a
//! test fixture.
#![allow(
    clippy::disallowed_methods,
    reason = "this crate is the door to the machine"
)]

mod bundle;
mod capture;
mod command;
pub mod directory_owner;
mod error;
mod faulty;
pub mod held;
mod inode_flags;
pub mod kstat;
mod live;
pub mod lockdir;
pub mod lockfile;
pub mod loops;
pub mod netns;
mod output;
pub mod path_json;
mod permissions;
mod persistent_identity;
pub mod process;
pub mod receive_low_mark;
mod recorded;
mod recording;
mod remove;
mod replace;
pub mod resolve;
mod root;
pub mod seal;
pub mod socket;
mod succeed;
pub mod tcp_info;
mod write;

pub use bundle::{Bundle, Captured, MAX_BUNDLE, open};
pub use capture::{CaptureError, IndexError};
pub use error::HostError;
pub use faulty::Faulty;
pub use inode_flags::Mark;
pub use live::LiveHost;
pub use output::{
    OutputFile, OutputFolder, check_links, is_same_file, open_own_directory, write_output,
};
pub use permissions::Permissions;
pub use persistent_identity::{KnownFile, Whereabouts};
pub use recorded::Recorded;
pub use recording::Recording;
pub use replace::{FileVersion, Times};
pub use root::Root;
pub use succeed::{CommandFailure, run_successfully};
pub use write::{HostMut, ProcessId};

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum bytes read from one file or command; more is an error.
pub const MAX_BYTES: usize = 32 << 20;

/// Number of bytes that [`Host::scan`] repeats from the end of one chunk at the start of the next, so that a text that
/// spans two chunks is found.
pub const REPEATED: usize = 256;

/// Type of a file system entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    Regular,
    /// A block device node.
    BlockDevice,
    /// Anything else: character device, socket, pipe.
    Other,
}

/// Number of a device, as in `/sys/dev/block/MAJOR:MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: the device of the driver.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Result of `stat` for a path; symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Type of the entry.
    pub kind: FileKind,
    /// Size in bytes; 0 for a block device.
    pub size: u64,
    /// Device that contains the file; anonymous (major 0) on btrfs, ZFS and tmpfs.
    pub dev: DeviceNumber,
    /// For a device node: its device number.
    pub rdev: DeviceNumber,
}

/// Result of `statfs` for the file system of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatFs {
    /// Size of the file system in bytes.
    pub total: u64,
    /// Free bytes for an unprivileged writer.
    pub available: u64,
}

/// Limits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Time after which the command and its children are killed.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
        }
    }
}

/// Result of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status; 128 + signal if a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl CommandOutput {
    /// Returns whether the exit status is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status == 0
    }

    /// Returns standard output as text; invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the error message for users: the first line of standard error with a colon (some tools print
    /// their name and version first), or the exit status. Possible secrets are removed.
    #[must_use]
    pub fn complaint(&self) -> String {
        let stderr = String::from_utf8_lossy(&self.stderr);
        let lines = || {
            stderr
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
        };
        match lines()
            .find(|line| line.contains(':'))
            .or_else(|| lines().next())
        {
            Some(line) => {
                let line = assay_model::secrets::withhold_in_text(line);
                format!("exit status {}: {line}", self.status)
            }
            None => format!("exit status {}", self.status),
        }
    }
}

/// A machine, or a capture of one. Paths are absolute.
pub trait Host: Send + Sync {
    /// Reads a regular file, which includes everything in /proc and /sys.
    ///
    /// # Errors
    /// The file does not exist, is not readable, is not a regular file, or exceeds [`MAX_BYTES`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError>;

    /// Reads a regular file of any size in chunks, each of which repeats the last [`REPEATED`] bytes of the previous
    /// chunk. Stops when `look` returns that it has seen enough.
    ///
    /// # Errors
    /// The file does not exist, is not readable, or is not a regular file.
    fn scan(
        &self,
        path: &Path,
        look: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        let _ = look(&self.read(path)?);
        Ok(())
    }

    /// Reads a short file whose contents the kernel makes at each read, such as `/proc/PID/stat`, with as few system
    /// calls as possible.
    ///
    /// # Errors
    /// As [`Host::read`].
    fn read_short(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.read(path)
    }

    /// Opens a file whose contents the kernel makes at each read from its start, to read it many times; `None` where
    /// files cannot be kept open.
    fn open_to_read_again(&self, _path: &Path) -> Option<std::fs::File> {
        None
    }

    /// Returns the names in a directory, sorted.
    ///
    /// # Errors
    /// The directory does not exist, is not readable, or is not a directory.
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError>;

    /// Returns the target of a symbolic link (readlink), unresolved.
    ///
    /// # Errors
    /// The path does not exist, or is not a link.
    fn link(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// Resolves all symbolic links of a path.
    ///
    /// # Errors
    /// The path does not exist, or a component is not accessible.
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// Returns type, size and device numbers; follows symbolic links.
    ///
    /// # Errors
    /// The path does not exist, or is not permitted.
    fn stat(&self, path: &Path) -> Result<Stat, HostError>;

    /// Returns the modification time of a file or directory in seconds since 1970; `None` if the path is missing, or if
    /// the host is neither a machine nor a tree of files.
    fn modified(&self, _path: &Path) -> Option<i64> {
        None
    }

    /// Returns the permission bits of a file in a tree of files; `None` for other hosts, on which the command `stat`
    /// returns them.
    fn tree_mode(&self, _path: &Path) -> Option<u32> {
        None
    }

    /// Returns size and free space of the file system of a path.
    ///
    /// # Errors
    /// The path does not exist, is not permitted, or was not captured.
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError>;

    /// Opens a block device exclusively (`O_EXCL`) for reading and closes it again. The kernel refuses with
    /// EBUSY if somebody claimed it (open(2), "O_EXCL … block device").
    ///
    /// # Errors
    /// The device is claimed (EBUSY), is not permitted, or this is not a live machine.
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError>;

    /// Runs a command: without a shell and standard input, with `LC_ALL=C`, killed with its children after the
    /// time limit. `argv[0]` is looked up with [`Host::which`]. A nonzero exit status is not an error.
    ///
    /// # Errors
    /// The command is not installed, cannot be started, takes too long, prints too much, or was not captured.
    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError>;

    /// Finds a command in `PATH`, else in the usual sbin directories.
    fn which(&self, name: &OsStr) -> Option<PathBuf>;

    /// Like [`Host::read`], as text; invalid UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// As [`Host::read`].
    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        let bytes = self.read(path)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Returns whether a path exists.
    ///
    /// # Errors
    /// This cannot be determined.
    fn exists(&self, path: &Path) -> Result<bool, HostError> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

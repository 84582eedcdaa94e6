//! Access to a machine: reads files, lists directories and runs commands. A host is the live machine, a captured
//! directory, a machine in memory, or a faulty host for tests.
//!
//! All other code uses `&dyn Host`. The same code therefore examines this machine, a directory from another machine,
//! and a test fixture.
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
mod new_files;
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

/// Maximum number of bytes that are read from one file or command. More bytes are an error.
pub const MAX_BYTES: usize = 32 << 20;

/// Number of bytes from the end of one chunk that [`Host::scan`] repeats at the start of the next chunk. A text that
/// spans two chunks is therefore found.
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
    /// Any other type, such as a character device, socket or pipe.
    Other,
}

/// Number of a device, as in `/sys/dev/block/MAJOR:MINOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Major number, which identifies the driver.
    pub major: u32,
    /// Minor number, which identifies the device among those of the driver.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// Result of `stat` for a path. Symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// Type of the entry.
    pub kind: FileKind,
    /// Size in bytes; 0 for a block device.
    pub size: u64,
    /// Device that contains the file. It is anonymous (major number 0) on btrfs, ZFS and tmpfs.
    pub dev: DeviceNumber,
    /// Device number of a device node; only meaningful for device nodes.
    pub rdev: DeviceNumber,
}

/// Result of `statfs` for the file system of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatFs {
    /// Size of the file system in bytes.
    pub total: u64,
    /// Number of free bytes for an unprivileged user.
    pub available: u64,
}

/// Limits within which a command must end.
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

/// Result of a command that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status. It is 128 + signal number if a signal ended the command.
    pub status: i32,
    /// Bytes of the standard output.
    pub stdout: Vec<u8>,
    /// Bytes of the standard error.
    pub stderr: Vec<u8>,
}

impl CommandOutput {
    /// Returns whether the exit status is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status == 0
    }

    /// Returns standard output as text. Invalid UTF-8 becomes U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns the error message for users. It is the first line of standard error with a colon, because some tools
    /// print their name and version first. If there is none, it is the exit status. Possible secrets are removed.
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

/// A machine, or a capture of a machine. All paths are absolute.
pub trait Host: Send + Sync {
    /// Reads a regular file. All files in /proc and /sys count as regular files.
    ///
    /// # Errors
    /// The file does not exist, is not readable, is not a regular file, or exceeds [`MAX_BYTES`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError>;

    /// Reads a regular file of any size in chunks. Each chunk repeats the last [`REPEATED`] bytes of the previous
    /// chunk. Stops when `look` returns that no further chunk is needed.
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

    /// Reads a short file that the kernel generates at each read, such as `/proc/PID/stat`, with few system calls.
    ///
    /// # Errors
    /// As [`Host::read`].
    fn read_short(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.read(path)
    }

    /// Opens a file that the kernel generates at each read, so that the caller can read it many times. Returns `None`
    /// if this host cannot keep files open.
    fn open_to_read_again(&self, _path: &Path) -> Option<std::fs::File> {
        None
    }

    /// Returns the sorted names in a directory.
    ///
    /// # Errors
    /// The directory does not exist, is not readable, or is not a directory.
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError>;

    /// Returns the target of a symbolic link as it is stored (readlink).
    ///
    /// # Errors
    /// The path does not exist, or is not a link.
    fn link(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// Resolves all symbolic links of a path.
    ///
    /// # Errors
    /// The path does not exist, or a component is not accessible.
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// Returns type, size and device numbers. Follows symbolic links.
    ///
    /// # Errors
    /// The path does not exist, or access is not permitted.
    fn stat(&self, path: &Path) -> Result<Stat, HostError>;

    /// Returns the modification time of a file or directory in seconds since 1970. Returns `None` if the path is
    /// missing, or if the host is neither a machine nor a tree of files.
    fn modified(&self, _path: &Path) -> Option<i64> {
        None
    }

    /// Returns the permission bits of a file in a tree of files. Returns `None` for other hosts, on which the command
    /// `stat` prints the permission bits.
    fn tree_mode(&self, _path: &Path) -> Option<u32> {
        None
    }

    /// Returns the number of the account that owns a file in a tree of files. Returns `None` for other hosts.
    fn tree_owner(&self, _path: &Path) -> Option<u32> {
        None
    }

    /// Returns the size and the free space of the file system that contains a path.
    ///
    /// # Errors
    /// The path does not exist, access is not permitted, or it was not captured.
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError>;

    /// Opens a block device exclusively (`O_EXCL`) for reading, and closes it again. The kernel returns EBUSY if
    /// another program has claimed the device (open(2), "O_EXCL … block device").
    ///
    /// # Errors
    /// The device is claimed (EBUSY), access is not permitted, or this is not a live machine.
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError>;

    /// Runs a command without a shell and without standard input, with `LC_ALL=C`. After the time limit, kills the
    /// command and its children. [`Host::which`] resolves `argv[0]`. A nonzero exit status is not an error.
    ///
    /// # Errors
    /// The command is not installed, cannot be started, takes too long, prints too much, or was not captured.
    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError>;

    /// Finds a command in `PATH`, or else in the usual sbin directories.
    fn which(&self, name: &OsStr) -> Option<PathBuf>;

    /// Reads a file like [`Host::read`], as text. Invalid UTF-8 becomes U+FFFD.
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
    /// It cannot be determined whether the path exists.
    fn exists(&self, path: &Path) -> Result<bool, HostError> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

//! The only door to a machine: read, list, look, run a command; live, from a captured directory,
//! recorded or faulty for tests.
//!
//! Everything else takes a `&dyn Host`, so that what is true of this machine, of a directory that
//! somebody sent, and of a fixture is found out by the same code.
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
mod persistent_identity;
pub mod process;
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

/// Most bytes that are read from one file or one command; more is an error, not a long wait.
pub const MAX_BYTES: usize = 32 << 20;

/// How many bytes of a piece come again in the next one, so that what lies across both is found
/// ([`Host::scan`]).
pub const REPEATED: usize = 256;

/// What an entry of a file system is.
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

/// Number of a device, as `/sys/dev/block/MAJOR:MINOR` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceNumber {
    /// Major number: the driver.
    pub major: u32,
    /// Minor number: which device of the driver.
    pub minor: u32,
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// What `stat` says about a path, symbolic links followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stat {
    /// What it is.
    pub kind: FileKind,
    /// Size in bytes; 0 for a block device.
    pub size: u64,
    /// The device the file lies on; anonymous (major 0) on btrfs, ZFS and tmpfs.
    pub dev: DeviceNumber,
    /// For a device node: which device it stands for.
    pub rdev: DeviceNumber,
}

/// What `statfs` says about the file system of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatFs {
    /// Size of the file system in bytes.
    pub total: u64,
    /// Free bytes for an unprivileged writer.
    pub available: u64,
}

/// How long a command may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// After this the command and its children are killed.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
        }
    }
}

/// How a command ended and what it wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandOutput {
    /// Exit status; 128 + signal when a signal ended it.
    pub status: i32,
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
}

impl CommandOutput {
    /// Whether the exit status is 0.
    #[must_use]
    pub fn success(&self) -> bool {
        self.status == 0
    }

    /// Standard output as text; bytes that are not UTF-8 become U+FFFD.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// What standard error says, or the exit status: what to tell a user. That is its first line
    /// with a colon, because some tools print their name and version first. What looks like a secret is
    /// left out.
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

/// A machine, or what was captured of one. Paths are absolute.
pub trait Host: Send + Sync {
    /// Contents of a regular file (as everything in /proc and /sys is).
    ///
    /// # Errors
    /// Not there, not readable, not a regular file, or longer than [`MAX_BYTES`].
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError>;

    /// Shows a regular file of any size in pieces, each of which repeats the last [`REPEATED`] bytes of the one before it,
    /// until `look` has seen enough.
    ///
    /// # Errors
    /// Not there, not readable, or not a regular file.
    fn scan(
        &self,
        path: &Path,
        look: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        let _ = look(&self.read(path)?);
        Ok(())
    }

    /// Names in a directory, sorted.
    ///
    /// # Errors
    /// Not there, not readable, or not a directory.
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError>;

    /// What a symbolic link says (readlink), not resolved.
    ///
    /// # Errors
    /// Not there, or not a link.
    fn link(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// The path with all symbolic links resolved.
    ///
    /// # Errors
    /// Not there, or a component cannot be looked at.
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError>;

    /// Kind, size and device numbers, symbolic links followed.
    ///
    /// # Errors
    /// Not there, or not allowed.
    fn stat(&self, path: &Path) -> Result<Stat, HostError>;

    /// Size and free space of the file system a path lies on.
    ///
    /// # Errors
    /// Not there, not allowed, or not captured.
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError>;

    /// Opens a block device exclusively (`O_EXCL`) for reading and closes it again: the kernel
    /// refuses with EBUSY when anyone claimed it (open(2), "O_EXCL … block device").
    ///
    /// # Errors
    /// Claimed (EBUSY), not allowed, or not a live machine.
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError>;

    /// Runs a command: no shell, no standard input, `LC_ALL=C`, killed with its children after
    /// the timeout. `argv[0]` is looked up with [`Host::which`]. An exit status other than 0 is
    /// no error here.
    ///
    /// # Errors
    /// Not installed, could not be started, took too long, wrote too much, or not captured.
    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError>;

    /// Where a command is installed: in `PATH`, else in the usual sbin directories.
    fn which(&self, name: &OsStr) -> Option<PathBuf>;

    /// [`Host::read`] as text; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// As [`Host::read`].
    fn read_text(&self, path: &Path) -> Result<String, HostError> {
        let bytes = self.read(path)?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// Whether a path leads to something.
    ///
    /// # Errors
    /// It cannot be found out.
    fn exists(&self, path: &Path) -> Result<bool, HostError> {
        match self.stat(path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

//! A machine in memory that returns recorded answers, for tests.

use crate::capture::{Command, Fault, Index, Node, copied_stat, resolve};
use crate::error::HostError;
use crate::held::{Identity, Removed};
use crate::replace::{FileVersion, Times};
use crate::{
    CommandOutput, DeviceNumber, FileKind, Host, HostMut, KnownFile, Limits, ProcessId, Stat,
    StatFs,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// A machine in memory, which consists of files, links, commands and errors. Directories exist if files below them
/// exist.
#[derive(Debug, Default)]
pub struct Recorded {
    files: Mutex<Files>,
    links: BTreeMap<PathBuf, PathBuf>,
    index: Index,
}

impl Recorded {
    /// Creates a machine without files and commands.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file with its contents.
    #[must_use]
    pub fn file(self, path: &str, contents: impl Into<Vec<u8>>) -> Self {
        self.files().insert(path.into(), contents.into());
        self
    }

    /// Adds a symbolic link to `target`.
    #[must_use]
    pub fn linked(mut self, path: &str, target: &str) -> Self {
        self.links.insert(path.into(), target.into());
        self
    }

    /// Adds a block device node with this number.
    #[must_use]
    pub fn device(mut self, path: &str, major: u32, minor: u32) -> Self {
        let rdev = DeviceNumber { major, minor };
        let stat = Stat {
            rdev,
            ..copied_stat(FileKind::BlockDevice, 0)
        };
        self.index.stat.insert(path.into(), stat);
        self
    }

    /// Adds a command with its output. It exits with status 0.
    #[must_use]
    pub fn command(self, argv: &[&str], stdout: &str) -> Self {
        self.command_with(argv, 0, stdout, "")
    }

    /// Adds a command with its exit status and outputs.
    #[must_use]
    pub fn command_with(mut self, argv: &[&str], status: i32, stdout: &str, stderr: &str) -> Self {
        self.index.commands.push(Command {
            argv: argv.iter().map(|&word| word.into()).collect(),
            status: Some(status),
            stdout: stdout.into(),
            stderr: stderr.into(),
            error: String::new(),
            lines: Vec::new(),
        });
        self
    }

    /// Makes every access to a path fail with "Permission denied".
    #[must_use]
    pub fn denied(mut self, path: &str) -> Self {
        let fault = Fault {
            errno: Some(rustix::io::Errno::ACCESS.raw_os_error()),
            reason: "Permission denied".into(),
        };
        self.index.errors.insert(path.into(), fault);
        self
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self, dir: &Path) -> BTreeSet<OsString> {
        let stat = self.index.stat.keys().map(Path::new);
        let files = self.files();
        let paths = files
            .keys()
            .chain(self.links.keys())
            .map(PathBuf::as_path)
            .chain(stat);
        paths
            .filter_map(|path| {
                Some(
                    path.strip_prefix(dir)
                        .ok()?
                        .components()
                        .next()?
                        .as_os_str()
                        .to_owned(),
                )
            })
            .collect()
    }

    fn resolve(&self, path: &Path, follow_last: bool) -> Result<PathBuf, HostError> {
        if let Some(fault) = self.index.fault(path) {
            return Err(fault);
        }
        resolve(path, follow_last, |candidate| {
            Ok(match self.links.get(candidate) {
                Some(target) => Node::Link(target.clone()),
                None if self.there(candidate) => Node::Here,
                None => Node::Missing,
            })
        })
    }

    fn there(&self, path: &Path) -> bool {
        self.files().contains_key(path)
            || self.index.stat.contains_key(&*path.to_string_lossy())
            || !self.names(path).is_empty()
    }
}

impl Host for Recorded {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        let real = self.resolve(path, true)?;
        let found = self.files().get(&real).cloned();
        found.ok_or_else(|| HostError::path(path, "not a regular file"))
    }
    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        Ok(self.names(&self.resolve(dir, true)?).into_iter().collect())
    }
    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        let real = self.resolve(path, false)?;
        self.links
            .get(&real)
            .cloned()
            .ok_or_else(|| HostError::path(path, "not a symbolic link"))
    }
    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.resolve(path, true)
    }
    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        let real = self.resolve(path, true)?;
        if let Some(stat) = self.index.stat.get(&*real.to_string_lossy()) {
            return Ok(*stat);
        }
        Ok(match self.files().get(&real) {
            Some(bytes) => copied_stat(FileKind::Regular, bytes.len() as u64),
            None => copied_stat(FileKind::Directory, 0),
        })
    }
    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.resolve(path, true)?;
        Ok(StatFs {
            total: 0,
            available: 0,
        })
    }
    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.resolve(path, false).map(drop)
    }
    fn run(&self, argv: &[&OsStr], _limits: Limits) -> Result<CommandOutput, HostError> {
        let name = argv.first().copied().unwrap_or_default();
        match self.index.knows(name) {
            true => self.index.run(argv),
            false => Err(HostError::NoCommand {
                name: name.to_string_lossy().into_owned(),
            }),
        }
    }
    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.index
            .knows(name)
            .then(|| Path::new("/usr/bin").join(name))
    }
}

/// Files in memory behave like regular files: they accept every value. There are no processes.
impl HostMut for Recorded {
    fn check_writable(&self, path: &Path) -> Result<(), HostError> {
        self.read(path).map(drop)
    }
    fn write_in_place(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        let real = self.resolve(path, true)?;
        match self.files().get_mut(&real) {
            Some(contents) => *contents = bytes.to_vec(),
            None => return Err(HostError::path(path, "not a regular file")),
        }
        Ok(())
    }
    fn create_like(
        &self,
        path: &Path,
        like: &FileVersion,
        bytes: &[u8],
        _times: Option<Times>,
    ) -> Result<(), HostError> {
        self.read(&like.path)?;
        match self.exists(path)? {
            true => Err(HostError::path(path, "File exists")),
            false => {
                self.files().insert(path.to_owned(), bytes.to_vec());
                Ok(())
            }
        }
    }
    fn create_new(&self, path: &Path, bytes: &[u8]) -> Result<(), HostError> {
        match self.exists(path)? {
            true => Err(HostError::path(path, "File exists")),
            false => {
                self.files().insert(path.to_owned(), bytes.to_vec());
                Ok(())
            }
        }
    }
    fn rename_new(&self, from: &Path, to: &Path) -> Result<(), HostError> {
        let bytes = self.read(from)?;
        self.create_new(to, &bytes)?;
        self.files().remove(from);
        Ok(())
    }
    fn exchange(&self, from: &Path, seen: &FileVersion) -> Result<(), HostError> {
        let bytes = self.read(from)?;
        let mut files = self.files();
        files.remove(from);
        files.insert(seen.path.clone(), bytes);
        Ok(())
    }
    fn remove_file(&self, path: &Path) -> Result<(), HostError> {
        let removed = self.files().remove(path);
        removed.map(drop).ok_or_else(|| HostError::NotFound {
            path: path.to_owned(),
        })
    }
    fn remove_tree(&self, dir: &Path) -> Result<(), HostError> {
        self.resolve(dir, false)?;
        self.files().retain(|path, _| !path.starts_with(dir));
        Ok(())
    }
    fn remove_made(&self, path: &Path, _known: Option<&KnownFile>) -> Result<Removed, HostError> {
        let before = self.files().len();
        self.files().retain(|file, _| !file.starts_with(path));
        Ok(match self.files().len() == before {
            true => Removed::Absent,
            false => Removed::Gone,
        })
    }
    fn loops(&self, _backing: Identity) -> Result<Vec<PathBuf>, HostError> {
        Ok(Vec::new())
    }
    fn detach_loop(&self, _node: &Path, _backing: Identity) -> Result<(), HostError> {
        Ok(())
    }
    fn kill(&self, _process: ProcessId) -> Result<(), HostError> {
        Ok(())
    }
}

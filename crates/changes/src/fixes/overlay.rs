//! A machine with some of its files changed, in memory only.

use assay_host::{CommandOutput, Host, HostError, Limits, Stat, StatFs};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Programs that are asked how they read their own configuration. Of files in memory they know nothing, so
/// what they would say is of another configuration.
const READERS: [&str; 1] = ["sshd"];

/// Another machine, but for the contents of some files. What commands say is what they say there: they
/// do not see these files.
pub struct Overlay<'a> {
    below: &'a dyn Host,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl<'a> Overlay<'a> {
    /// Nothing is changed yet.
    #[must_use]
    pub fn new(below: &'a dyn Host) -> Self {
        Self {
            below,
            files: BTreeMap::new(),
        }
    }

    /// Lets a file, links resolved, have other contents.
    pub fn write(&mut self, path: PathBuf, bytes: Vec<u8>) {
        self.files.insert(path, bytes);
    }
}

impl Overlay<'_> {
    /// The other contents of a file.
    fn changed(&self, path: &Path) -> Option<&[u8]> {
        if self.files.is_empty() {
            return None;
        }
        let path = self.below.realpath(path).ok()?;
        self.files.get(&path).map(Vec::as_slice)
    }
}

impl Host for Overlay<'_> {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        match self.changed(path) {
            Some(bytes) => Ok(bytes.to_owned()),
            None => self.below.read(path),
        }
    }

    fn scan(
        &self,
        path: &Path,
        look: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), HostError> {
        match self.changed(path) {
            Some(bytes) => {
                let _ = look(bytes);
                Ok(())
            }
            None => self.below.scan(path, look),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.below.list(dir)
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.below.link(path)
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.below.realpath(path)
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        self.below.stat(path)
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.below.statfs(path)
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        self.below.open_exclusive(path)
    }

    fn run(&self, argv: &[&OsStr], limits: Limits) -> Result<CommandOutput, HostError> {
        let name = argv.first().copied().unwrap_or_default();
        if !self.files.is_empty() && READERS.iter().any(|reader| name == *reader) {
            return Err(HostError::NoCommand {
                name: name.to_string_lossy().into_owned(),
            });
        }
        self.below.run(argv, limits)
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.below.which(name)
    }
}

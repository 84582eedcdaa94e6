//! A machine with the contents of some files replaced in memory.

use assay_host::{CommandOutput, Host, HostError, Limits, Stat, StatFs};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Programs that print their own configuration. On the in-memory copy they are not run, because they would read the
/// files on disk.
const READERS: [&str; 1] = ["sshd"];

/// A machine (`host`) with the contents of some files replaced in memory. Commands run on the real machine and do not
/// see the replaced contents.
pub struct Overlay<'a> {
    below: &'a dyn Host,
    files: BTreeMap<PathBuf, Vec<u8>>,
    modes: BTreeMap<PathBuf, u32>,
}

impl<'a> Overlay<'a> {
    /// Creates an overlay without changes.
    #[must_use]
    pub fn new(below: &'a dyn Host) -> Self {
        Self {
            below,
            files: BTreeMap::new(),
            modes: BTreeMap::new(),
        }
    }

    /// Replaces the contents of a file. `path` must not contain symbolic links.
    pub fn write(&mut self, path: PathBuf, bytes: Vec<u8>) {
        self.files.insert(path, bytes);
    }

    /// Replaces the permission bits of a file. `path` must not contain symbolic links.
    pub fn set_mode(&mut self, path: PathBuf, mode: u32) {
        self.modes.insert(path, mode);
    }
}

impl Overlay<'_> {
    /// Returns the replaced contents of a file; `None` if the file is unchanged.
    fn changed(&self, path: &Path) -> Option<&[u8]> {
        if self.files.is_empty() {
            return None;
        }
        let path = self.below.realpath(path).ok()?;
        self.files.get(&path).map(Vec::as_slice)
    }

    /// Returns the replaced permission bits of a file; `None` if they are unchanged.
    fn changed_mode(&self, path: &Path) -> Option<u32> {
        if self.modes.is_empty() {
            return None;
        }
        let path = self.below.realpath(path).ok()?;
        self.modes.get(&path).copied()
    }

    /// Replaces the permission bits in the output of stat(1) by the planned bits.
    fn with_modes(&self, argv: &[&OsStr], mut output: CommandOutput) -> CommandOutput {
        let Some(format) = argv
            .iter()
            .find_map(|word| word.to_str()?.strip_prefix("--format="))
        else {
            return output;
        };
        if !(format == "%a" || format.starts_with("%a ")) {
            return output;
        }
        let only = argv.last().map(Path::new);
        let text = output.text();
        let lines = text.lines().map(|line| {
            let (mode, rest) = line.split_once(' ').unwrap_or((line, ""));
            let path = match format {
                "%a %n" => Some(Path::new(rest)),
                _ => only,
            };
            let new = path.and_then(|path| self.changed_mode(path));
            let mode = new.map_or(mode.to_owned(), |new| format!("{new:o}"));
            format!("{mode} {rest}").trim_end().to_owned() + "\n"
        });
        output.stdout = lines.collect::<String>().into_bytes();
        output
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

    fn modified(&self, path: &Path) -> Option<i64> {
        self.below.modified(path)
    }

    fn tree_mode(&self, path: &Path) -> Option<u32> {
        let below = self.below.tree_mode(path)?;
        Some(self.changed_mode(path).unwrap_or(below))
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
        let output = self.below.run(argv, limits)?;
        Ok(match name == "stat" && !self.modes.is_empty() {
            true => self.with_modes(argv, output),
            false => output,
        })
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.below.which(name)
    }
}

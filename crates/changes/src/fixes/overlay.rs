//! A machine with the contents of some files replaced in memory.

use crate::fixes::properties::{Properties, with_properties};
use assay_host::{CommandOutput, DeviceNumber, FileKind, Host, HostError, Limits, Stat, StatFs};
use std::collections::{BTreeMap, BTreeSet};
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
    properties: Properties,
    /// New files, which are among `files`, and their new directories.
    created: BTreeSet<PathBuf>,
    /// Files and directories that seem not to exist.
    hidden: BTreeSet<PathBuf>,
}

impl<'a> Overlay<'a> {
    /// Creates an overlay without changes.
    #[must_use]
    pub fn new(below: &'a dyn Host) -> Self {
        Self {
            below,
            files: BTreeMap::new(),
            modes: BTreeMap::new(),
            properties: Properties::new(),
            created: BTreeSet::new(),
            hidden: BTreeSet::new(),
        }
    }

    /// Replaces the contents of a file. `path` must not contain symbolic links.
    pub fn write(&mut self, path: PathBuf, bytes: Vec<u8>) {
        self.files.insert(path, bytes);
    }

    /// Adds a file and its missing directories. The paths must not contain symbolic links.
    pub fn create(&mut self, path: PathBuf, bytes: Vec<u8>, missing: &[PathBuf]) {
        self.created.extend(missing.iter().cloned());
        self.created.insert(path.clone());
        self.files.insert(path, bytes);
    }

    /// Hides a file, and those of `directories` that contain nothing else. The paths must not contain symbolic links.
    pub fn hide(&mut self, path: PathBuf, directories: &[PathBuf]) {
        self.hidden.insert(path);
        for dir in directories.iter().rev() {
            let names = self.below.list(dir).unwrap_or_default();
            if !names
                .iter()
                .all(|name| self.hidden.contains(&dir.join(name)))
            {
                break;
            }
            self.hidden.insert(dir.clone());
        }
    }

    /// Replaces the permission bits of a file. `path` must not contain symbolic links.
    pub fn set_mode(&mut self, path: PathBuf, mode: u32) {
        self.modes.insert(path, mode);
    }

    /// Replaces the value of a property of a ZFS dataset.
    pub fn set_property(&mut self, dataset: String, property: String, value: String) {
        self.properties.insert((dataset, property), value);
    }
}

impl Overlay<'_> {
    /// Resolves the symbolic links of a path, also of a path that is created.
    fn resolve(&self, path: &Path) -> Result<PathBuf, HostError> {
        let real = match self.below.realpath(path) {
            Err(error) if error.is_absent() => {
                return self.resolve_created(path).ok_or(error);
            }
            other => other?,
        };
        match self.hidden.contains(&real) {
            true => Err(HostError::NotFound {
                path: path.to_owned(),
            }),
            false => Ok(real),
        }
    }

    /// Resolves the symbolic links of a path that is created; `None` for any other path.
    fn resolve_created(&self, path: &Path) -> Option<PathBuf> {
        let name = path.file_name()?;
        let mut created = self.created.iter();
        created.find(|one| one.file_name() == Some(name))?;
        let real = self.resolve(path.parent()?).ok()?.join(name);
        self.created.contains(&real).then_some(real)
    }

    /// Fails for a hidden path.
    fn refuse_hidden(&self, path: &Path) -> Result<(), HostError> {
        match self.hidden.is_empty() {
            true => Ok(()),
            false => match self.resolve(path) {
                Err(error @ HostError::NotFound { .. }) => Err(error),
                _ => Ok(()),
            },
        }
    }

    /// Returns the resolved path of a created file or directory; `None` for any other path.
    fn find_created(&self, path: &Path) -> Option<PathBuf> {
        if self.created.is_empty() {
            return None;
        }
        let real = self.resolve(path).ok()?;
        self.created.contains(&real).then_some(real)
    }

    /// Returns the replaced contents of a file; `None` if the file is unchanged.
    fn changed(&self, path: &Path) -> Option<&[u8]> {
        if self.files.is_empty() {
            return None;
        }
        let path = self.resolve(path).ok()?;
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
            None => {
                self.refuse_hidden(path)?;
                self.below.read(path)
            }
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
            None => {
                self.refuse_hidden(path)?;
                self.below.scan(path, look)
            }
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        if self.created.is_empty() && self.hidden.is_empty() {
            return self.below.list(dir);
        }
        let real = self.resolve(dir)?;
        let mut names: BTreeSet<OsString> = match self.created.contains(&real) {
            true => BTreeSet::new(),
            false => self.below.list(&real)?.into_iter().collect(),
        };
        names.retain(|name| !self.hidden.contains(&real.join(name)));
        let added = self
            .created
            .iter()
            .filter(|path| path.parent() == Some(real.as_path()));
        names.extend(added.filter_map(|path| path.file_name().map(OsStr::to_owned)));
        Ok(names.into_iter().collect())
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.refuse_hidden(path)?;
        self.below.link(path)
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        self.resolve(path)
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        let Some(real) = self.find_created(path) else {
            self.refuse_hidden(path)?;
            return self.below.stat(path);
        };
        let none = DeviceNumber { major: 0, minor: 0 };
        let (kind, size) = match self.files.get(&real) {
            Some(bytes) => (FileKind::Regular, bytes.len() as u64),
            None => (FileKind::Directory, 0),
        };
        Ok(Stat {
            kind,
            size,
            dev: none,
            rdev: none,
        })
    }

    fn modified(&self, path: &Path) -> Option<i64> {
        self.below.modified(path)
    }

    fn tree_mode(&self, path: &Path) -> Option<u32> {
        if let Some(real) = self.find_created(path) {
            // Only a tree of files answers at all.
            self.below
                .tree_mode(real.ancestors().find(|one| !self.created.contains(*one))?)?;
            return Some(match self.files.contains_key(&real) {
                true => 0o644,
                false => 0o755,
            });
        }
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
        Ok(match name.to_str() {
            Some("stat") if !self.modes.is_empty() => self.with_modes(argv, output),
            Some("zfs") if !self.properties.is_empty() => {
                with_properties(&self.properties, argv, output)
            }
            _ => output,
        })
    }

    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        self.below.which(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_host::Recorded;

    #[test]
    fn a_created_file_is_there_and_a_hidden_one_is_not() {
        let host = Recorded::new()
            .file("/etc/a.d/one", "1\n")
            .linked("/etc/way", "/etc/a.d");
        let (file, missing) = (
            "/etc/a.d/x/y/new",
            ["/etc/a.d/x", "/etc/a.d/x/y"].map(PathBuf::from),
        );
        let mut with = Overlay::new(&host);
        with.create(file.into(), b"2\n".to_vec(), &missing);
        for path in [file, "/etc/way/x/y/new"] {
            let path = Path::new(path);
            assert_eq!(with.read(path).unwrap(), b"2\n");
            assert_eq!(with.realpath(path).unwrap(), Path::new(file));
            assert_eq!(with.stat(path).unwrap().kind, FileKind::Regular);
            assert!(with.exists(path).unwrap());
        }
        assert_eq!(with.list(Path::new("/etc/way")).unwrap(), ["one", "x"]);
        assert_eq!(with.list(&missing[1]).unwrap(), ["new"]);
        assert_eq!(with.stat(&missing[0]).unwrap().kind, FileKind::Directory);
        assert!(!with.exists(Path::new("/etc/a.d/other/new")).unwrap());

        let host = host.file(file, "2\n");
        let mut without = Overlay::new(&host);
        without.hide(file.into(), &missing);
        for path in [file, "/etc/way/x/y/new", "/etc/a.d/x/y", "/etc/a.d/x"] {
            let path = Path::new(path);
            assert!(!without.exists(path).unwrap(), "{}", path.display());
            assert!(without.read(path).unwrap_err().is_absent());
        }
        assert_eq!(without.list(Path::new("/etc/a.d")).unwrap(), ["one"]);
        assert_eq!(without.read(Path::new("/etc/way/one")).unwrap(), b"1\n");

        let host = host.file("/etc/a.d/x/theirs", "");
        let mut without = Overlay::new(&host);
        without.hide(file.into(), &missing);
        assert_eq!(without.list(&missing[0]).unwrap(), ["theirs"]);
    }
}

//! Reads a captured machine from one stream: the output of the collector script (`assay facts --script`), or a packed
//! capture directory.
//!
//! The sender may be hostile. The stream is read into memory within limits, its paths refer only to objects in the
//! bundle, and nothing is unpacked to disk.

mod decode;
mod pattern;

use crate::capture::{CaptureError, INDEX, Index, Node, copied_stat, resolve};
use crate::error::HostError;
use crate::{CommandOutput, FileKind, Host, Limits, Root, Stat, StatFs};
pub use decode::MAX_BUNDLE;
use pattern::Patterns;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A captured machine in memory.
#[derive(Debug, Default)]
pub struct Bundle {
    entries: HashMap<PathBuf, Entry>,
    /// Names in each directory. A directory without an entry of its own exists if the bundle contains paths below it.
    names: HashMap<PathBuf, BTreeSet<OsString>>,
    /// Total number of bytes of the names in `names`.
    named: usize,
    /// Parent directories of paths for which `stat` was called. They exist, but nothing else is known about them.
    above: HashSet<PathBuf>,
    /// For each path, the other paths that refer to the same object through links in the bundle.
    aliases: BTreeMap<PathBuf, Vec<PathBuf>>,
    index: Index,
    asked: Patterns,
}

/// Maximum total bytes of directory names. A few long paths can imply very many directories. A real machine has a few
/// million bytes.
const MAX_NAMED: usize = 64 << 20;

#[derive(Debug, PartialEq, Eq)]
enum Entry {
    File(Vec<u8>),
    Link(PathBuf),
    Directory,
}

/// A captured machine, with the version of assay that captured it.
pub struct Captured {
    /// The captured machine, for reading.
    pub host: Box<dyn Host>,
    /// Version of assay whose collector wrote the capture; `None` for captures that no collector wrote.
    pub collector: Option<String>,
}

/// Opens a captured machine: a directory, a bundle in a file, or, for `-`, a bundle on standard input.
///
/// # Errors
/// The input is not a captured machine, or cannot be read.
pub fn open(path: &Path) -> Result<Captured, CaptureError> {
    let io = |source| CaptureError::Io {
        path: path.to_owned(),
        source,
    };
    if path == Path::new("-") {
        return Ok(Bundle::read(std::io::stdin().lock(), "standard input")?.into());
    }
    if path.metadata().map_err(io)?.is_dir() {
        return Ok(Captured {
            host: Box::new(Root::open(path)?),
            collector: None,
        });
    }
    let file = std::fs::File::open(path).map_err(io)?;
    let name = path.display().to_string();
    Ok(Bundle::read(file, &name)?.into())
}

impl From<Bundle> for Captured {
    fn from(bundle: Bundle) -> Self {
        Self {
            collector: bundle.collector().map(str::to_owned),
            host: Box::new(bundle),
        }
    }
}

impl Bundle {
    /// Reads a bundle. `name` is the name of the bundle for messages.
    ///
    /// # Errors
    /// The input is not a bundle, is damaged or truncated, its collector failed, or it exceeds [`MAX_BUNDLE`].
    pub fn read(from: impl Read, name: &str) -> Result<Self, CaptureError> {
        let fail = |source: Box<dyn Error + Send + Sync>| CaptureError::Bundle {
            name: name.to_owned(),
            source,
        };
        let mut bundle = Self::default();
        decode::entries(from, |path, entry| bundle.insert(path, entry))
            .map_err(|reason| fail(reason.into()))?;
        let index = Path::new("/").join(INDEX);
        if let Some(Entry::File(bytes)) = bundle.entries.remove(&index) {
            bundle.index = Index::parse(&bytes).map_err(|error| fail(error.into()))?;
        } else if !bundle.entries.is_empty() {
            // The collector writes the index last, and a packed capture always has one.
            let why = format!("it is cut off: {INDEX}, its last part, is missing");
            return Err(fail(why.into()));
        }
        if let Some(first) = bundle.index.troubles.first() {
            let why = format!(
                "the collector failed on that machine, so something may be missing: {}",
                first.escape_debug()
            );
            return Err(fail(why.into()));
        }
        if let Some(names) = bundle.names.get_mut(Path::new("/")) {
            names.remove(OsStr::new(INDEX));
        }
        bundle.asked = Patterns::new(&bundle.index.asked);
        let above = bundle.index.stat.keys().map(Path::new);
        let above = above.flat_map(|path| path.ancestors().skip(1));
        bundle.above = above.map(Path::to_owned).collect();
        bundle.note_aliases();
        Ok(bundle)
    }

    /// Returns the version of assay whose collector wrote the bundle; `None` for a packed capture.
    #[must_use]
    pub fn collector(&self) -> Option<&str> {
        self.index.collector.as_deref()
    }

    /// Adds an entry. If a path occurs several times, the last entry applies. Entries below a file or a link are never
    /// found.
    fn insert(&mut self, path: PathBuf, entry: Entry) -> Result<(), String> {
        let mut below = path.as_path();
        while let (Some(parent), Some(name)) = (below.parent(), below.file_name()) {
            if !self.names.contains_key(parent) {
                self.named += parent.as_os_str().len();
            }
            if self.named > MAX_NAMED {
                return Err("its directories have more names than any machine has".to_owned());
            }
            let names = self.names.entry(parent.to_owned()).or_default();
            if !names.insert(name.to_owned()) {
                break;
            }
            below = parent;
        }
        // An entry that repeats only the name does not replace content.
        let told = matches!(&entry, Entry::Directory);
        if !told || !self.entries.contains_key(&path) {
            self.entries.insert(path, entry);
        }
        Ok(())
    }

    fn note_aliases(&mut self) {
        for (path, entry) in &self.entries {
            if let Entry::Link(target) = entry {
                let list = self.aliases.entry(target.clone()).or_default();
                if list.len() < 8 {
                    list.push(path.clone());
                }
            }
        }
    }

    fn resolve(&self, path: &Path, follow_last: bool) -> Result<PathBuf, HostError> {
        let looked = self.locate(path, follow_last)?;
        match self.index.fault(&looked) {
            Some(fault) => Err(with_path(fault, path)),
            None => Ok(looked),
        }
    }

    /// Resolves a path to the object in the bundle, whether or not the content of the object is readable.
    fn locate(&self, path: &Path, follow_last: bool) -> Result<PathBuf, HostError> {
        resolve(path, follow_last, |candidate| {
            Ok(match self.entries.get(candidate) {
                Some(Entry::Link(target)) => Node::Link(target.clone()),
                Some(_) => Node::Here,
                None if self.names.contains_key(candidate) => Node::Here,
                None if self.above.contains(candidate) => Node::Here,
                None if self.index.stat.contains_key(&*candidate.to_string_lossy()) => Node::Here,
                None => return Err(self.missing(path, candidate)),
            })
        })
    }

    /// Returns the error for a path that is not in the bundle. The path is absent on the machine only if the collector
    /// searched it; otherwise it is unknown.
    fn missing(&self, path: &Path, candidate: &Path) -> HostError {
        let rest = rest_of(path, candidate);
        let known = |at: &Path| self.asked.is_empty() || self.asked.covers(&at.join(&rest));
        let other_names = || {
            candidate.ancestors().any(|above| {
                let names = self.aliases.get(above);
                names.into_iter().flatten().any(|name| {
                    candidate
                        .strip_prefix(above)
                        .is_ok_and(|below| self.asked.covers(&name.join(below).join(&rest)))
                })
            })
        };
        match known(candidate) || self.asked.covers(path) || other_names() {
            true => HostError::NotFound {
                path: path.to_owned(),
            },
            false => HostError::NotCaptured {
                what: path.display().to_string(),
            },
        }
    }

    fn faultless(&self, path: &Path) -> Result<(), HostError> {
        self.index.fault(path).map_or(Ok(()), Err)
    }
}

/// Returns the part of a path after `candidate`. Returns an empty path if a link led outside of `candidate`.
fn rest_of(path: &Path, candidate: &Path) -> PathBuf {
    path.strip_prefix(candidate).unwrap_or(Path::new("")).into()
}

fn with_path(error: HostError, path: &Path) -> HostError {
    match error {
        HostError::Path { errno, reason, .. } => HostError::Path {
            path: path.to_owned(),
            errno,
            reason,
        },
        other => other,
    }
}

impl Host for Bundle {
    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.faultless(path)?;
        let real = self.resolve(path, true)?;
        match self.entries.get(&real) {
            Some(Entry::File(bytes)) => Ok(bytes.clone()),
            _ => Err(HostError::path(path, "not a regular file")),
        }
    }

    fn list(&self, dir: &Path) -> Result<Vec<OsString>, HostError> {
        self.faultless(dir)?;
        let real = self.resolve(dir, true)?;
        if let Some(names) = self.names.get(&real) {
            return Ok(names.iter().cloned().collect());
        }
        match self.entries.get(&real) {
            Some(Entry::Directory) => Ok(Vec::new()),
            _ => Err(HostError::NotFound {
                path: dir.to_owned(),
            }),
        }
    }

    fn link(&self, path: &Path) -> Result<PathBuf, HostError> {
        match self.entries.get(&self.resolve(path, false)?) {
            Some(Entry::Link(target)) => Ok(target.clone()),
            _ => Err(HostError::path(path, "not a symbolic link")),
        }
    }

    fn realpath(&self, path: &Path) -> Result<PathBuf, HostError> {
        // Of a file that was seen but not read, such as a key, the path is known.
        if self.index.stat.contains_key(&*path.to_string_lossy()) {
            return self.locate(path, true);
        }
        self.faultless(path)?;
        self.resolve(path, true)
    }

    fn stat(&self, path: &Path) -> Result<Stat, HostError> {
        let found = |path: &Path| self.index.stat.get(&*path.to_string_lossy()).copied();
        if let Some(stat) = found(path) {
            return Ok(stat);
        }
        // An unreadable file exists.
        let real = match self.resolve(path, true) {
            Err(HostError::Path { .. }) if self.entries.contains_key(path) => path.to_owned(),
            other => other?,
        };
        if let Some(stat) = found(&real) {
            return Ok(stat);
        }
        Ok(match self.entries.get(&real) {
            Some(Entry::File(bytes)) => copied_stat(FileKind::Regular, bytes.len() as u64),
            _ => copied_stat(FileKind::Directory, 0),
        })
    }

    fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        self.index.statfs(path)
    }

    fn open_exclusive(&self, path: &Path) -> Result<(), HostError> {
        Index::open_exclusive(path)
    }

    fn run(&self, argv: &[&OsStr], _limits: Limits) -> Result<CommandOutput, HostError> {
        let name = argv.first().copied().unwrap_or_default();
        match self.which(name) {
            Some(_) => self.index.run(argv),
            None => Err(HostError::NoCommand {
                name: name.to_string_lossy().into_owned(),
            }),
        }
    }

    /// Finds a command. A command without an answer counts as not installed if the collector searched it.
    fn which(&self, name: &OsStr) -> Option<PathBuf> {
        let asked = self.index.tools.iter().any(|tool| **tool == *name);
        let complete = self.index.collector.is_none();
        (self.index.knows(name) || !(asked || complete)).then(|| PathBuf::from(name))
    }
}

#[cfg(test)]
mod tests;

//! Index of a capture: answers of commands, unreadable paths, and results of `stat`. The index is the file [`INDEX`] at
//! the top of the capture directory. It is optional, because a directory that contains only files is a capture, too.

use crate::{CommandOutput, FileKind, HostError, Stat, StatFs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Name of the index file.
pub(crate) const INDEX: &str = "assay-capture.json";

/// Version of the index format that this program writes.
pub(crate) const SCHEMA: u32 = 1;

/// Reasons why a capture cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The directory or a file in it cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error that the kernel reported.
        source: std::io::Error,
    },
    /// The index is invalid.
    #[error("{}: {source}", path.display())]
    Index {
        /// Path of the index file.
        path: PathBuf,
        /// Why the index is invalid.
        source: IndexError,
    },
    /// The index or the directory cannot be read.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A bundle is invalid.
    #[error("{name}: {source}")]
    Bundle {
        /// Name of the bundle.
        name: String,
        /// Why the bundle is invalid.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A capture would overwrite existing files.
    #[error("{}: the directory is not empty; name a new one", path.display())]
    NotEmpty {
        /// The directory, which is not empty.
        path: PathBuf,
    },
}

/// Reasons why an index cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The index is not valid JSON, or cannot be written as JSON.
    #[error("not an index of a capture: {0}")]
    Form(#[from] serde_json::Error),
    /// A later version of assay wrote the index; contains the version of the format.
    #[error("schema {0} is unknown to this version of assay, which reads schema {SCHEMA}")]
    Schema(u32),
}

/// The content of an index file.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    /// Version of the index, [`SCHEMA`].
    pub(crate) schema: u32,
    /// Commands that were run on the machine, with their answers.
    #[serde(default)]
    pub(crate) commands: Vec<Command>,
    /// Unreadable paths, each with the reason.
    #[serde(default)]
    pub(crate) errors: BTreeMap<String, Fault>,
    /// Results of `stat` by path.
    #[serde(default)]
    pub(crate) stat: BTreeMap<String, Stat>,
    /// Results of `statfs` by path.
    #[serde(default)]
    pub(crate) statfs: BTreeMap<String, StatFs>,
    /// Version of assay of the collector; `None` if the capture does not come from a collector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) collector: Option<String>,
    /// Path patterns that the collector read. A path is known to be absent only if a pattern matches it. An empty list
    /// means that all paths were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<String>,
    /// Commands that the collector searched. A command without an answer is not installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
    /// Error messages of the shell and of tools while the collector ran. They may mean that data are missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<String>,
    /// Paths and command lines whose content was dropped completely or in part, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) withheld: BTreeMap<String, String>,
}

/// A command and its answer. Without `status`, the command has no answer, and the entry contains the reason.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Command {
    pub(crate) argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<i32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) stdout: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) stderr: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) error: String,
    /// Lines of the standard output, as an alternative to `stdout`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<String>,
}

/// Reason why a path could not be read.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fault {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) errno: Option<i32>,
    pub(crate) reason: String,
}

impl Index {
    pub(crate) fn fault(&self, path: &Path) -> Option<HostError> {
        let fault = self.errors.get(&*path.to_string_lossy())?;
        Some(HostError::Path {
            path: path.to_owned(),
            errno: fault.errno,
            reason: fault.reason.clone(),
        })
    }

    /// Returns the total size and the free space of a file system.
    pub(crate) fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        let found = self.statfs.get(&*path.to_string_lossy()).copied();
        found.ok_or_else(|| HostError::NotCaptured {
            what: format!("free space of {}", path.display()),
        })
    }

    /// Always fails, because a capture does not record whether a device is in use.
    pub(crate) fn open_exclusive(path: &Path) -> Result<(), HostError> {
        Err(HostError::NotCaptured {
            what: format!("whether {} is open", path.display()),
        })
    }

    /// Returns the answer of a command.
    pub(crate) fn run(&self, argv: &[&OsStr]) -> Result<CommandOutput, HostError> {
        let line = crate::error::command_line(argv);
        let same = |command: &&Command| {
            command.argv.len() == argv.len()
                && command
                    .argv
                    .iter()
                    .zip(argv)
                    .all(|(ours, given)| **ours == *given.to_string_lossy())
        };
        let Some(found) = self.commands.iter().find(same) else {
            return Err(HostError::NotCaptured { what: line });
        };
        match found.status {
            None => Err(HostError::Command {
                argv: line,
                reason: found.error.clone(),
            }),
            Some(status) => Ok(CommandOutput {
                status,
                stdout: match found.lines.is_empty() {
                    true => found.stdout.clone().into_bytes(),
                    false => (found.lines.join("\n") + "\n").into_bytes(),
                },
                stderr: found.stderr.clone().into_bytes(),
            }),
        }
    }

    /// Parses an index. Invalid UTF-8 is replaced.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, IndexError> {
        let index: Self = serde_json::from_str(&String::from_utf8_lossy(bytes))?;
        match index.schema == SCHEMA {
            true => Ok(index),
            false => Err(IndexError::Schema(index.schema)),
        }
    }

    /// Returns whether the capture contains an answer of this command.
    pub(crate) fn knows(&self, name: &OsStr) -> bool {
        self.commands
            .iter()
            .any(|command| command.argv.first().is_some_and(|first| **first == *name))
    }
}

/// Object at a path, which the callback of [`resolve`] returns.
pub(crate) enum Node {
    /// No object exists.
    Missing,
    /// An object other than a link.
    Here,
    /// A symbolic link with its target.
    Link(PathBuf),
}

/// Maximum number of links in one path, the same as the kernel's MAXSYMLINKS.
const MAX_LINKS: usize = 40;

/// Resolves the symbolic links of `path` inside a tree with root `/`. Absolute links start at this root, and `..` does
/// not go above it, so that no link leads outside of the tree.
pub(crate) fn resolve(
    path: &Path,
    follow_last: bool,
    mut look: impl FnMut(&Path) -> Result<Node, HostError>,
) -> Result<PathBuf, HostError> {
    let mut pending: VecDeque<OsString> = path_components(path).collect();
    let mut out = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = pending.pop_front() {
        if name == ".." {
            out.pop();
            continue;
        }
        let candidate = out.join(&name);
        match look(&candidate)? {
            Node::Missing => {
                return Err(HostError::NotFound {
                    path: path.to_owned(),
                });
            }
            Node::Link(target) if follow_last || !pending.is_empty() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(HostError::path(path, "too many levels of symbolic links"));
                }
                if target.is_absolute() {
                    out = PathBuf::from("/");
                }
                for name in path_components(&target).rev() {
                    pending.push_front(name);
                }
            }
            Node::Here | Node::Link(_) => out = candidate,
        }
    }
    Ok(out)
}

fn path_components(path: &Path) -> impl DoubleEndedIterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Returns the `Stat` of a copied file. The device numbers of a copy say nothing about the machine, so they are not
/// used.
pub(crate) fn copied_stat(kind: FileKind, size: u64) -> Stat {
    let none = crate::DeviceNumber { major: 0, minor: 0 };
    Stat {
        kind,
        size,
        dev: none,
        rdev: none,
    }
}

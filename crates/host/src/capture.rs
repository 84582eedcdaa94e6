//! What a captured directory holds besides copies of files: answers of commands, what could not be
//! read, and what `stat` said. It lies in [`INDEX`] at the top of the directory and is optional: a
//! directory with nothing but files is a capture too.

use crate::{CommandOutput, FileKind, HostError, Stat, StatFs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Name of the index file.
pub(crate) const INDEX: &str = "assay-capture.json";

/// Version of the index.
pub(crate) const SCHEMA: u32 = 1;

/// Why a directory cannot be used as a capture, or a capture not be written.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The directory or a file in it.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The index is not what it should be.
    #[error("{}: {source}", path.display())]
    Index {
        /// The index file.
        path: PathBuf,
        /// What is wrong with it.
        source: IndexError,
    },
    /// The index cannot be read, or the directory cannot be used.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A bundle is not what it should be.
    #[error("{name}: {source}")]
    Bundle {
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A capture would overwrite something.
    #[error("{}: the directory is not empty; name a new one", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
}

/// What is wrong with an index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It is none, or cannot be written as JSON.
    #[error("not an index of a capture: {0}")]
    Form(#[from] serde_json::Error),
    /// A later version of assay wrote it.
    #[error("schema {0} is unknown to this version of assay, which reads schema {SCHEMA}")]
    Schema(u32),
}

/// The index.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Index {
    /// [`SCHEMA`].
    pub(crate) schema: u32,
    /// Commands and their answers.
    #[serde(default)]
    pub(crate) commands: Vec<Command>,
    /// Paths that could not be read, and why.
    #[serde(default)]
    pub(crate) errors: BTreeMap<String, Fault>,
    /// What `stat` said.
    #[serde(default)]
    pub(crate) stat: BTreeMap<String, Stat>,
    /// What `statfs` said.
    #[serde(default)]
    pub(crate) statfs: BTreeMap<String, StatFs>,
    /// For a bundle of the collector: the version of assay that the collector is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) collector: Option<String>,
    /// Patterns of what was asked for; nothing else is known not to be there. Empty when everything was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) asked: Vec<String>,
    /// Commands of which is known whether they are installed: those with an answer are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<String>,
    /// What the shell and the tools of the collector complained about: something may be missing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<String>,
    /// What was read and not kept, or not whole: paths and command lines, and what happened to them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) withheld: BTreeMap<String, String>,
}

/// A command and its answer; without `status`, why it gave none.
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
    /// Standard output line by line, instead of `stdout`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) lines: Vec<String>,
}

/// Why something could not be read.
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

    /// The sizes of a file system.
    pub(crate) fn statfs(&self, path: &Path) -> Result<StatFs, HostError> {
        let found = self.statfs.get(&*path.to_string_lossy()).copied();
        found.ok_or_else(|| HostError::NotCaptured {
            what: format!("free space of {}", path.display()),
        })
    }

    /// Whether a file was in use is in no capture.
    pub(crate) fn open_exclusive(path: &Path) -> Result<(), HostError> {
        Err(HostError::NotCaptured {
            what: format!("whether {} is open", path.display()),
        })
    }

    /// The answer of a command.
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

    /// Reads an index; text that is not UTF-8 is understood as far as it goes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, IndexError> {
        let index: Self = serde_json::from_str(&String::from_utf8_lossy(bytes))?;
        match index.schema == SCHEMA {
            true => Ok(index),
            false => Err(IndexError::Schema(index.schema)),
        }
    }

    /// Whether any answer of this command was captured.
    pub(crate) fn knows(&self, name: &OsStr) -> bool {
        self.commands
            .iter()
            .any(|command| command.argv.first().is_some_and(|first| **first == *name))
    }
}

/// What stands at a path, for [`resolve`].
pub(crate) enum Node {
    /// Nothing.
    Missing,
    /// Something that is no link.
    Here,
    /// A symbolic link, and what it says.
    Link(PathBuf),
}

/// Most links followed in one path, as the kernel's MAXSYMLINKS.
const MAX_LINKS: usize = 40;

/// Resolves the symbolic links of `path` inside a tree whose root is `/`: absolute links start at
/// that root and `..` stops there, so that no link leads out of it.
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

/// `Stat` of something that was copied: its device numbers are not those of the machine.
pub(crate) fn copied_stat(kind: FileKind, size: u64) -> Stat {
    let none = crate::DeviceNumber { major: 0, minor: 0 };
    Stat {
        kind,
        size,
        dev: none,
        rdev: none,
    }
}

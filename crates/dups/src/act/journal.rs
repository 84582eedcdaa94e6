//! What acting writes down before and after each step, so that any moment is a good one to be
//! killed: one file a run, one JSON object a line, forced to disk before names are touched.

use super::Step;
use super::attributes::Attributes;
use super::copy::Content;
use crate::error::io;
use crate::roots::Anchor;
use crate::{Error, own};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// A step is about to be done.
    Intent {
        /// Number within the journal.
        number: u64,
        /// What.
        step: Box<Step>,
        /// Name used in the folder of the file acted on while the step is under way.
        #[serde(with = "super::bytes")]
        aside: Vec<u8>,
        /// The folder to which files are moved.
        #[serde(default)]
        target: Option<Anchor>,
    },
    /// What is known of the file just before it is removed.
    Found {
        /// Number of the intent.
        number: u64,
        /// See [`Found`].
        found: Found,
    },
    /// What became of it.
    Outcome {
        /// Number of the intent.
        number: u64,
        /// See [`State`].
        state: State,
    },
}

/// What became of a step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// The process ended before it was known; recovery finds out.
    Open,
    /// Done.
    Done,
    /// Not done, everything as before.
    Untouched,
    /// Done and later taken back.
    Undone,
}

/// What a file is that is about to be removed: enough to make it again from any copy of its content.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Found {
    /// Its content.
    pub content: Content,
    /// What it has beside that.
    pub attributes: Attributes,
    /// Whether it is moved to another file system, as a copy.
    pub across: bool,
}

/// A step as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What was to be done.
    pub step: Step,
    /// The name used meanwhile.
    pub aside: Vec<u8>,
    /// The folder to which files are moved.
    pub target: Option<Arc<Anchor>>,
    /// What was known of the file just before it was removed; nothing when that did not happen.
    pub found: Option<Found>,
    /// What became of it.
    pub state: State,
}

/// A journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    next: u64,
}

impl Journal {
    /// Folder of the journals of an index.
    pub fn folder(index: &Path) -> PathBuf {
        let mut name = index.as_os_str().to_owned();
        name.push("-journal.d");
        name.into()
    }

    /// Begins a new journal.
    ///
    /// # Errors
    /// When it cannot be created.
    pub fn begin(index: &Path) -> Result<Self, Error> {
        let folder = Self::folder(index);
        match std::fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            made => made.map_err(io(&folder, "cannot create"))?,
        }
        let held = own::folder(&folder)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut stamp = crate::sys::now();
        loop {
            let name = format!("{stamp}.jsonl");
            let path = folder.join(&name);
            match rustix::fs::openat(&held, name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    rustix::fs::fsync(&held)
                        .map_err(|errno| io(&folder, "cannot sync")(errno.into()))?;
                    return Ok(Self {
                        path,
                        file: file.into(),
                        next: 0,
                    });
                }
                Err(Errno::EXIST) => stamp += 1,
                Err(errno) => return Err(io(path, "cannot create")(errno.into())),
            }
        }
    }

    /// Opens a journal to note what became of its steps.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reopen(path: &Path) -> Result<Self, Error> {
        let mut file = own::file_in_folder(path, OFlags::WRONLY | OFlags::APPEND)?;
        // A line torn by a crash must not swallow the next one.
        file.write_all(b"\n").map_err(io(path, "cannot write"))?;
        Ok(Self {
            path: path.into(),
            file,
            next: u64::MAX,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes intents down and forces them to disk; returns the number of the first.
    ///
    /// # Errors
    /// When they cannot be written; nothing may be done then.
    pub fn intend<'a>(
        &mut self,
        steps: impl IntoIterator<Item = (&'a Step, &'a [u8], Option<&'a Anchor>)>,
    ) -> Result<u64, Error> {
        let first = self.next;
        let mut text = Vec::new();
        for (step, aside, target) in steps {
            let line = Line::Intent {
                number: self.next,
                step: Box::new(step.clone()),
                aside: aside.to_vec(),
                target: target.cloned(),
            };
            serde_json::to_writer(&mut text, &line).map_err(|e| Error::Output(e.into()))?;
            text.push(b'\n');
            self.next += 1;
        }
        self.file
            .write_all(&text)
            .and_then(|()| self.file.sync_data())
            .map_err(io(&self.path, "cannot write"))?;
        Ok(first)
    }

    /// Writes down what is about to be removed, and forces it to disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing may be removed then.
    pub fn note(&mut self, list: impl IntoIterator<Item = (u64, Found)>) -> Result<(), Error> {
        let mut text = Vec::new();
        for (number, found) in list {
            let line = Line::Found { number, found };
            serde_json::to_writer(&mut text, &line).map_err(|e| Error::Output(e.into()))?;
            text.push(b'\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        self.file
            .write_all(&text)
            .and_then(|()| self.file.sync_data())
            .map_err(io(&self.path, "cannot write"))
    }

    /// Writes down what became of steps.
    ///
    /// # Errors
    /// When it cannot be written; recovery will find out by looking.
    pub fn conclude(
        &mut self,
        outcomes: impl IntoIterator<Item = (u64, State)>,
    ) -> Result<(), Error> {
        let mut text = Vec::new();
        for (number, state) in outcomes {
            let line = Line::Outcome { number, state };
            serde_json::to_writer(&mut text, &line).map_err(|e| Error::Output(e.into()))?;
            text.push(b'\n');
        }
        self.file
            .write_all(&text)
            .map_err(io(&self.path, "cannot write"))
    }

    /// Reads a journal. Lines torn by a crash are passed over: what they would have announced was
    /// not begun, what they would have concluded is found out by looking.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(path: &Path) -> Result<BTreeMap<u64, Entry>, Error> {
        let mut text = Vec::new();
        own::file_in_folder(path, OFlags::RDONLY)?
            .read_to_end(&mut text)
            .map_err(io(path, "cannot read"))?;
        let mut entries = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Intent {
                    number,
                    step,
                    aside,
                    target,
                }) => {
                    entries.insert(
                        number,
                        Entry {
                            step: *step,
                            aside,
                            target: target.map(Arc::new),
                            found: None,
                            state: State::Open,
                        },
                    );
                }
                Ok(Line::Found { number, found }) => {
                    if let Some(entry) = entries.get_mut(&number) {
                        entry.found = Some(found);
                    }
                }
                Ok(Line::Outcome { number, state }) => {
                    if let Some(entry) = entries.get_mut(&number) {
                        entry.state = state;
                    }
                }
                Err(_) => {}
            }
        }
        Ok(entries)
    }

    /// The journals of an index, oldest first.
    ///
    /// # Errors
    /// When their folder cannot be listed.
    pub fn all(index: &Path) -> Result<Vec<PathBuf>, Error> {
        let folder = Self::folder(index);
        let mut found: Vec<PathBuf> = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io(folder, "cannot list")(error)),
            Ok(list) => list
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.extension().is_some_and(|one| one == "jsonl"))
                .collect(),
        };
        found.sort();
        Ok(found)
    }
}

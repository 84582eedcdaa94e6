//! What acting writes down before and after each step, so that any moment is a good one to be
//! killed: one file a run, one JSON object a line, forced to disk before names are touched.

use super::Step;
use crate::Error;
use crate::error::io;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

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

/// A step as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What was to be done.
    pub step: Step,
    /// The name used meanwhile.
    pub aside: Vec<u8>,
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
        std::fs::create_dir_all(&folder).map_err(io(&folder, "cannot create"))?;
        let mut stamp = crate::sys::now();
        loop {
            let path = folder.join(format!("{stamp}.jsonl"));
            match File::options().append(true).create_new(true).open(&path) {
                Ok(file) => {
                    let handle = File::open(&folder).map_err(io(&folder, "cannot open"))?;
                    handle.sync_all().map_err(io(&folder, "cannot sync"))?;
                    return Ok(Self {
                        path,
                        file,
                        next: 0,
                    });
                }
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => stamp += 1,
                Err(error) => return Err(io(path, "cannot create")(error)),
            }
        }
    }

    /// Opens a journal to note what became of its steps.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reopen(path: &Path) -> Result<Self, Error> {
        let mut file = File::options()
            .append(true)
            .open(path)
            .map_err(io(path, "cannot open"))?;
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
        steps: impl IntoIterator<Item = (&'a Step, &'a [u8])>,
    ) -> Result<u64, Error> {
        let first = self.next;
        let mut text = Vec::new();
        for (step, aside) in steps {
            let line = Line::Intent {
                number: self.next,
                step: Box::new(step.clone()),
                aside: aside.to_vec(),
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
        let text = std::fs::read(path).map_err(io(path, "cannot read"))?;
        let mut entries = BTreeMap::new();
        for line in text.split(|byte| *byte == b'\n') {
            match serde_json::from_slice(line) {
                Ok(Line::Intent {
                    number,
                    step,
                    aside,
                }) => {
                    entries.insert(
                        number,
                        Entry {
                            step: *step,
                            aside,
                            state: State::Open,
                        },
                    );
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

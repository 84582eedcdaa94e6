//! What acting writes down before and after each step, so that any moment is a good one to be
//! killed: one file a run, one JSON object a line, forced to disk before names are touched.

mod read;

pub use read::Loaded;

use super::ActStep;
use super::attributes::Attributes;
use super::copy::Content;
use crate::error::io_error;
use crate::roots::Anchor;
use crate::{Error, protected_files};
use assay_host::seal::seal;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
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
        step: Box<ActStep>,
        /// Name used in the folder of the file acted on while the step is under way.
        #[serde(with = "crate::name_json")]
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
        found: RemovedFile,
    },
    /// What became of it.
    Outcome {
        /// Number of the intent.
        number: u64,
        /// See [`State`].
        state: StepState,
    },
    /// Undo of the run begins.
    Undoing {},
    /// The run is over, or what a crash left of it is set right.
    End {
        /// So many damaged lines were told of.
        told: u64,
    },
}

/// What became of a step.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
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
pub struct RemovedFile {
    /// Its content.
    pub content: Content,
    /// What it has beside that.
    pub attributes: Attributes,
    /// Whether it is moved to another file system, as a copy.
    pub across: bool,
}

/// A step as the journal knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalStep {
    /// What was to be done.
    pub step: ActStep,
    /// The name used meanwhile.
    pub aside: Vec<u8>,
    /// The folder to which files are moved.
    pub target: Option<Arc<Anchor>>,
    /// What was known of the file just before it was removed; nothing when that did not happen.
    pub found: Option<RemovedFile>,
    /// What became of it.
    pub state: StepState,
}

/// A journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Number of the next intent.
    next: u64,
    /// Number of the next line.
    line: u64,
    /// Bytes that hold whole lines.
    length: u64,
    /// Not so in journals that assay 0.1 began.
    sealed: bool,
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
            made => made.map_err(io_error(&folder, "cannot create"))?,
        }
        let held = protected_files::open_journal_folder(&folder)?;
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut stamp = crate::sys::coarse_unix_nanos();
        loop {
            let name = format!("{stamp}.jsonl");
            let path = folder.join(&name);
            match rustix::fs::openat(&held, name, flags, Mode::RUSR | Mode::WUSR) {
                Ok(file) => {
                    rustix::fs::fsync(&held)
                        .map_err(|errno| io_error(&folder, "cannot sync")(errno.into()))?;
                    return Ok(Self {
                        path,
                        file: file.into(),
                        next: 0,
                        line: 0,
                        length: 0,
                        sealed: true,
                    });
                }
                Err(Errno::EXIST) => stamp += 1,
                Err(errno) => return Err(io_error(path, "cannot create")(errno.into())),
            }
        }
    }

    /// Opens a journal to note what became of its steps. What a crash tore at its end is cut off.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn reopen(path: &Path) -> Result<Self, Error> {
        let mut file = protected_files::file_in_folder(path, OFlags::RDWR | OFlags::APPEND)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(io_error(path, "cannot read"))?;
        let found = read::read(&bytes);
        let mut length = found.keep as u64;
        let mut mend = || {
            file.set_len(length)?;
            // The last line may have lost nothing but its end.
            if !matches!(bytes.get(..found.keep), Some([] | [.., b'\n'])) {
                file.write_all(b"\n")?;
                length += 1;
            }
            Ok(())
        };
        mend().map_err(io_error(path, "cannot write"))?;
        Ok(Self {
            path: path.into(),
            file,
            next: u64::MAX,
            line: found.next,
            length,
            sealed: found.sealed,
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
        steps: impl IntoIterator<Item = (&'a ActStep, &'a [u8], Option<&'a Anchor>)>,
    ) -> Result<u64, Error> {
        let first = self.next;
        let mut lines = Vec::new();
        for (step, aside, target) in steps {
            lines.push(Line::Intent {
                number: self.next,
                step: Box::new(step.clone()),
                aside: aside.to_vec(),
                target: target.cloned(),
            });
            self.next += 1;
        }
        self.write(lines, true)?;
        Ok(first)
    }

    /// Writes down what is about to be removed, and forces it to disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing may be removed then.
    pub fn note(
        &mut self,
        list: impl IntoIterator<Item = (u64, RemovedFile)>,
    ) -> Result<(), Error> {
        let lines = list.into_iter();
        self.write(
            lines.map(|(number, found)| Line::Found { number, found }),
            true,
        )
    }

    /// Writes down what became of steps.
    ///
    /// # Errors
    /// When it cannot be written; recovery will find out by looking.
    pub fn conclude(
        &mut self,
        outcomes: impl IntoIterator<Item = (u64, StepState)>,
    ) -> Result<(), Error> {
        let lines = outcomes.into_iter();
        self.write(
            lines.map(|(number, state)| Line::Outcome { number, state }),
            false,
        )
    }

    /// Writes down that undo begins, and forces it to disk.
    ///
    /// # Errors
    /// When it cannot be written; nothing may be undone then.
    pub fn begin_undo(&mut self) -> Result<(), Error> {
        self.write([Line::Undoing {}], true)
    }

    /// Writes down that nothing more is to come, and how many damaged lines were told of.
    ///
    /// # Errors
    /// When it cannot be written; recovery will look once more.
    pub fn end(&mut self, told: usize) -> Result<(), Error> {
        let told = told as u64;
        self.write([Line::End { told }], false)
    }

    /// All of the lines or none of them.
    fn write(&mut self, lines: impl IntoIterator<Item = Line>, force: bool) -> Result<(), Error> {
        let (mut text, mut number) = (Vec::new(), self.line);
        for line in lines {
            let sealed = match self.sealed {
                true => seal(number, &line),
                false => serde_json::to_vec(&line).map(|line| [&line, &b"\n"[..]].concat()),
            };
            text.extend(sealed.map_err(|e| Error::Output(e.into()))?);
            number += 1;
        }
        if text.is_empty() {
            return Ok(());
        }
        let written = self.file.write_all(&text);
        let forced = written.and_then(|()| if force { self.file.sync_data() } else { Ok(()) });
        if let Err(error) = forced {
            // Half a line must not swallow the next one.
            let _ = self.file.set_len(self.length);
            return Err(io_error(&self.path, "cannot write")(error));
        }
        self.line = number;
        self.length += text.len() as u64;
        Ok(())
    }

    /// Reads a journal.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn load(path: &Path) -> Result<Loaded, Error> {
        let mut text = Vec::new();
        protected_files::file_in_folder(path, OFlags::RDONLY)?
            .read_to_end(&mut text)
            .map_err(io_error(path, "cannot read"))?;
        Ok(read::read(&text))
    }

    /// The journals of an index, oldest first.
    ///
    /// # Errors
    /// When their folder cannot be listed.
    pub fn all(index: &Path) -> Result<Vec<PathBuf>, Error> {
        let folder = Self::folder(index);
        let mut found: Vec<PathBuf> = match std::fs::read_dir(&folder) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(io_error(folder, "cannot list")(error)),
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

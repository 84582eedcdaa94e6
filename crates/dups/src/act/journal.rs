//! Journal of a run: one file with one JSON object per line. Each step is recorded before and after it runs. The record
//! is synced to disk before names are changed, so that a run can be killed at any time.

mod read;

pub use read::Loaded;

use super::ActStep;
use super::attributes::Attributes;
use super::copy::Content;
use crate::error::io_error;
use crate::roots::RootIdentity;
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

#[derive(Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Line {
    /// A step is about to start.
    Intent {
        /// Number of the step within the journal.
        number: u64,
        /// The step that starts.
        step: Box<ActStep>,
        /// Temporary name for the removed file, in the same folder.
        #[serde(with = "crate::name_json")]
        aside: Vec<u8>,
        /// Target folder, if the step moves the file.
        #[serde(default)]
        target: Option<RootIdentity>,
    },
    /// State of the file immediately before its removal.
    Found {
        /// Number of the step's `Intent` line.
        number: u64,
        /// What is needed to restore the file, see [`RemovedFile`].
        found: RemovedFile,
    },
    /// A step has ended.
    Outcome {
        /// Number of the step's `Intent` line.
        number: u64,
        /// How far the step got, see [`StepState`].
        state: StepState,
    },
    /// An undo of the run starts.
    Undoing {},
    /// The run has completed, or was recovered after a crash.
    End {
        /// Number of damaged lines that were reported to the user.
        told: u64,
    },
}

/// How far a step got.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Unknown because the process ended; recovery determines the state.
    Open,
    /// The step is complete.
    Done,
    /// Not executed; the files are unchanged.
    Untouched,
    /// Completed and later undone.
    Undone,
}

/// Data with which a removed file can be restored from any copy of its content.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct RemovedFile {
    /// Hash of the file's content.
    pub content: Content,
    /// Extended attributes and flags of the file.
    pub attributes: Attributes,
    /// Whether the file was copied to another file system by a move.
    pub across: bool,
}

/// A step with everything that the journal contains about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalStep {
    /// The planned step.
    pub step: ActStep,
    /// Temporary name for the removed file, in the same folder.
    pub aside: Vec<u8>,
    /// Target folder, if the step moves the file.
    pub target: Option<Arc<RootIdentity>>,
    /// State of the file immediately before its removal; `None` if it was not removed.
    pub found: Option<RemovedFile>,
    /// How far the step got.
    pub state: StepState,
}

/// A journal, open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Number that the next intent gets.
    next: u64,
    /// Number that the next line gets.
    line: u64,
    /// Length of the complete lines in bytes.
    length: u64,
    /// Whether lines have checksums; false for journals of assay 0.1.
    sealed: bool,
}

impl Journal {
    /// Returns the folder with the journals of an index.
    pub fn folder(index: &Path) -> PathBuf {
        let mut name = index.as_os_str().to_owned();
        name.push("-journal.d");
        name.into()
    }

    /// Begins a new journal.
    ///
    /// # Errors
    /// The journal cannot be created.
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

    /// Opens a journal to record the results of its steps. Cuts off an incomplete line at the end.
    ///
    /// # Errors
    /// The journal cannot be opened.
    pub fn reopen(path: &Path) -> Result<Self, Error> {
        let mut file = protected_files::file_in_folder(path, OFlags::RDWR | OFlags::APPEND)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(io_error(path, "cannot read"))?;
        let found = read::read(&bytes);
        let mut length = found.keep as u64;
        let mut mend = || {
            file.set_len(length)?;
            // The last line may lack only its line end.
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

    /// Returns the path of the journal.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the intents of steps and syncs them to disk. Returns the number of the first intent.
    ///
    /// # Errors
    /// The intents cannot be written. Then no step may start.
    pub fn intend<'a>(
        &mut self,
        steps: impl IntoIterator<Item = (&'a ActStep, &'a [u8], Option<&'a RootIdentity>)>,
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

    /// Writes the state of files that are about to be removed, and syncs it to disk.
    ///
    /// # Errors
    /// The state cannot be written. Then nothing may be removed.
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

    /// Writes the results of steps.
    ///
    /// # Errors
    /// The results cannot be written. Recovery then determines them from the files.
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

    /// Records that undo starts, and syncs the record to disk.
    ///
    /// # Errors
    /// The record cannot be written. Then nothing may be undone.
    pub fn begin_undo(&mut self) -> Result<(), Error> {
        self.write([Line::Undoing {}], true)
    }

    /// Records that the run is complete, and how many damaged lines were reported.
    ///
    /// # Errors
    /// The record cannot be written. Recovery then checks the journal again.
    pub fn end(&mut self, told: usize) -> Result<(), Error> {
        let told = told as u64;
        self.write([Line::End { told }], false)
    }

    /// Writes either all lines or none of them.
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
            // An incomplete line must not corrupt the next one.
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
    /// The journal cannot be read.
    pub fn load(path: &Path) -> Result<Loaded, Error> {
        let mut text = Vec::new();
        protected_files::file_in_folder(path, OFlags::RDONLY)?
            .read_to_end(&mut text)
            .map_err(io_error(path, "cannot read"))?;
        Ok(read::read(&text))
    }

    /// Returns the journals of an index, oldest first.
    ///
    /// # Errors
    /// The folder of the journals cannot be listed.
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

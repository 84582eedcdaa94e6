//! A session: what one process does to one target, written down before it is done.

use crate::error::ChangeError;
use crate::journal::{Journal, forget, new_file, sync_dir};
use crate::lines::{Header, Line, State};
use crate::made::Made;
use crate::recover::{Foreign, Recovered};
use assay_host::{HostMut, Known};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of a thing that was entered as made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MadeId(pub(crate) u64);

/// A live session. When it is dropped and nothing is left to take back, its directory goes; else
/// it waits for [`Journal::recover`].
#[derive(Debug)]
pub struct Session {
    journal: Journal,
    dir: PathBuf,
    header: Header,
    writer: Mutex<Writer>,
    /// Its directory stays although nothing is left to take back.
    pub(crate) stays: bool,
    /// Released by the kernel when the process ends, however it ends.
    _lock: File,
}

#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    state: State,
    /// The last line may be torn.
    torn: bool,
}

impl Session {
    pub(crate) fn new(
        journal: Journal,
        dir: PathBuf,
        header: Header,
        file: File,
        lock: File,
    ) -> Self {
        Self {
            journal,
            dir,
            header,
            writer: Mutex::new(Writer {
                file,
                state: State::default(),
                torn: false,
            }),
            stays: false,
            _lock: lock,
        }
    }

    /// Takes a dead session over. `lock` is its lock.
    pub(crate) fn resume(
        journal: Journal,
        dir: PathBuf,
        header: Header,
        state: State,
        lock: File,
    ) -> Result<Self, ChangeError> {
        let path = dir.join(crate::journal::LINES);
        let file = File::options()
            .append(true)
            .open(&path)
            .map_err(ChangeError::journal(&path))?;
        let session = Self {
            journal,
            dir,
            header,
            writer: Mutex::new(Writer {
                file,
                state,
                // Perhaps: the process was killed.
                torn: true,
            }),
            stays: false,
            _lock: lock,
        };
        session.heal(&mut session.writer())?;
        Ok(session)
    }

    /// Tells what it makes from everybody else's things. The name of everything it makes holds
    /// this; [`Session::name`] makes such names.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("assay-{}", self.header.uid)
    }

    /// A name for something it makes, hidden in a listing: `.assay-0123456789abcdef-NAME`.
    #[must_use]
    pub fn name(&self, name: impl AsRef<OsStr>) -> OsString {
        let mut all = OsString::from(format!(".{}-", self.tag()));
        all.push(name);
        all
    }

    /// A directory for job files, logs and sockets. It goes with the session, also after a kill.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Writes down that `thing` is about to be made. On return this is on disk, and only then may
    /// the thing be made.
    ///
    /// # Errors
    /// Its name does not hold the [`Session::tag`], or the journal cannot be written.
    pub fn made(&self, thing: &Made) -> Result<MadeId, ChangeError> {
        thing.check(&self.tag())?;
        let mut writer = self.writer();
        let id = writer.state.next();
        let thing = thing.clone();
        self.append(&mut writer, Line::Made { id, thing })?;
        Ok(MadeId(id))
    }

    /// Writes down which file or directory it is that was made, or that the loop devices will be on:
    /// from then on its name alone leads to nothing.
    ///
    /// # Errors
    /// It cannot be looked at, or the journal cannot be written.
    pub fn identify(&self, id: MadeId, fd: impl AsFd) -> Result<(), ChangeError> {
        let known = Known::of(fd)?;
        let mut writer = self.writer();
        let thing = match writer.state.entries.get(&id.0) {
            Some(crate::lines::Entry::Made { thing, gone: false }) => thing.clone(),
            _ => return Ok(()),
        };
        let thing = match thing {
            Made::Known { thing, .. } => thing,
            thing => Box::new(thing),
        };
        let thing = Made::Known { thing, known };
        self.append(&mut writer, Line::Made { id: id.0, thing })
    }

    /// Writes down that a thing is gone again.
    ///
    /// # Errors
    /// The journal cannot be written; the thing is looked for once more by recovery then.
    pub fn unmade(&self, id: MadeId) -> Result<(), ChangeError> {
        self.write(Line::Unmade { id: id.0 })
    }

    /// Removes a thing, makes sure that it is gone, and writes that down.
    ///
    /// # Errors
    /// It does not go, or the journal cannot be written.
    pub fn unmake(&self, host: &dyn HostMut, id: MadeId) -> Result<(), ChangeError> {
        let thing = match self.writer().state.entries.get(&id.0) {
            Some(crate::lines::Entry::Made { thing, gone: false }) => thing.clone(),
            _ => return Ok(()),
        };
        thing.unmake(host, &self.tag())?;
        self.unmade(id)
    }

    /// Takes back everything that is still open, newest first, as recovery would. To be called at
    /// the end and after an interruption, when all else that uses the session is gone.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn close(self, host: &dyn HostMut) -> Result<Vec<Recovered>, ChangeError> {
        crate::recover::take_back(&self, host, Foreign::Leave)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// A copy of what the journal says.
    pub(crate) fn state(&self) -> State {
        self.writer().state.clone()
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line and forces it to disk.
    pub(crate) fn write(&self, line: Line) -> Result<(), ChangeError> {
        self.append(&mut self.writer(), line)
    }

    fn append(&self, writer: &mut Writer, line: Line) -> Result<(), ChangeError> {
        self.heal(writer)?;
        let path = self.dir.join(crate::journal::LINES);
        let mut text =
            serde_json::to_vec(&line).map_err(|error| ChangeError::journal(&path)(error.into()))?;
        text.push(b'\n');
        writer.torn = true;
        writer
            .file
            .write_all(&text)
            .and_then(|()| writer.file.sync_data())
            .map_err(ChangeError::journal(&path))?;
        writer.torn = false;
        writer.state.apply(line);
        Ok(())
    }

    /// Begins a new line behind one that may be torn.
    fn heal(&self, writer: &mut Writer) -> Result<(), ChangeError> {
        if writer.torn {
            let pid = std::process::id();
            let path = self.dir.join(crate::journal::LINES);
            let line = serde_json::to_string(&Line::Resumed { pid })
                .map_err(|error| ChangeError::journal(&path)(error.into()))?;
            writer
                .file
                .write_all(format!("\n{line}\n").as_bytes())
                .and_then(|()| writer.file.sync_data())
                .map_err(ChangeError::journal(&path))?;
            writer.torn = false;
        }
        Ok(())
    }

    /// Keeps bytes in the session's directory, for this user alone and forced to disk.
    pub(crate) fn save(&self, id: u64, bytes: &[u8]) -> Result<(), ChangeError> {
        let path = self.saved(id);
        let save = || -> io::Result<()> {
            // Left by an attempt that failed.
            let _ = std::fs::remove_file(&path);
            let mut file = new_file(&path)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            sync_dir(&self.dir)
        };
        save().map_err(ChangeError::journal(&path))
    }

    pub(crate) fn saved(&self, id: u64) -> PathBuf {
        self.dir.join(format!("{id}.saved"))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let nothing_left = self.writer().state.open().next().is_none();
        if nothing_left && !self.stays {
            let _ = forget(&self.dir);
        }
    }
}

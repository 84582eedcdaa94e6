//! A session: the actions of one process on one target. Each action is recorded before it is done.

use crate::disk::{LINES, forget, new_file, sync_dir};
use crate::error::ChangeError;
use crate::journal::Journal;
use crate::journal_format::{FIRST_FORMAT, Header, Line, State};
use crate::machine_claims::Claim;
use crate::stored::{Found, entry_note, saved_file_path};
use crate::temporary_objects::Made;
use assay_host::seal::seal;
use assay_host::{HostMut, KnownFile};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of an object in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MadeId(pub(crate) u64);

/// A live session. When it is dropped, its directory is removed if nothing is left to roll back. Otherwise the session
/// stays for [`Journal::recover`].
#[derive(Debug)]
pub struct ChangeSession {
    journal: Journal,
    dir: PathBuf,
    header: Header,
    writer: Mutex<Writer>,
    /// Machine-wide locks of the settings that this session has open, see `machine_claims`.
    claims: Mutex<BTreeMap<u64, Claim>>,
    /// Whether the session's directory stays although nothing is left to roll back.
    pub(crate) stays: bool,
    /// Locks that the kernel releases when the process ends; empty after the session's changes were kept.
    locks: Mutex<Vec<File>>,
}

#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    state: State,
    /// Number that the next line gets.
    next: u64,
    /// Length of the complete part of the journal, in bytes.
    length: u64,
    /// Whether the last line may be incomplete.
    torn: bool,
}

impl ChangeSession {
    pub(crate) fn new(
        journal: Journal,
        dir: PathBuf,
        header: Header,
        file: File,
        locks: Vec<File>,
    ) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self {
            journal,
            dir,
            header,
            writer: Mutex::new(Writer {
                file,
                state: State::default(),
                next: 1,
                length,
                torn: false,
            }),
            claims: Mutex::default(),
            stays: false,
            locks: Mutex::new(locks),
        })
    }

    /// Takes over a session whose process has ended. Removes an incomplete last line, adds missing entries,
    /// and records damage that the lines do not show.
    pub(crate) fn resume(
        journal: Journal,
        dir: PathBuf,
        found: Found,
        locks: Vec<File>,
    ) -> Result<Self, ChangeError> {
        let path = dir.join(LINES);
        let first = found.header.format == FIRST_FORMAT;
        let opened = || -> io::Result<(File, u64)> {
            let file = File::options().create(true).append(true).open(&path)?;
            let length = found.keep.map_or(0, |keep| keep as u64);
            if !first && file.metadata()?.len() > length {
                file.set_len(length)?;
            }
            sync_dir(&dir)?;
            Ok((file, length))
        };
        let (file, length) = opened().map_err(ChangeError::journal(&path))?;
        let session = Self {
            journal,
            dir,
            header: found.header,
            writer: Mutex::new(Writer {
                file,
                state: found.state,
                next: found.next,
                length,
                torn: first,
            }),
            claims: Mutex::default(),
            stays: !found.damage.is_empty(),
            locks: Mutex::new(locks),
        };
        {
            let mut writer = session.writer();
            if !first {
                session.begin_line(&mut writer, found.keep.is_none())?;
                let pid = std::process::id();
                session.append(&mut writer, Line::Resumed { pid })?;
            }
            session.heal(&mut writer)?;
            for what in found.unmarked {
                session.append(&mut writer, Line::Damaged { what })?;
            }
            for line in found.lost {
                session.append(&mut writer, line)?;
            }
        }
        Ok(session)
    }

    /// Writes what must precede the first line of this process: the header if it is missing (`bereft`), or a line end
    /// if the last line is incomplete.
    fn begin_line(&self, writer: &mut Writer, bereft: bool) -> Result<(), ChangeError> {
        let path = self.dir.join(LINES);
        let mut text = Vec::new();
        if bereft {
            text =
                seal(0, &self.header).map_err(|error| ChangeError::journal(&path)(error.into()))?;
            writer.next = 1;
        } else if !self.ends_whole().map_err(ChangeError::journal(&path))? {
            text.push(b'\n');
        }
        writer
            .file
            .write_all(&text)
            .map_err(ChangeError::journal(&path))?;
        writer.length += text.len() as u64;
        Ok(())
    }

    fn ends_whole(&self) -> io::Result<bool> {
        let bytes = std::fs::read(self.dir.join(LINES))?;
        Ok(bytes.last().is_none_or(|last| *last == b'\n'))
    }

    /// Returns the session's tag. The name of every object that the session creates contains the tag;
    /// [`ChangeSession::name`] builds such names.
    #[must_use]
    pub fn tag(&self) -> String {
        format!("assay-{}", self.header.uid)
    }

    /// Returns a hidden name for an object of the session, such as `.assay-0123456789abcdef-NAME`.
    #[must_use]
    pub fn name(&self, name: impl AsRef<OsStr>) -> OsString {
        let mut all = OsString::from(format!(".{}-", self.tag()));
        all.push(name);
        all
    }

    /// Returns a directory for job files, logs and sockets. The directory is removed with the session, even after a
    /// kill.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Records that `thing` is about to be created. Create the object only after this function has returned, because
    /// the record is then durable.
    ///
    /// # Errors
    /// The name does not contain the [`ChangeSession::tag`], or the journal cannot be written.
    pub fn made(&self, thing: &Made) -> Result<MadeId, ChangeError> {
        thing.check(&self.tag())?;
        let mut writer = self.writer();
        let id = writer.state.next();
        let thing = thing.clone();
        let line = Line::Made { id, thing };
        self.enter(id, &line)?;
        self.append(&mut writer, line)?;
        Ok(MadeId(id))
    }

    /// Records the identity of a file or directory that was created, or of the file below loop devices. From then on,
    /// recovery accepts only the file with this identity, and no other file with the same name.
    ///
    /// # Errors
    /// The file's metadata cannot be read, or the journal cannot be written.
    pub fn identify(&self, id: MadeId, fd: impl AsFd) -> Result<(), ChangeError> {
        let known = KnownFile::of(fd)?;
        let mut writer = self.writer();
        let thing = match writer.state.entries.get(&id.0) {
            Some(crate::journal_format::Entry::Made { thing, gone: false }) => thing.clone(),
            _ => return Ok(()),
        };
        let thing = match thing {
            Made::Known { thing, .. } => thing,
            thing => Box::new(thing),
        };
        let thing = Made::Known { thing, known };
        self.append(&mut writer, Line::Made { id: id.0, thing })
    }

    /// Records that an object was removed.
    ///
    /// # Errors
    /// The journal cannot be written; recovery then searches for the object again.
    pub fn unmade(&self, id: MadeId) -> Result<(), ChangeError> {
        self.write(Line::Unmade { id: id.0 })
    }

    /// Removes an object, checks that it no longer exists, and records the removal.
    ///
    /// # Errors
    /// The removal fails, or the journal cannot be written.
    pub fn unmake(&self, host: &dyn HostMut, id: MadeId) -> Result<(), ChangeError> {
        let thing = match self.writer().state.entries.get(&id.0) {
            Some(crate::journal_format::Entry::Made { thing, gone: false }) => thing.clone(),
            _ => return Ok(()),
        };
        thing.unmake(host, &self.tag())?;
        self.unmade(id)
    }

    pub(crate) fn journal(&self) -> &Journal {
        &self.journal
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Returns a copy of the journal's state.
    pub(crate) fn state(&self) -> State {
        self.writer().state.clone()
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn claims(&self) -> MutexGuard<'_, BTreeMap<u64, Claim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Marks the session as no longer owned by this process.
    pub(crate) fn let_go(&self) {
        self.locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Whether this process still owns the session.
    pub(crate) fn is_ours(&self) -> bool {
        let locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        !locks.is_empty()
    }

    /// Records that the session does nothing more with a setting, then releases the machine-wide locks.
    pub(crate) fn closed(&self, id: u64, line: Line) -> Result<(), ChangeError> {
        self.write(line)?;
        if let Some(lock) = self.claims().remove(&id) {
            lock.release()?;
        }
        Ok(())
    }

    /// Writes a line and makes it durable.
    pub(crate) fn write(&self, line: Line) -> Result<(), ChangeError> {
        self.append(&mut self.writer(), line)
    }

    fn append(&self, writer: &mut Writer, line: Line) -> Result<(), ChangeError> {
        self.heal(writer)?;
        let path = self.dir.join(LINES);
        let text = self
            .encode(writer.next, &line)
            .map_err(|error| ChangeError::journal(&path)(error.into()))?;
        let links = writer
            .file
            .metadata()
            .map_err(ChangeError::journal(&path))?;
        if links.nlink() == 0 {
            // Nothing could be reverted after a crash.
            let removed = io::Error::new(io::ErrorKind::NotFound, "another program removed it");
            return Err(ChangeError::journal(&path)(removed));
        }
        writer.torn = true;
        writer
            .file
            .write_all(&text)
            .and_then(|()| writer.file.sync_data())
            .map_err(ChangeError::journal(&path))?;
        writer.torn = false;
        writer.next += 1;
        writer.length += text.len() as u64;
        writer.state.apply(line);
        Ok(())
    }

    /// Encodes a line in the format of the session's journal.
    fn encode(&self, number: u64, line: &Line) -> serde_json::Result<Vec<u8>> {
        if self.header.format != FIRST_FORMAT {
            return seal(number, line);
        }
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Removes an incomplete last line before the next line is written.
    fn heal(&self, writer: &mut Writer) -> Result<(), ChangeError> {
        if !writer.torn {
            return Ok(());
        }
        let path = self.dir.join(LINES);
        let healed = match self.header.format {
            FIRST_FORMAT => {
                let pid = std::process::id();
                let line = serde_json::to_string(&Line::Resumed { pid })
                    .map_err(|error| ChangeError::journal(&path)(error.into()))?;
                writer.file.write_all(format!("\n{line}\n").as_bytes())
            }
            _ => writer.file.set_len(writer.length),
        };
        healed
            .and_then(|()| writer.file.sync_data())
            .map_err(ChangeError::journal(&path))?;
        writer.torn = false;
        Ok(())
    }

    /// Writes the second record of a setting or object atomically, in a file of its own.
    pub(crate) fn enter(&self, id: u64, line: &Line) -> Result<(), ChangeError> {
        let (path, bytes) = entry_note(&self.dir, &self.header, id, line)
            .map_err(|error| ChangeError::journal(&self.dir)(error.into()))?;
        let aside = path.with_extension("new");
        let enter = || -> io::Result<()> {
            write_new(&aside, &bytes)?;
            std::fs::rename(&aside, &path)?;
            sync_dir(&self.dir)
        };
        enter().map_err(ChangeError::journal(&path))
    }

    /// Stores bytes durably in the session's directory, readable only for this user.
    pub(crate) fn save(&self, id: u64, bytes: &[u8]) -> Result<(), ChangeError> {
        let path = self.saved(id);
        write_new(&path, bytes)
            .and_then(|()| sync_dir(&self.dir))
            .map_err(ChangeError::journal(&path))
    }

    /// Removes the second record of an action that did not take place.
    pub(crate) fn withdraw(&self, id: u64) {
        let path = self.saved(id);
        let _ = std::fs::remove_file(path.with_extension("entry"));
        let _ = std::fs::remove_file(path);
    }

    pub(crate) fn saved(&self, id: u64) -> PathBuf {
        saved_file_path(&self.dir, id)
    }
}

/// Writes a file for this user only and makes it durable.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The file may remain from an attempt that failed.
    let _ = std::fs::remove_file(path);
    let mut file = new_file(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

impl Drop for ChangeSession {
    fn drop(&mut self) {
        if !self.is_ours() {
            return;
        }
        let nothing_left = self.writer().state.open().next().is_none();
        if nothing_left && !self.stays {
            if self.header.format != FIRST_FORMAT {
                let _ = self.write(Line::End {});
            }
            let _ = forget(&self.dir);
        }
    }
}

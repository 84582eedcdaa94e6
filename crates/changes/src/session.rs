//! A session: what one process does to one target, written down before it is done.

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
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of a thing that was entered as made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MadeId(pub(crate) u64);

/// A live session. When it is dropped and nothing is left to take back, its directory goes; else
/// it waits for [`Journal::recover`].
#[derive(Debug)]
pub struct ChangeSession {
    journal: Journal,
    dir: PathBuf,
    header: Header,
    writer: Mutex<Writer>,
    /// What this machine knows of the settings that are open here, see `claims`.
    claims: Mutex<BTreeMap<u64, Claim>>,
    /// Its directory stays although nothing is left to take back.
    pub(crate) stays: bool,
    /// Released by the kernel when the process ends, however it ends. None once it was put by.
    locks: Mutex<Vec<File>>,
}

#[derive(Debug)]
pub(crate) struct Writer {
    file: File,
    state: State,
    /// Number of the next line.
    next: u64,
    /// How long the journal is as far as it is whole.
    length: u64,
    /// The last line may be torn.
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

    /// Takes a dead session over. What was torn is cut off, what the journal lacks is entered, and
    /// damage that its lines do not show is noted.
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

    /// Writes what has to stand before the first line of ours.
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
        let line = Line::Made { id, thing };
        self.enter(id, &line)?;
        self.append(&mut writer, line)?;
        Ok(MadeId(id))
    }

    /// Writes down which file or directory it is that was made, or that the loop devices will be on:
    /// from then on its name alone leads to nothing.
    ///
    /// # Errors
    /// It cannot be looked at, or the journal cannot be written.
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

    /// A copy of what the journal says.
    pub(crate) fn state(&self) -> State {
        self.writer().state.clone()
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn claims(&self) -> MutexGuard<'_, BTreeMap<u64, Claim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is no longer this process's.
    pub(crate) fn let_go(&self) {
        self.locks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }

    /// Whether it is still this process's to end.
    pub(crate) fn is_ours(&self) -> bool {
        let locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
        !locks.is_empty()
    }

    /// Writes down that nothing more is done with a setting, then lets the machine know.
    pub(crate) fn closed(&self, id: u64, line: Line) -> Result<(), ChangeError> {
        self.write(line)?;
        if let Some(lock) = self.claims().remove(&id) {
            lock.release()?;
        }
        Ok(())
    }

    /// Writes a line and forces it to disk.
    pub(crate) fn write(&self, line: Line) -> Result<(), ChangeError> {
        self.append(&mut self.writer(), line)
    }

    fn append(&self, writer: &mut Writer, line: Line) -> Result<(), ChangeError> {
        self.heal(writer)?;
        let path = self.dir.join(LINES);
        let text = self
            .encode(writer.next, &line)
            .map_err(|error| ChangeError::journal(&path)(error.into()))?;
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

    /// A line as this journal has them.
    fn encode(&self, number: u64, line: &Line) -> serde_json::Result<Vec<u8>> {
        if self.header.format != FIRST_FORMAT {
            return seal(number, line);
        }
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Makes sure that the next line does not come behind a torn one.
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

    /// Notes beside the journal that something is about to be opened or made: whole or not at all.
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

    /// Keeps bytes in the session's directory, for this user alone and forced to disk.
    pub(crate) fn save(&self, id: u64, bytes: &[u8]) -> Result<(), ChangeError> {
        let path = self.saved(id);
        write_new(&path, bytes)
            .and_then(|()| sync_dir(&self.dir))
            .map_err(ChangeError::journal(&path))
    }

    /// Takes an entry back of which nothing came.
    pub(crate) fn withdraw(&self, id: u64) {
        let path = self.saved(id);
        let _ = std::fs::remove_file(path.with_extension("entry"));
        let _ = std::fs::remove_file(path);
    }

    pub(crate) fn saved(&self, id: u64) -> PathBuf {
        saved_file_path(&self.dir, id)
    }
}

/// Writes a file for this user alone and forces it to disk.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Left by an attempt that failed.
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

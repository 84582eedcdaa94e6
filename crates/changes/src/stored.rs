//! Reads a session from disk: its journal, and the other files that the journal is compared with. Every setting and
//! object is recorded twice: first in its own file `N.entry`, then as a line of the journal. Therefore a truncated or
//! missing journal hides no change.

use crate::disk::{LINES, LOCK, PREFIX, read_boot_id};
use crate::error::ChangeError;
use crate::journal_format::{FORMAT, Header, Line, State};
use crate::read::{Lines, Read, read};
use assay_host::seal::{seal, unseal};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A session as found on disk.
pub(crate) struct Stored {
    pub(crate) dir: PathBuf,
    /// Contents of the session; `None` if the process ended before the session had begun.
    pub(crate) found: Option<Found>,
    /// Locks of the session if the session's process has ended; `None` while the process lives.
    pub(crate) locks: Option<Vec<File>>,
}

/// What the files of a session contain.
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) state: State,
    /// Descriptions of damage, with path and line.
    pub(crate) damage: Vec<String>,
    /// Damage that is not yet recorded in the journal.
    pub(crate) unmarked: Vec<String>,
    /// Lines that are missing in the journal, reconstructed from the other files.
    pub(crate) lost: Vec<Line>,
    /// Number that the next line gets.
    pub(crate) next: u64,
    /// Number of bytes of the journal to keep; `None` if there is no journal.
    pub(crate) keep: Option<usize>,
}

impl Stored {
    /// Whether the session's process has ended and left changes, or data that cannot be parsed.
    pub(crate) fn is_left(&self) -> bool {
        let left = |found: &Found| found.state.open().next().is_some() || !found.damage.is_empty();
        self.locks.is_some() && self.found.as_ref().is_some_and(left)
    }
}

/// Reads one session; `None` if it was removed in the meantime.
///
/// # Errors
/// The session cannot be read, or has an unknown format.
pub(crate) fn load(dir: PathBuf) -> Result<Option<Stored>, ChangeError> {
    match load_there(dir.clone()) {
        // The session ended while it was read.
        Err(_) if !dir.exists() => Ok(None),
        other => other,
    }
}

fn load_there(dir: PathBuf) -> Result<Option<Stored>, ChangeError> {
    let Some(locks) = take_session_locks(&dir)? else {
        return Ok(None);
    };
    let path = dir.join(LINES);
    let bytes = match fs::read(&path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(ChangeError::journal(&path)(error)),
    };
    let read =
        read(bytes.as_deref().unwrap_or_default()).map_err(|reason| ChangeError::Foreign {
            path: path.clone(),
            reason,
        })?;
    let beside = read_entry_notes(&dir)?;
    let found = match read {
        // The process was killed before the session began, or after all other files were removed.
        Read::Unborn if beside.is_empty() => None,
        Read::Unborn => Some(session_without_journal(&dir, bytes.is_some(), beside)?),
        Read::Journal(lines) => Some(session_with_journal(&dir, *lines, beside)?),
    };
    Ok(Some(Stored { dir, found, locks }))
}

/// Takes the locks of a session whose process has ended. Returns `Some(None)` if the process still lives, and `None` if
/// the session no longer exists.
#[allow(clippy::option_option, reason = "gone, alive, or dead with its locks")]
fn take_session_locks(dir: &Path) -> Result<Option<Option<Vec<File>>>, ChangeError> {
    let mut locks = Vec::new();
    // The directory is locked too, because the lock file may have been removed.
    for path in [dir.join(LOCK), dir.to_owned()] {
        let file = match File::open(&path) {
            Ok(file) => file,
            // The process was killed between creating the directory and its lock file, or while removing them.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(ChangeError::journal(&path)(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Some(None)),
            Err(error) => return Err(ChangeError::journal(&path)(error.into())),
        }
        // The session ended and was removed after it was listed.
        if file.metadata().is_ok_and(|found| found.nlink() == 0) {
            return Ok(None);
        }
        locks.push(file);
    }
    match dir.exists() {
        true => Ok(Some(Some(locks))),
        false => Ok(None),
    }
}

/// The files in a session's directory besides the journal.
#[derive(Default)]
struct Beside {
    /// Second records of settings and objects, with the header of their session.
    entries: Vec<(u64, Header, Line)>,
    /// Second records that cannot be read.
    unreadable: Vec<(u64, PathBuf)>,
    /// Saved copies of original configuration files.
    saved: Vec<(u64, PathBuf)>,
}

impl Beside {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.unreadable.is_empty() && self.saved.is_empty()
    }
}

const ENTRY: &str = "entry";
const SAVED: &str = "saved";

/// Returns the path of the saved original contents of a file.
pub(crate) fn saved_file_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id}.{SAVED}"))
}

/// Returns the path and the bytes of the second record of a setting or object.
pub(crate) fn entry_note(
    dir: &Path,
    header: &Header,
    id: u64,
    line: &Line,
) -> serde_json::Result<(PathBuf, Vec<u8>)> {
    let mut bytes = seal(0, header)?;
    bytes.extend(seal(id, line)?);
    Ok((dir.join(format!("{id}.{ENTRY}")), bytes))
}

fn read_entry_notes(dir: &Path) -> Result<Beside, ChangeError> {
    let mut beside = Beside::default();
    for one in fs::read_dir(dir).map_err(ChangeError::journal(dir))? {
        let path = one.map_err(ChangeError::journal(dir))?.path();
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let Some(id) = stem.and_then(|stem| stem.parse::<u64>().ok()) else {
            continue;
        };
        match path.extension().and_then(|end| end.to_str()) {
            Some(SAVED) => beside.saved.push((id, path)),
            Some(ENTRY) => {
                let bytes = match fs::read(&path) {
                    // The session's process is removing the file at this moment.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    other => other.map_err(ChangeError::journal(&path))?,
                };
                match of_entry(&bytes, id) {
                    Some((header, line)) => beside.entries.push((id, header, line)),
                    None => beside.unreadable.push((id, path)),
                }
            }
            _ => {}
        }
    }
    beside.entries.sort_by_key(|(id, ..)| *id);
    beside.saved.sort();
    Ok(beside)
}

fn of_entry(bytes: &[u8], id: u64) -> Option<(Header, Line)> {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let (_, header) = unseal(lines.next()?)?;
    let (number, line) = unseal(lines.next()?)?;
    (number == id).then_some(())?;
    Some((
        serde_json::from_slice(&header).ok()?,
        serde_json::from_slice(&line).ok()?,
    ))
}

/// Reads a session whose journal is empty or missing.
fn session_without_journal(dir: &Path, there: bool, beside: Beside) -> Result<Found, ChangeError> {
    let path = dir.join(LINES);
    let damage = match there {
        true => format!("{}: it is empty, or its first line is", path.display()),
        false => format!("{}: it is missing", path.display()),
    };
    let lines = Lines {
        header: None,
        state: State::default(),
        damaged: None,
        next: 0,
        keep: 0,
    };
    let mut found = session_with_journal(dir, lines, beside)?;
    found.keep = None;
    found.damage.insert(0, damage.clone());
    found.unmarked.insert(0, damage);
    Ok(found)
}

fn session_with_journal(dir: &Path, lines: Lines, beside: Beside) -> Result<Found, ChangeError> {
    let Lines {
        header,
        mut state,
        damaged,
        next,
        keep,
    } = lines;
    let path = dir.join(LINES);
    let mut damage: Vec<String> = state.damaged.clone();
    let torn_apart = damaged.is_some();
    damage.extend(damaged.map(|(line, reason)| format!("{}:{line}: {reason}", path.display())));
    let mut unmarked = Vec::new();
    let first = state.next();
    let of_entries = beside.entries.first().map(|(_, header, _)| header.clone());
    let mut lost = Vec::new();
    for (id, _, line) in beside.entries {
        if !state.entries.contains_key(&id) {
            state.apply(line.clone());
            lost.push((id, line));
        }
    }
    // A kill can come between a record and its line. Then only the last record has no line, and its action has
    // not begun.
    let cut_off = matches!(&lost[..], [] | [_]) && lost.iter().all(|(id, _)| *id == first);
    if !cut_off && !torn_apart && header.is_some() {
        unmarked.push(format!(
            "{}: lines at its end are missing, which tell of what was done",
            path.display()
        ));
    }
    for (id, path) in beside.unreadable {
        if !state.entries.contains_key(&id) {
            unmarked.push(format!(
                "{}: it does not match its checksum, and the journal does not tell what it was",
                path.display()
            ));
        }
    }
    for (id, path) in beside.saved {
        if state.switched(id).is_none() {
            unmarked.push(format!(
                "{}: a configuration file as it was found, and the journal does not tell which one",
                path.display()
            ));
        }
    }
    let known = |told: &String| !state.damaged.contains(told);
    unmarked.retain(known);
    damage.extend(unmarked.iter().cloned());
    let header = match header.or(of_entries) {
        Some(header) => header,
        None => unknown_header(dir)?,
    };
    Ok(Found {
        header,
        state,
        damage,
        unmarked,
        lost: lost.into_iter().map(|(_, line)| line).collect(),
        next,
        keep: Some(keep),
    })
}

/// Returns a header that replaces a lost one.
fn unknown_header(dir: &Path) -> Result<Header, ChangeError> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    Ok(Header {
        format: FORMAT,
        uid: name.strip_prefix(PREFIX).unwrap_or(&name).to_owned(),
        label: "a session that is not known".to_owned(),
        target: "a target that is not known".to_owned(),
        pid: 0,
        boot: read_boot_id()?,
        begun: 0,
    })
}

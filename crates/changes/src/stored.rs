//! A session as it lies on disk: its journal, and what else there is to hold against it.
//!
//! Whatever is opened or made is noted twice: as a line of the journal, and before that in a file of
//! its own, `N.entry`. A journal that was cut short, or is gone, therefore hides nothing.

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

/// A session as it lies on disk.
pub(crate) struct Stored {
    pub(crate) dir: PathBuf,
    /// What it says; nothing when it had not begun.
    pub(crate) found: Option<Found>,
    /// Its locks, when its process is gone; nothing while it lives.
    pub(crate) locks: Option<Vec<File>>,
}

/// What a session says.
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) state: State,
    /// Damage, in words with path and line.
    pub(crate) damage: Vec<String>,
    /// Damage that the lines of the journal do not show by themselves.
    pub(crate) unmarked: Vec<String>,
    /// Lines that the journal lacks.
    pub(crate) lost: Vec<Line>,
    /// Number of the next line.
    pub(crate) next: u64,
    /// How much of the journal to keep; nothing when there is none.
    pub(crate) keep: Option<usize>,
}

impl Stored {
    /// Whether its process is gone and it left something, or something that nobody understands.
    pub(crate) fn is_left(&self) -> bool {
        let left = |found: &Found| found.state.open().next().is_some() || !found.damage.is_empty();
        self.locks.is_some() && self.found.as_ref().is_some_and(left)
    }
}

/// Reads one session; nothing when it is gone meanwhile.
///
/// # Errors
/// It cannot be read, or is none that this assay understands.
pub(crate) fn load(dir: PathBuf) -> Result<Option<Stored>, ChangeError> {
    match load_there(dir.clone()) {
        // Its owner ended while it was read.
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
        // Killed before it had begun, or when all but this was removed.
        Read::Unborn if beside.is_empty() => None,
        Read::Unborn => Some(session_without_journal(&dir, bytes.is_some(), beside)?),
        Read::Journal(lines) => Some(session_with_journal(&dir, *lines, beside)?),
    };
    Ok(Some(Stored { dir, found, locks }))
}

/// The locks of a session whose process is gone; an empty answer inside while it lives, none when the
/// session is gone.
#[allow(clippy::option_option, reason = "gone, alive, or dead with its locks")]
fn take_session_locks(dir: &Path) -> Result<Option<Option<Vec<File>>>, ChangeError> {
    let mut locks = Vec::new();
    // The directory is locked as well: somebody may have removed the file.
    for path in [dir.join(LOCK), dir.to_owned()] {
        let file = match File::open(&path) {
            Ok(file) => file,
            // Killed between the directory and its lock, or half removed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(ChangeError::journal(&path)(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(Some(None)),
            Err(error) => return Err(ChangeError::journal(&path)(error.into())),
        }
        // Its owner ended, and removed it, since it was listed.
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

/// What lies beside a journal.
#[derive(Default)]
struct Beside {
    /// What was opened or made, with the header of its session.
    entries: Vec<(u64, Header, Line)>,
    /// Entries that cannot be read.
    unreadable: Vec<(u64, PathBuf)>,
    /// Files as they were found.
    saved: Vec<(u64, PathBuf)>,
}

impl Beside {
    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.unreadable.is_empty() && self.saved.is_empty()
    }
}

const ENTRY: &str = "entry";
const SAVED: &str = "saved";

/// Where the contents of a file are kept as they were found.
pub(crate) fn saved_file_path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id}.{SAVED}"))
}

/// Where it is noted for a second time that something was opened or made, and the bytes for it.
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
                    // Its owner is just removing what belongs to the session.
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

/// A session of which the journal says nothing, or is not there.
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
    // A kill comes between an entry and its line; that is the last one, and nothing was done yet.
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

/// Stands for a header that is lost.
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

//! Takes back what acting did: from the journal and the copy that stayed, and nothing else. Neither
//! the index is needed nor that anything has the numbers it had; what counts is the content, of
//! which the journal knows the hash.

use super::attributes::Attributes;
use super::copy::{self, Content};
use super::execute::destination;
use super::journal::{Entry, Journal, Loaded, State};
use super::names::{Names, inode};
use super::{Action, Refusal, Step};
use crate::roots::Anchors;
use crate::{Error, sys};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

pub use super::recover::recover;

/// Tried with the flags of renameat2 first.
const NAMES: Names = Names { plain: false };

/// What was set right or taken back.
#[derive(Debug, Default)]
pub struct Undone {
    /// Files that are as they were before.
    pub restored: u64,
    /// Steps that turned out to be finished (recovery only).
    pub finished: u64,
    /// What could not be taken back, and why.
    pub refused: Vec<Refusal>,
    /// What the names are now, for the index.
    pub names: Vec<Vec<u8>>,
}

/// Takes back every step of a journal that was done, the last first. Moved files go back; names
/// that were linked, and files that were deleted, become files of their own again, copied from the
/// copy that stayed if its content is still the same.
///
/// # Errors
/// When the journal cannot be read or written.
pub fn undo(journal: &Path) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let mut states = Vec::new();
    let mut anchors = Anchors::default();
    let Loaded {
        entries, damaged, ..
    } = Journal::load(journal)?;
    for (number, entry) in entries.into_iter().rev() {
        if entry.state != State::Done || entry.step.action == Action::Reflink {
            continue;
        }
        let result = match &entry.step.action {
            Action::Move(target) => move_back(&entry, target, &mut anchors),
            _ => copy_back(&entry, &mut anchors),
        };
        match result {
            Ok(()) => {
                undone.restored += 1;
                states.push((number, State::Undone));
            }
            Err(why) => undone.refused.push(Refusal {
                path: entry.step.remove.path.clone(),
                why,
            }),
        }
        undone.names.push(entry.step.remove.path);
    }
    conclude(journal, states, &damaged)?;
    undone.refused.extend(untold(journal, damaged));
    Ok(undone)
}

/// Writes down what became of steps, and that nothing is left to be done or told.
pub(super) fn conclude(
    journal: &Path,
    states: Vec<(u64, State)>,
    damaged: &[(usize, String)],
) -> Result<(), Error> {
    let mut journal = Journal::reopen(journal)?;
    journal.conclude(states)?;
    journal.end(damaged.len())
}

/// What lines that cannot be read may have said is for the user to look after.
pub(super) fn untold(journal: &Path, damaged: Vec<(usize, String)>) -> Vec<Refusal> {
    let refused = damaged.into_iter().map(|(line, what)| Refusal {
        path: sys::bytes(journal).to_vec(),
        why: format!(
            "line {line} of this journal is damaged ({what}), so a file may be neither as it was nor as \
             it was to be: compare what the other lines tell with what is there, or with a backup"
        ),
    });
    refused.collect()
}

const TAKEN: &str = "another file has its name by now";

/// The folder that a file goes back to, made again when it is gone, and its name there.
fn home<'s>(step: &'s Step, anchors: &mut Anchors) -> Result<(OwnedFd, &'s [u8]), String> {
    let root = anchors.stand(&step.remove.root)?;
    root.make_parent(&step.remove.path, (step.remove.uid, step.remove.gid))
        .map_err(|errno| format!("cannot open its folder: {}", sys::words(errno)))
}

/// Whether an open file has the content that was acted on; where the journal does not say what that
/// was, its numbers have to do.
fn has_content(fd: &OwnedFd, entry: &Entry, as_before: bool) -> Result<bool, String> {
    let size = entry.step.remove.size;
    if sys::identity_now(fd).map_err(sys::words)?.size != size {
        return Ok(false);
    }
    match &entry.found {
        Some(found) => Ok(Content::of(fd, size)? == found.content),
        None => Ok(as_before),
    }
}

/// Makes the file again that was acted on, from an open one, under the name used meanwhile.
fn make(from: &OwnedFd, parent: &OwnedFd, entry: &Entry) -> Result<(), String> {
    let like = &entry.step.remove;
    match &entry.found {
        Some(found) => {
            let what = (&found.attributes, Some(&found.content));
            copy::make(from, parent, &entry.aside, like, what)
        }
        None => {
            let attributes = Attributes::of(from)?;
            copy::make(from, parent, &entry.aside, like, (&attributes, None))
        }
    }
}

fn move_back(entry: &Entry, target: &[u8], anchors: &mut Anchors) -> Result<(), String> {
    let (step, aside) = (&entry.step, &entry.aside);
    let place = destination(target, &step.remove.path);
    let changed = || {
        format!(
            "the moved file is no longer {}",
            crate::name::readable(&place)
        )
    };
    let back = |errno| match errno {
        Errno::EXIST => TAKEN.into(),
        errno => format!("cannot move it back: {}", sys::words(errno)),
    };
    let (to, name) = home(step, anchors)?;
    let anchor = entry.target.clone().unwrap_or_default();
    let root = anchors.stand(&anchor)?;
    let (from, new) = root.parent(&place).map_err(|_| changed())?;
    let fd = sys::open_file_at(&from, new).map_err(|_| changed())?;
    let state = sys::identity_now(&fd).map_err(sys::words)?;
    let now = inode(&from, new).filter(|now| now.1 == state.ino);
    let now = now.ok_or_else(changed)?;
    let across = entry.found.as_ref().is_some_and(|found| found.across);
    if !across && now.1 == step.remove.ino {
        match NAMES.carry((&from, new), (&to, name), aside, now) {
            Err(Errno::XDEV) => {}
            other => return other.map_err(back),
        }
    }
    // A copy on another file system: it has kept its size and time.
    let as_before = (state.size, state.mtime) == (step.remove.size, step.remove.mtime);
    if !has_content(&fd, entry, as_before)? {
        return Err(changed());
    }
    if inode(&to, name).is_some() {
        return Err(TAKEN.into());
    }
    make(&fd, &to, entry)?;
    NAMES.give(&to, aside, &to, name).map_err(|errno| {
        let _ = rustix::fs::unlinkat(&to, aside, AtFlags::empty());
        back(errno)
    })?;
    let untouched = sys::identity_now(&fd).is_ok_and(|end| end == state);
    if untouched && inode(&from, new) == Some(now) {
        let _ = rustix::fs::unlinkat(&from, new, AtFlags::empty());
    }
    Ok(())
}

fn copy_back(entry: &Entry, anchors: &mut Anchors) -> Result<(), String> {
    let (step, aside) = (&entry.step, &entry.aside);
    let (parent, name) = home(step, anchors)?;
    let here = inode(&parent, name);
    let kept = anchors
        .stand(&step.keep.root)
        .and_then(|root| root.parent(&step.keep.path).map_err(sys::words));
    let keep = kept
        .as_ref()
        .ok()
        .and_then(|(folder, name)| inode(folder, name));
    let linked = step.action == Action::Hardlink;
    let is_link = here.is_some_and(|one| Some(one) == keep || one.1 == step.keep.ino);
    match (linked, here) {
        (true, _) if !is_link => {
            return Err("it is no longer a name of the copy that stayed".into());
        }
        (false, Some(_)) => return Err(TAKEN.into()),
        _ => {}
    }
    let fd = match (linked, &kept) {
        (true, _) => sys::open_file_at(&parent, name).map_err(sys::words)?,
        (false, Ok((folder, name))) => sys::open_file_at(folder, name).map_err(sys::words)?,
        (false, Err(why)) => return Err(why.clone()),
    };
    let now = sys::identity_now(&fd).map_err(sys::words)?;
    let as_before = (now.ino, now.mtime) == (step.keep.ino, step.keep.mtime);
    if !has_content(&fd, entry, as_before)? {
        return Err(
            "the copy that stayed has been changed since; there is nothing to restore from".into(),
        );
    }
    make(&fd, &parent, entry)?;
    let unlink = || rustix::fs::unlinkat(&parent, aside, AtFlags::empty());
    let placed = match here {
        Some(link) => {
            let swap = || NAMES.exchange(&parent, aside, name, link);
            swap().and_then(|()| match inode(&parent, aside) == here {
                true => unlink(),
                false => swap(),
            })
        }
        None => NAMES.give(&parent, aside, &parent, name),
    };
    placed.map_err(|errno| {
        let _ = unlink();
        format!("cannot put the copy in its place: {}", sys::words(errno))
    })
}

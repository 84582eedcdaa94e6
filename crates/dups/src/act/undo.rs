//! Takes back what acting did, and sets right what a crash left half done.

use super::execute::{destination, open_folder};
use super::journal::{Entry, Journal, State};
use super::names::{Names, inode, spare};
use super::{Action, Refusal, Step, copy};
use crate::index::split;
use crate::{Error, sys};
use rustix::fs::{AtFlags, CWD};
use std::os::fd::OwnedFd;
use std::path::Path;

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

/// Sets right the steps of a journal that were under way when the process ended: what was not
/// finished is put back.
///
/// # Errors
/// When the journal cannot be read or written.
pub fn recover(journal: &Path) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let mut states = Vec::new();
    for (number, entry) in Journal::load(journal)? {
        if entry.state != State::Open {
            continue;
        }
        match settle(&entry) {
            Ok(State::Done) => {
                undone.finished += 1;
                states.push((number, State::Done));
            }
            Ok(state) => {
                undone.restored += 1;
                states.push((number, state));
            }
            Err(why) => undone.refused.push(Refusal {
                path: entry.step.remove.path.clone(),
                why,
            }),
        }
        undone.names.push(entry.step.remove.path);
    }
    Journal::reopen(journal)?.conclude(states)?;
    Ok(undone)
}

/// Finds out how far a step came by looking at the names, and puts it back unless it is finished.
fn settle(entry: &Entry) -> Result<State, String> {
    let step = &entry.step;
    let (folder, name) = split(&step.remove.path);
    let parent = match open_folder(folder) {
        Ok(parent) => parent,
        // Without its folder there is nothing half done.
        Err(_) => return Ok(State::Untouched),
    };
    let (keep_inode, old_inode) = (
        (step.keep.device, step.keep.ino),
        (step.remove.device, step.remove.ino),
    );
    let (keep, old) = (Some(keep_inode), Some(old_inode));
    let io = |errno| format!("cannot put it back: {}", sys::words(errno));
    let unlink = |name: &[u8]| rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(io);
    let here = inode(&parent, name);
    // Cut off within an exchange in steps.
    let spare = spare(&entry.aside);
    if inode(&parent, &spare) == old {
        match inode(&parent, &entry.aside) {
            None if here != old => {
                rustix::fs::renameat(&parent, &*spare, &parent, &*entry.aside).map_err(io)?;
            }
            _ if here == old => unlink(&spare)?,
            _ => {}
        }
    }
    let aside = inode(&parent, &entry.aside);
    match &step.action {
        Action::Reflink => Ok(State::Done),
        Action::Hardlink if aside.is_none() => Ok(if here == keep && here != old {
            State::Done
        } else {
            State::Untouched
        }),
        Action::Hardlink if aside == keep => {
            // Linked, not yet exchanged.
            unlink(&entry.aside)?;
            Ok(State::Untouched)
        }
        Action::Hardlink if aside == old && here == keep => {
            NAMES
                .exchange(&parent, &entry.aside, name, keep_inode)
                .map_err(io)?;
            unlink(&entry.aside)?;
            Ok(State::Untouched)
        }
        Action::Hardlink | Action::Delete if aside == old && here.is_none() => {
            NAMES
                .give(&parent, &entry.aside, &parent, name)
                .map_err(io)?;
            Ok(State::Untouched)
        }
        Action::Delete if aside.is_none() => Ok(match here == old {
            true => State::Untouched,
            false => State::Done,
        }),
        Action::Move(target) => {
            let to = destination(target, &step.remove.path);
            if inode(CWD, &to) == old {
                if aside == old {
                    unlink(&entry.aside)?;
                }
                return Ok(State::Done);
            }
            // On another file system a copy is made, named, and only then the original removed.
            let copied = crate::table::join(split(&to).0, &entry.aside);
            let unnamed = inode(CWD, &copied).is_some();
            if unnamed {
                rustix::fs::unlink(sys::path(&copied)).map_err(io)?;
            }
            if aside != old {
                return Ok(match here == old || inode(CWD, &to).is_none() {
                    true => State::Untouched,
                    false => State::Done,
                });
            }
            let original = crate::table::join(folder, &entry.aside);
            if !unnamed && same_content(&to, &original, step) {
                unlink(&entry.aside)?;
                return Ok(State::Done);
            }
            NAMES
                .give(&parent, &entry.aside, &parent, name)
                .map_err(io)?;
            Ok(State::Untouched)
        }
        Action::Hardlink | Action::Delete => Err(format!(
            "another file has its name by now; the old one is {}",
            crate::name::readable(&crate::table::join(folder, &entry.aside))
        )),
    }
}

fn same_content(a: &[u8], b: &[u8], step: &Step) -> bool {
    let (Ok(a), Ok(b)) = (sys::open_file(a), sys::open_file(b)) else {
        return false;
    };
    let whole = |fd: &OwnedFd| sys::identity_now(fd).is_ok_and(|now| now.size == step.remove.size);
    whole(&a) && whole(&b) && copy::equal(&a, &b, step.remove.size).unwrap_or(false)
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
    for (number, entry) in Journal::load(journal)?.into_iter().rev() {
        if entry.state != State::Done || entry.step.action == Action::Reflink {
            continue;
        }
        let result = match &entry.step.action {
            Action::Move(target) => move_back(&entry.step, target, &entry.aside),
            _ => copy_back(&entry.step, &entry.aside),
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
    Journal::reopen(journal)?.conclude(states)?;
    Ok(undone)
}

fn move_back(step: &Step, target: &[u8], aside: &[u8]) -> Result<(), String> {
    let from = destination(target, &step.remove.path);
    let (to_folder, name) = split(&step.remove.path);
    std::fs::create_dir_all(sys::path(to_folder))
        .map_err(|error| format!("cannot create its folder: {error}"))?;
    let to = open_folder(to_folder)?;
    let changed = || {
        format!(
            "the moved file is no longer {}",
            crate::name::readable(&from)
        )
    };
    let back = |errno| match errno {
        rustix::io::Errno::EXIST => "another file has its name by now".into(),
        errno => format!("cannot move it back: {}", sys::words(errno)),
    };
    let (from_folder, from_name) = split(&from);
    let from_parent = open_folder(from_folder).map_err(|_| changed())?;
    let now = inode(&from_parent, from_name).ok_or_else(changed)?;
    if now == (step.remove.device, step.remove.ino) {
        return NAMES
            .carry((&from_parent, from_name), (&to, name), aside, now)
            .map_err(back);
    }
    // A copy on another file system: it has kept its size and time.
    let fd = sys::open_file(&from).map_err(|_| changed())?;
    let state = sys::identity_now(&fd).map_err(sys::words)?;
    if now.0 == step.remove.device
        || (state.size, state.mtime) != (step.remove.size, step.remove.mtime)
    {
        return Err(changed());
    }
    if inode(&to, name).is_some() {
        return Err("another file has its name by now".into());
    }
    copy::make(&fd, &to, aside, &step.remove)?;
    NAMES.give(&to, aside, &to, name).map_err(|errno| {
        let _ = rustix::fs::unlinkat(&to, aside, AtFlags::empty());
        back(errno)
    })?;
    if inode(&from_parent, from_name) == Some(now) {
        let _ = rustix::fs::unlinkat(&from_parent, from_name, AtFlags::empty());
    }
    Ok(())
}

fn copy_back(step: &Step, aside: &[u8]) -> Result<(), String> {
    let (folder, name) = split(&step.remove.path);
    let parent = open_folder(folder)?;
    let here = inode(&parent, name);
    let keep_inode = Some((step.keep.device, step.keep.ino));
    let linked = step.action == Action::Hardlink;
    match (linked, here) {
        (true, here) if here != keep_inode => {
            return Err("it is no longer a name of the copy that stayed".into());
        }
        (false, Some(_)) => return Err("another file has its name by now".into()),
        _ => {}
    }
    let source = if linked {
        &step.remove.path
    } else {
        &step.keep.path
    };
    let fd = sys::open_file(source).map_err(sys::words)?;
    let now = sys::identity_now(&fd).map_err(sys::words)?;
    if (now.ino, now.size, now.mtime) != (step.keep.ino, step.keep.size, step.keep.mtime) {
        return Err(
            "the copy that stayed has been changed since; there is nothing to restore from".into(),
        );
    }
    copy::make(&fd, &parent, aside, &step.remove)?;
    let keep = (step.keep.device, step.keep.ino);
    let unlink = || rustix::fs::unlinkat(&parent, aside, AtFlags::empty());
    let placed = match linked {
        true => {
            let swap = || NAMES.exchange(&parent, aside, name, keep);
            swap().and_then(|()| match inode(&parent, aside) == keep_inode {
                true => unlink(),
                false => swap(),
            })
        }
        false => NAMES.give(&parent, aside, &parent, name),
    };
    placed.map_err(|errno| {
        let _ = unlink();
        format!("cannot put the copy in its place: {}", sys::words(errno))
    })
}

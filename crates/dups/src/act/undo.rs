//! Takes back what acting did, and sets right what a crash left half done.

use super::execute::{destination, inode, rename_new, swap};
use super::journal::{Entry, Journal, State};
use super::{Action, Refusal, Step};
use crate::index::split;
use crate::{Error, sys};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

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

fn open_folder(path: &[u8]) -> Result<OwnedFd, String> {
    rustix::fs::open(
        sys::path(path),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|errno| format!("{}: {}", crate::name::readable(path), sys::words(errno)))
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
    let keep = Some((step.keep.device, step.keep.ino));
    let old = Some((step.remove.device, step.remove.ino));
    let here = inode(&parent, name);
    let aside = inode(&parent, &entry.aside);
    let io = |errno| format!("cannot put it back: {}", sys::words(errno));
    match &step.action {
        Action::Reflink => Ok(State::Done),
        Action::Hardlink if aside.is_none() => Ok(if here == keep && here != old {
            State::Done
        } else {
            State::Untouched
        }),
        Action::Hardlink if aside == keep => {
            // Linked, not yet exchanged.
            rustix::fs::unlinkat(&parent, &entry.aside, AtFlags::empty()).map_err(io)?;
            Ok(State::Untouched)
        }
        Action::Hardlink if aside == old && here == keep => {
            swap(&parent, &entry.aside, name).map_err(io)?;
            rustix::fs::unlinkat(&parent, &entry.aside, AtFlags::empty()).map_err(io)?;
            Ok(State::Untouched)
        }
        Action::Hardlink | Action::Delete if aside == old && here.is_none() => {
            rename_new(&parent, &entry.aside, &parent, name).map_err(io)?;
            Ok(State::Untouched)
        }
        Action::Delete if aside.is_none() => Ok(match here == old {
            true => State::Untouched,
            false => State::Done,
        }),
        Action::Move(target) => {
            let to = destination(target, &step.remove.path);
            Ok(match inode(CWD, &to) == old {
                true => State::Done,
                false => State::Untouched,
            })
        }
        Action::Hardlink | Action::Delete => Err(format!(
            "another file has its name by now; the old one is {}",
            crate::name::readable(&crate::table::join(folder, &entry.aside))
        )),
    }
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
            Action::Move(target) => move_back(&entry.step, target),
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

fn move_back(step: &Step, target: &[u8]) -> Result<(), String> {
    let from = destination(target, &step.remove.path);
    if inode(CWD, &from) != Some((step.remove.device, step.remove.ino)) {
        return Err(format!(
            "the moved file is no longer {}",
            crate::name::readable(&from)
        ));
    }
    let (to_folder, name) = split(&step.remove.path);
    std::fs::create_dir_all(sys::path(to_folder))
        .map_err(|error| format!("cannot create its folder: {error}"))?;
    let (from_folder, from_name) = split(&from);
    rename_new(
        &open_folder(from_folder)?,
        from_name,
        &open_folder(to_folder)?,
        name,
    )
    .map_err(|errno| format!("cannot move it back: {}", sys::words(errno)))
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
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let create = || rustix::fs::openat(&parent, aside, flags, Mode::from_raw_mode(0o600));
    let new = create()
        .or_else(|errno| match errno {
            // The name is ours alone: what an undo that was killed left there.
            rustix::io::Errno::EXIST => {
                rustix::fs::unlinkat(&parent, aside, AtFlags::empty())?;
                create()
            }
            errno => Err(errno),
        })
        .map_err(|errno| format!("cannot create the copy: {}", sys::words(errno)))?;
    let give_up = |what: String| {
        let _ = rustix::fs::unlinkat(&parent, aside, AtFlags::empty());
        what
    };
    fill(fd, new, step).map_err(give_up)?;
    let placed = match linked {
        true => {
            swap(&parent, aside, name).and_then(|()| match inode(&parent, aside) == keep_inode {
                true => rustix::fs::unlinkat(&parent, aside, AtFlags::empty()),
                false => swap(&parent, aside, name),
            })
        }
        false => rename_new(&parent, aside, &parent, name),
    };
    placed.map_err(|errno| {
        give_up(format!(
            "cannot put the copy in its place: {}",
            sys::words(errno)
        ))
    })
}

/// Copies content, owner, permissions, extended attributes and times.
fn fill(from: OwnedFd, to: OwnedFd, step: &Step) -> Result<(), String> {
    let (mut from, mut to) = (File::from(from), File::from(to));
    let copied =
        std::io::copy(&mut from, &mut to).map_err(|error| format!("cannot copy: {error}"))?;
    if copied != step.keep.size {
        return Err("the copy that stayed changed while it was copied".into());
    }
    let old = &step.remove;
    rustix::fs::fchown(
        &to,
        Some(rustix::process::Uid::from_raw(old.uid)),
        Some(rustix::process::Gid::from_raw(old.gid)),
    )
    .map_err(|errno| format!("cannot give it its owner: {}", sys::words(errno)))?;
    rustix::fs::fchmod(&to, Mode::from_raw_mode(old.mode))
        .map_err(|errno| format!("cannot give it its permissions: {}", sys::words(errno)))?;
    let time = rustix::fs::Timespec {
        tv_sec: old.mtime.div_euclid(1_000_000_000),
        tv_nsec: old.mtime.rem_euclid(1_000_000_000),
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    rustix::fs::futimens(&to, &times)
        .map_err(|errno| format!("cannot give it its times: {}", sys::words(errno)))?;
    to.sync_all()
        .map_err(|error| format!("cannot bring it to disk: {error}"))
}

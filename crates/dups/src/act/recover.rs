//! Recovers steps that a crash interrupted.
//!
//! Device numbers change at every mount, so files are identified by inode number. No program except assay uses the
//! temporary names.

use super::copy;
use super::execute::move_destination;
use super::journal::{Journal, JournalStep, Loaded, StepState};
use super::names::{Names, read_inode, spare_name};
use super::undo::{self, Undone};
use super::{Action, Refusal};
use crate::name::split;
use crate::roots::Anchors;
use crate::{Error, sys};
use rustix::fs::AtFlags;
use std::os::fd::OwnedFd;
use std::path::Path;

/// How names are changed: with the flags of renameat2 if they are supported.
const NAMES: Names = Names { plain: false };

/// Recovers the steps of a journal that were running when the process ended: rolls back every unfinished step.
///
/// # Errors
/// The journal cannot be read or written.
pub fn recover(journal: &Path) -> Result<Undone, Error> {
    let mut undone = Undone::default();
    let mut states = Vec::new();
    let mut anchors = Anchors::default();
    let Loaded {
        entries,
        damaged,
        undoing,
        ..
    } = Journal::load(journal)?;
    undone.interrupted = undoing;
    let mut finder = undo::Finder::default();
    for (number, entry) in entries {
        if undoing
            && entry.state == StepState::Done
            && let Err(why) = finder.tidy(&entry)
        {
            let path = entry.step.remove.path.clone();
            undone.refused.push(Refusal { path, why });
        }
        if entry.state != StepState::Open {
            continue;
        }
        match settle(&entry, &mut anchors) {
            Ok(StepState::Done) => {
                undone.finished += 1;
                states.push((number, StepState::Done));
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
    undo::conclude(journal, states, &damaged)?;
    undone
        .refused
        .extend(undo::refuse_damaged_lines(journal, damaged));
    Ok(undone)
}

/// Determines from the file names how far a step got. Rolls the step back unless it is complete.
fn settle(entry: &JournalStep, anchors: &mut Anchors) -> Result<StepState, String> {
    let step = &entry.step;
    let root = anchors.stand(&step.remove.root)?;
    let (parent, name) = match root.parent(&step.remove.path) {
        Ok(found) => found,
        // Without the folder nothing is half done.
        Err(rustix::io::Errno::NOENT) => return Ok(StepState::Untouched),
        Err(errno) => {
            return Err(format!(
                "cannot open its folder: {}",
                sys::describe_errno(errno)
            ));
        }
    };
    let number = |name: &[u8]| read_inode(&parent, name).map(|found| found.1);
    let (keep, old) = (Some(step.keep.ino), Some(step.remove.ino));
    let io = |errno| format!("cannot put it back: {}", sys::describe_errno(errno));
    let unlink = |name: &[u8]| rustix::fs::unlinkat(&parent, name, AtFlags::empty()).map_err(io);
    let give_back = || {
        let given = NAMES.give(&parent, &entry.aside, &parent, name);
        given.map(|()| StepState::Untouched).map_err(io)
    };
    let here = number(name);
    // The process ended during an exchange in three steps.
    let spare = spare_name(&entry.aside);
    if number(&spare) == old {
        match number(&entry.aside) {
            None if here != old => {
                rustix::fs::renameat(&parent, &*spare, &parent, &*entry.aside).map_err(io)?;
            }
            _ if here == old => unlink(&spare)?,
            _ => {}
        }
    }
    let aside = number(&entry.aside);
    match &step.action {
        Action::Reflink => Ok(StepState::Done),
        Action::Hardlink if aside.is_none() => Ok(if here == keep && here != old {
            StepState::Done
        } else {
            StepState::Untouched
        }),
        Action::Hardlink if aside == keep => {
            // The link exists, but the exchange has not happened.
            unlink(&entry.aside)?;
            Ok(StepState::Untouched)
        }
        Action::Hardlink if aside == old && here == keep => {
            let kept = read_inode(&parent, name).unwrap_or_default();
            NAMES
                .exchange(&parent, &entry.aside, name, kept)
                .map_err(io)?;
            unlink(&entry.aside)?;
            Ok(StepState::Untouched)
        }
        Action::Hardlink | Action::Delete if aside == old && here.is_none() => give_back(),
        Action::Delete if aside.is_none() => Ok(match here == old {
            true => StepState::Untouched,
            false => StepState::Done,
        }),
        Action::Move(target) => settle_move(entry, target, anchors, (&parent, here, aside)),
        Action::Hardlink | Action::Delete => Err(format!(
            "another file has its name by now; the old one is {}",
            crate::name::format_readable(&crate::table::join(
                split(&step.remove.path).0,
                &entry.aside
            ))
        )),
    }
}

/// Recovers a move. `here` and `aside` are the inode numbers that the two names have now.
fn settle_move(
    entry: &JournalStep,
    target: &[u8],
    anchors: &mut Anchors,
    (parent, here, aside): (&OwnedFd, Option<u64>, Option<u64>),
) -> Result<StepState, String> {
    let step = &entry.step;
    let old = Some(step.remove.ino);
    let io = |errno| format!("cannot put it back: {}", sys::describe_errno(errno));
    let name = split(&step.remove.path).1;
    let give_back = || {
        let given = NAMES.give(parent, &entry.aside, parent, name);
        given.map(|()| StepState::Untouched).map_err(io)
    };
    let end = || {
        let ended = rustix::fs::unlinkat(parent, &entry.aside, AtFlags::empty());
        ended.map(|()| StepState::Done).map_err(io)
    };
    let place = move_destination(target, &step.remove.path);
    let anchor = entry.target.clone().unwrap_or_default();
    let to = match anchors.stand(&anchor) {
        Ok(root) => root.parent(&place).ok(),
        // The target may not be mounted. If the file is still here, it is restored; otherwise it is in the
        // target.
        Err(_) if aside == old => return give_back(),
        Err(_) if here == old => return Ok(StepState::Untouched),
        Err(why) => return Err(why),
    };
    let Some((to, new)) = to else {
        return match aside == old {
            true => give_back(),
            false => Ok(StepState::Untouched),
        };
    };
    let moved = crate::sys::open_file_at(&to, new).ok();
    let across = entry.found.as_ref().is_some_and(|found| found.across);
    let is_it = |fd: &OwnedFd| {
        sys::identity_now(fd).is_ok_and(|now| {
            let as_before = (now.size, now.mtime) == (step.remove.size, step.remove.mtime);
            now.ino == step.remove.ino && as_before
        })
    };
    if !across && moved.as_ref().is_some_and(is_it) {
        return match aside == old {
            true => end(),
            false => Ok(StepState::Done),
        };
    }
    // On another file system, a copy is made and named before the original is removed.
    let unnamed = read_inode(&to, &entry.aside).is_some();
    if unnamed {
        rustix::fs::unlinkat(&to, &entry.aside, AtFlags::empty()).map_err(io)?;
    }
    if aside != old {
        return Ok(match here == old || moved.is_none() {
            true => StepState::Untouched,
            false => StepState::Done,
        });
    }
    let original = crate::sys::open_file_at(parent, &entry.aside).ok();
    match (moved, original) {
        (Some(copy), Some(original)) if !unnamed && same_content(&copy, &original, step) => end(),
        _ => give_back(),
    }
}

fn same_content(a: &OwnedFd, b: &OwnedFd, step: &super::ActStep) -> bool {
    let size = step.remove.size;
    let whole = |fd: &OwnedFd| sys::identity_now(fd).is_ok_and(|now| now.size == size);
    whole(a) && whole(b) && matches!(copy::compare_content(a, b, size), Ok(Some(_)))
}

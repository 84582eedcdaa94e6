//! Finishes a step: checks the old file for the last time, then removes it or restores its name.

use super::execute::{Pending, Run, describe_failure};
use super::names::read_inode;
use super::{ActStep, Action, Subject};
use crate::Identity;
use crate::name::split;
use crate::sys;
use rustix::fs::AtFlags;
use std::os::fd::OwnedFd;

impl Run<'_> {
    /// Checks that replacing the name did not change the file that stays. A changed ctime would mean that both names
    /// were the same file.
    pub(super) fn unmoved(&self, keep: &OwnedFd, before: Identity) -> Result<(), String> {
        match sys::identity_there(keep) {
            Ok(now) if now == before => Ok(()),
            Ok(_) => Err("the copy that stays changed with it; put back".into()),
            Err(errno) => Err(sys::describe_errno(errno)),
        }
    }

    /// Restores the original name of a file. Always fails, with the error `why`.
    pub(super) fn give_back(
        &self,
        step: &ActStep,
        (from, ours): (&OwnedFd, &[u8]),
        to: &OwnedFd,
        why: String,
    ) -> Result<(), String> {
        match self.names.give(from, ours, to, split(&step.remove.path).1) {
            Ok(()) => Err(why),
            Err(errno) => Err(format!(
                "{why}; but it could not be put back ({}) and is now named {}",
                sys::describe_errno(errno),
                crate::name::format_readable(ours)
            )),
        }
    }

    /// Checks the old file for the last time and removes it.
    pub(super) fn finish(
        &mut self,
        step: &ActStep,
        aside: &[u8],
        open: &Pending,
        noted: bool,
    ) -> Result<(), String> {
        let still = |fd: &OwnedFd, subject: &Subject| {
            sys::identity_now(fd)
                .is_ok_and(|now| (now.size, now.mtime) == (subject.size, subject.mtime))
        };
        let kept_in_place = self.folder(&step.keep).is_ok_and(|(parent, name)| {
            read_inode(parent, name) == Some((step.keep.device, step.keep.ino))
        });
        let good = noted
            && kept_in_place
            && self.leased(&open.keep)
            && self.leased(&open.remove)
            && still(&open.keep, &step.keep)
            && still(&open.remove, &step.remove);
        let (_, name) = split(&step.remove.path);
        let why = if !noted {
            "the journal could not be written; put back"
        } else if kept_in_place {
            "a program began to write to it; put back"
        } else {
            "the copy that was to stay is gone from its place; put back"
        };
        let left = |path: &[u8]| {
            format!(
                "a program wrote to it and another file took its name; it is now {}",
                crate::name::format_readable(path)
            )
        };
        match (&step.action, good) {
            (Action::Hardlink | Action::Delete, true) => {
                if read_inode(&open.parent, aside) != Some((step.remove.device, step.remove.ino)) {
                    return Err("the name it was set aside under was taken away".into());
                }
                rustix::fs::unlinkat(&open.parent, aside, AtFlags::empty())
                    .map_err(|errno| describe_failure("remove", aside, errno))?;
                if let Ok(now) = sys::identity_now(&open.remove) {
                    self.touched
                        .insert((step.remove.device, step.remove.ino), now);
                }
                Ok(())
            }
            (Action::Hardlink, false) => match self.put_back(step, aside, &open.parent, name) {
                true => Err(why.into()),
                false => Err(left(&crate::table::join(split(&step.remove.path).0, aside))),
            },
            (Action::Delete, false) => {
                match self.names.give(&open.parent, aside, &open.parent, name) {
                    Ok(()) => Err(why.into()),
                    Err(_) => Err(left(&crate::table::join(split(&step.remove.path).0, aside))),
                }
            }
            (Action::Move(_), good) if let Some(to) = &open.across => {
                let done = match good {
                    true => self.settle_across(step, aside, open, to),
                    false => Err(why.into()),
                };
                if let Ok(now) = sys::identity_now(&open.remove) {
                    self.touched
                        .insert((step.remove.device, step.remove.ino), now);
                }
                done.inspect_err(|_| {
                    let _ = rustix::fs::unlinkat(to, aside, AtFlags::empty());
                })
            }
            // A moved file stays complete; a program that has it open can continue to write.
            (Action::Move(_) | Action::Reflink, _) => Ok(()),
        }
    }
}

//! Changes the names of a step's files, and reverts these changes.

use super::attributes::Attributes;
use super::copy::{self, Content};
use super::execute::{Pending, Run, describe_failure, move_destination};
use super::names::read_inode;
use super::{ActStep, Action};
use crate::name::split;
use crate::roots::OpenRoot;
use crate::sys;
use rustix::fs::{AtFlags, CWD, OFlags};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};

impl Run<'_> {
    /// Replaces the redundant file by a hard link to the file that stays, and keeps the redundant file under `aside`.
    pub(super) fn exchange(
        &self,
        step: &ActStep,
        aside: &[u8],
        keep: &OwnedFd,
        parent: &OwnedFd,
        name: &[u8],
    ) -> Result<(), String> {
        let descriptor = format!("/proc/self/fd/{}", keep.as_raw_fd());
        rustix::fs::linkat(CWD, descriptor, parent, aside, AtFlags::SYMLINK_FOLLOW)
            .map_err(|errno| describe_failure("link to", &step.keep.path, errno))?;
        let old = (step.remove.device, step.remove.ino);
        if let Err(errno) = self.names.exchange(parent, aside, name, old) {
            let _ = rustix::fs::unlinkat(parent, aside, AtFlags::empty());
            return Err(match errno {
                Errno::STALE => "another file took its place".into(),
                errno => describe_failure("replace", &step.remove.path, errno),
            });
        }
        if read_inode(parent, aside) != Some(old) {
            self.put_back(step, aside, parent, name);
            return Err("another file took its place".into());
        }
        Ok(())
    }

    /// Reverts [`Self::exchange`]. If another program has put a third file under the name, that file stays.
    pub(super) fn put_back(
        &self,
        step: &ActStep,
        aside: &[u8],
        parent: &OwnedFd,
        name: &[u8],
    ) -> bool {
        let keep = (step.keep.device, step.keep.ino);
        let swap = || self.names.exchange(parent, aside, name, keep);
        if read_inode(parent, name) != Some(keep) || swap().is_err() {
            return false;
        }
        if read_inode(parent, aside) == Some(keep) {
            return rustix::fs::unlinkat(parent, aside, AtFlags::empty()).is_ok();
        }
        // Another program replaced the name between the two calls, so its file goes back.
        let _ = swap();
        false
    }

    /// Renames a file to a temporary name, and checks that it was the expected file.
    pub(super) fn set_away(
        &self,
        step: &ActStep,
        parent: &OwnedFd,
        name: &[u8],
        aside: &[u8],
    ) -> Result<(), String> {
        self.names
            .take(parent, name, parent, aside)
            .map_err(|errno| describe_failure("rename", &step.remove.path, errno))?;
        if read_inode(parent, aside) == Some((step.remove.device, step.remove.ino)) {
            return Ok(());
        }
        match self.names.give(parent, aside, parent, name) {
            Ok(()) => Err("another file took its place".into()),
            Err(_) => Err(format!(
                "another file took its place twice; one is now named {}",
                crate::name::format_readable(aside)
            )),
        }
    }

    /// Moves a file to another folder. If the folder is on another file system, only creates a copy under the name
    /// `aside` there, and returns the folder.
    pub(super) fn carry(
        &self,
        (step, attributes, content): (&ActStep, &Attributes, &Content),
        aside: &[u8],
        (remove, from, name): (&OwnedFd, &OwnedFd, &[u8]),
        target: &OpenRoot,
        keep: &OwnedFd,
    ) -> Result<Option<OwnedFd>, String> {
        let place = move_destination(&target.anchor.path, &step.remove.path);
        let (to, new) = target
            .make_parent(&place, (step.remove.uid, step.remove.gid))
            .map_err(|errno| describe_failure("create the folder to move to for", &place, errno))?;
        if read_inode(&to, new).is_some() {
            return Err("the place to move it to is taken".into());
        }
        let before = sys::identity_there(keep).map_err(sys::describe_errno)?;
        let old = (step.remove.device, step.remove.ino);
        match self.names.carry((from, name), (&to, new), aside, old) {
            Ok(()) if read_inode(&to, new) == Some(old) => {
                self.unmoved(keep, before)
                    .or_else(|why| self.give_back(step, (&to, new), from, why))?;
                Ok(None)
            }
            Ok(()) => match self.names.give(&to, new, from, name) {
                Ok(()) => Err("another file took its place".into()),
                Err(_) => Err(format!(
                    "another file took its place twice; one is now named {}",
                    crate::name::format_readable(new)
                )),
            },
            Err(Errno::XDEV) => {
                copy::make(
                    remove,
                    &to,
                    aside,
                    &step.remove,
                    (attributes, Some(content)),
                    false,
                )?;
                Ok(Some(to))
            }
            Err(Errno::EXIST) => Err("the place to move it to is taken".into()),
            Err(Errno::STALE) => Err("another file took its place".into()),
            Err(errno) => Err(describe_failure("rename", &step.remove.path, errno)),
        }
    }

    /// Renames the copy on the other file system to its final name, and removes the original.
    pub(super) fn settle_across(
        &self,
        step: &ActStep,
        aside: &[u8],
        open: &Pending,
        to: &OwnedFd,
    ) -> Result<(), String> {
        let Action::Move(target) = &step.action else {
            return Ok(());
        };
        let (_, name) = split(&step.remove.path);
        let destination = move_destination(target, &step.remove.path);
        let before = sys::identity_there(&open.keep).map_err(sys::describe_errno)?;
        self.set_away(step, &open.parent, name, aside)?;
        self.unmoved(&open.keep, before)
            .or_else(|why| self.give_back(step, (&open.parent, aside), &open.parent, why))?;
        let back = |why: String| {
            let _ = self.names.give(&open.parent, aside, &open.parent, name);
            Err(why)
        };
        let place = split(&destination).1;
        if let Err(errno) = self.names.give(to, aside, to, place) {
            return back(describe_failure("place the copy as", &destination, errno));
        }
        let on_disk = reopen_folder(to).and_then(rustix::fs::fsync);
        // While the name is synced to disk, a program may start to write.
        let why = match on_disk {
            Ok(()) if self.leased(&open.remove) => None,
            Ok(()) => Some("a program began to write to it; put back".into()),
            Err(errno) => Some(describe_failure("bring to disk", &destination, errno)),
        };
        if let Some(why) = why {
            let _ = rustix::fs::unlinkat(to, place, AtFlags::empty());
            return back(why);
        }
        rustix::fs::unlinkat(&open.parent, aside, AtFlags::empty())
            .map_err(|errno| describe_failure("remove", aside, errno))
    }
}

/// Opens a folder again in a way that permits fsync(2).
fn reopen_folder(folder: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(folder, ".", flags, rustix::fs::Mode::empty())
}

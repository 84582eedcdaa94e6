//! Removes files that an interrupted undo left: files under temporary names, and moved files whose original is already
//! restored.

use super::current_names::Finder;
use crate::act::Action;
use crate::act::execute::move_destination;
use crate::act::journal::JournalStep;
use crate::act::names::{read_inode, spare_name};
use crate::sys;
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;

impl Finder {
    /// Removes the temporary files that an interrupted undo of a step left.
    pub(in crate::act) fn tidy(&mut self, entry: &JournalStep) -> Result<(), String> {
        let Some((folder, name)) = self.folder(&entry.step.remove)? else {
            return Ok(());
        };
        let is_there = read_inode(&folder, name).is_some();
        // As long as its name is missing, a temporary file may be the only remaining copy.
        let disposable = match &entry.step.action {
            Action::Hardlink => is_there,
            Action::Delete => true,
            Action::Move(target) => {
                let place = move_destination(target, &entry.step.remove.path);
                is_there || self.find_moved(entry, &place)?.is_some()
            }
            Action::Reflink => false,
        };
        if disposable {
            for ours in [entry.aside.clone(), spare_name(&entry.aside)] {
                remove(&folder, &ours)?;
            }
        }
        Ok(())
    }

    /// Removes a moved file or its copy after the original is restored.
    pub(super) fn drop_moved(&mut self, entry: &JournalStep) -> Result<(), String> {
        let Action::Move(target) = &entry.step.action else {
            return Ok(());
        };
        let place = move_destination(target, &entry.step.remove.path);
        let (Some((folder, name)), Some(moved)) = (
            self.folder(&entry.step.remove)?,
            self.find_moved(entry, &place)?,
        ) else {
            return Ok(());
        };
        let one = read_inode(&folder, name) == Some(moved.inode);
        match one || !moved.itself && self.has_content(&moved.fd, entry, false)? {
            true => remove(&moved.folder, &moved.name),
            false => Ok(()),
        }
    }
}

fn remove(folder: &OwnedFd, name: &[u8]) -> Result<(), String> {
    match rustix::fs::unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(format!(
            "cannot remove {}: {}",
            crate::name::format_readable(name),
            sys::describe_errno(errno)
        )),
    }
}

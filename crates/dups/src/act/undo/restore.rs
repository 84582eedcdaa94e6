//! Restores the names of files, one file with all its names at a time.

use super::current_names::{Finder, Living, Moved, Need, TAKEN};
use super::inode::Inode;
use super::{UndoMoment, UndoOptions};
use crate::act::attributes::Attributes;
use crate::act::copy;
use crate::act::journal::JournalStep;
use crate::act::names::{self, Names, read_inode};
use crate::sys;
use rustix::fs::{AtFlags, CWD};
use rustix::io::Errno;
use std::os::fd::{AsRawFd as _, OwnedFd};

/// How names are changed: with the flags of renameat2 if they are supported.
const NAMES: Names = Names { plain: false };

/// Restores the files that the steps of a run changed.
pub(super) struct Restorer<'a> {
    finder: Finder,
    options: &'a UndoOptions<'a>,
}

/// Where a file is restored: folder, name, and the inode that has this name now.
struct Place<'s> {
    folder: OwnedFd,
    name: &'s [u8],
    here: Option<names::Inode>,
}

impl<'a> Restorer<'a> {
    pub fn new(options: &'a UndoOptions<'a>) -> Self {
        Self {
            finder: Finder::default(),
            options,
        }
    }

    /// Restores all names of a file. Returns the result for each step number.
    pub fn restore(&mut self, inode: &Inode<'_>) -> Vec<(u64, Result<(), String>)> {
        let mut living = self.finder.find_living(inode);
        let mut results = Vec::new();
        for (number, entry) in inode.done.iter().rev() {
            let at = |moment| (self.options.interfere)(moment, &entry.step);
            at(UndoMoment::Begun);
            let result = self.restore_name(entry, inode.shared, &mut living);
            if result.is_ok() {
                at(UndoMoment::Restored);
            }
            results.push((*number, result));
        }
        results
    }

    fn restore_name(
        &mut self,
        entry: &JournalStep,
        shared: bool,
        living: &mut Option<Living>,
    ) -> Result<(), String> {
        let (from, here, moved) = match self.finder.look(entry)? {
            Need::Nothing(fd) => {
                living.get_or_insert_with(|| Living::new(fd));
                self.finder.drop_moved(entry)?;
                return self.finder.tidy(entry);
            }
            Need::Content { from, here } => (from, here, None),
            Need::Moved(moved) if moved.itself => return self.move_back(entry, moved),
            Need::Moved(moved) => {
                let kept = shared.then(|| self.finder.open_keep(entry)).flatten();
                let from = match kept {
                    Some(kept) => kept,
                    None => moved.fd.try_clone().map_err(|error| error.to_string())?,
                };
                (from, None, Some(moved))
            }
        };
        let (folder, name) = self.make_home(entry)?;
        let place = Place { folder, name, here };
        self.make_file(entry, &place, &from, shared, living.as_ref())?;
        (self.options.interfere)(UndoMoment::Made, &entry.step);
        self.put_in_place(entry, &place)?;
        if let Ok(fd) = sys::open_file_at(&place.folder, name) {
            living.get_or_insert_with(|| Living::new(fd));
        }
        if let Some(moved) = moved
            && read_inode(&moved.folder, &moved.name) == Some(moved.inode)
            && sys::identity_now(&moved.fd).is_ok_and(|now| now.size == entry.step.remove.size)
        {
            let _ = rustix::fs::unlinkat(&moved.folder, &*moved.name, AtFlags::empty());
        }
        Ok(())
    }

    /// Opens the folder of a restored file; creates it if it is missing.
    fn make_home<'s>(&mut self, entry: &'s JournalStep) -> Result<(OwnedFd, &'s [u8]), String> {
        let like = &entry.step.remove;
        let root = self.finder.anchors.stand(&like.root)?;
        root.make_parent(&like.path, (like.uid, like.gid))
            .map_err(|errno| format!("cannot open its folder: {}", sys::describe_errno(errno)))
    }

    /// Creates the file under the temporary name: a link if another name of the file exists, else a copy.
    fn make_file(
        &self,
        entry: &JournalStep,
        place: &Place<'_>,
        from: &OwnedFd,
        shared: bool,
        living: Option<&Living>,
    ) -> Result<(), String> {
        if let Some(living) = living {
            let linked = link(&living.fd, &place.folder, &entry.aside);
            match linked {
                Ok(()) => return Ok(()),
                Err(_) if self.options.despite_cost => {}
                Err(errno) => {
                    return Err(format!(
                        "it cannot be one file with its other names again ({}); --despite-cost makes a copy",
                        sys::describe_errno(errno)
                    ));
                }
            }
        }
        match make_copy(from, &place.folder, entry, shared) {
            // Blocks cannot be shared across file systems. The undo plan has counted this copy.
            Err(_) if shared && (self.options.despite_cost || !is_beside(from, &place.folder)) => {
                make_copy(from, &place.folder, entry, false)
            }
            made => made,
        }
    }

    /// Gives the restored file its name, and removes the file that had this name.
    fn put_in_place(&self, entry: &JournalStep, place: &Place<'_>) -> Result<(), String> {
        let (folder, name, aside) = (&place.folder, place.name, &*entry.aside);
        let unlink = || rustix::fs::unlinkat(folder, aside, AtFlags::empty());
        let placed = match place.here {
            Some(link) => {
                let swap = || NAMES.exchange(folder, aside, name, link);
                swap().and_then(|()| {
                    (self.options.interfere)(UndoMoment::Placed, &entry.step);
                    match read_inode(folder, aside) == place.here {
                        true => unlink(),
                        false => swap().and(Err(Errno::STALE)),
                    }
                })
            }
            None => NAMES.give(folder, aside, folder, name),
        };
        placed.map_err(|errno| {
            let _ = unlink();
            match errno {
                Errno::EXIST | Errno::STALE => TAKEN.into(),
                errno => format!(
                    "cannot put the file in its place: {}",
                    sys::describe_errno(errno)
                ),
            }
        })
    }

    fn move_back(&mut self, entry: &JournalStep, moved: Moved) -> Result<(), String> {
        let (to, name) = self.make_home(entry)?;
        let back = |errno| match errno {
            Errno::EXIST => TAKEN.into(),
            errno => format!("cannot move it back: {}", sys::describe_errno(errno)),
        };
        let from = (&moved.folder, &*moved.name);
        match NAMES.carry(from, (&to, name), &entry.aside, moved.inode) {
            Err(Errno::XDEV) => {}
            other => return other.map_err(back),
        }
        // Another mount of the same file system.
        if read_inode(&to, name).is_some() {
            return Err(TAKEN.into());
        }
        if !self.finder.has_content(&moved.fd, entry, true)? {
            return Err("the moved file has been changed since".into());
        }
        make_copy(&moved.fd, &to, entry, false)?;
        NAMES.give(&to, &entry.aside, &to, name).map_err(|errno| {
            let _ = rustix::fs::unlinkat(&to, &*entry.aside, AtFlags::empty());
            back(errno)
        })?;
        if read_inode(from.0, from.1) == Some(moved.inode) {
            let _ = rustix::fs::unlinkat(from.0, from.1, AtFlags::empty());
        }
        Ok(())
    }
}

/// Copies an open file to the temporary name, with the metadata of the removed file as far as the journal contains it.
fn make_copy(
    from: &OwnedFd,
    parent: &OwnedFd,
    entry: &JournalStep,
    clone: bool,
) -> Result<(), String> {
    let like = &entry.step.remove;
    match &entry.found {
        Some(found) => {
            let what = (&found.attributes, Some(&found.content));
            copy::make(from, parent, &entry.aside, like, what, clone)
        }
        None => {
            let attributes = Attributes::of(from)?;
            copy::make(from, parent, &entry.aside, like, (&attributes, None), clone)
        }
    }
}

/// Returns whether a file and a folder are on the same file system. The subvolumes of a file system count as one.
pub(super) fn is_beside(file: &OwnedFd, folder: &OwnedFd) -> bool {
    let id = |fd: &OwnedFd| rustix::fs::fstatvfs(fd).map(|fs| fs.f_fsid);
    let device = |fd: &OwnedFd| rustix::fs::fstat(fd).map(|stat| stat.st_dev);
    let uuid = |fd: &OwnedFd| sys::read_fs_uuid(fd, "btrfs");
    id(file) == id(folder)
        || device(file) == device(folder)
        || uuid(file).is_some() && uuid(file) == uuid(folder)
}

/// Creates another hard link to an open file.
fn link(file: &OwnedFd, folder: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let link = || rustix::fs::linkat(CWD, &*descriptor, folder, name, AtFlags::SYMLINK_FOLLOW);
    link().or_else(|errno| match errno {
        // Remove a file that a killed undo left.
        Errno::EXIST => {
            rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
            link()
        }
        errno => Err(errno),
    })
}

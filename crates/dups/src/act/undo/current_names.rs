//! Determines what the names of a journal refer to now. Changes nothing, so that an undo plan and the undo itself are
//! based on the same answer.

use super::inode::Inode;
use crate::act::attributes::Attributes;
use crate::act::copy::Content;
use crate::act::execute::move_destination;
use crate::act::journal::JournalStep;
use crate::act::names::{self, read_inode};
use crate::act::{Action, Subject};
use crate::roots::Anchors;
use crate::sys;
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

pub(super) const TAKEN: &str = "another file has its name by now";
const NOT_LINKED: &str = "it is no longer a name of the copy that stayed";
const CHANGED: &str =
    "the copy that stayed has been changed since; there is nothing to restore from";

/// What must be done to restore a name.
pub(super) enum Need {
    /// No action: the name is already restored.
    Nothing(OwnedFd),
    /// Restore the name with the original content.
    Content {
        /// Open file from which the content is copied, if no other name of the original file exists.
        from: OwnedFd,
        /// File that has the name now; `None` if the name is free.
        here: Option<names::Inode>,
    },
    /// Move the file back, or continue an interrupted move.
    Moved(Moved),
}

/// A moved file at its current location.
pub(super) struct Moved {
    pub folder: OwnedFd,
    /// Name of the file in its current folder.
    pub name: Vec<u8>,
    pub fd: OwnedFd,
    pub inode: names::Inode,
    /// Whether this is the moved file itself, and not a copy on another file system.
    pub itself: bool,
}

/// A file of the journal that still exists; its other names become hard links to it.
pub(super) struct Living {
    pub fd: OwnedFd,
    /// The mount through which the file was opened, because hard links do not cross mounts.
    pub mount: Option<u64>,
}

impl Living {
    pub fn new(fd: OwnedFd) -> Self {
        let mount = sys::mount_id(&fd);
        Self { fd, mount }
    }
}

/// Finds the files that a journal refers to. Opens each folder once and hashes each file once.
#[derive(Default)]
pub(in crate::act) struct Finder {
    pub anchors: Anchors,
    /// Content hashes by device and inode, with size and mtime of the file when it was hashed.
    contents: HashMap<names::Inode, (u64, i64, Content)>,
}

impl Finder {
    /// Returns the current folder and the name of a step's file.
    pub fn folder<'s>(&mut self, like: &'s Subject) -> Result<Option<(OwnedFd, &'s [u8])>, String> {
        let root = self.anchors.stand(&like.root)?;
        match root.parent(&like.path) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(format!(
                "cannot open its folder: {}",
                sys::describe_errno(errno)
            )),
        }
    }

    /// Returns the content hash of an open file. Reads the file only if the hash is unknown or the file has changed.
    fn content(&mut self, fd: &OwnedFd) -> Result<Content, String> {
        let stat = sys::stat_fd(fd).map_err(sys::describe_errno)?;
        let (file, now) = (
            (sys::statx_device(&stat), stat.stx_ino),
            sys::statx_identity(&stat),
        );
        if let Some((size, mtime, content)) = self.contents.get(&file)
            && (*size, *mtime) == (now.size, now.mtime)
        {
            return Ok(content.clone());
        }
        let content = Content::of(fd, now.size)?;
        let known = (now.size, now.mtime, content.clone());
        self.contents.insert(file, known);
        Ok(content)
    }

    /// Returns whether an open file has the content of the removed file. If the journal has no content hash, compares
    /// size and times.
    pub(super) fn has_content(
        &mut self,
        fd: &OwnedFd,
        entry: &JournalStep,
        as_before: bool,
    ) -> Result<bool, String> {
        let size = entry.step.remove.size;
        if sys::identity_now(fd).map_err(sys::describe_errno)?.size != size {
            return Ok(false);
        }
        match &entry.found {
            Some(found) => Ok(self.content(fd)? == found.content),
            None => Ok(as_before),
        }
    }

    /// Returns whether an open file equals the step's original file in everything except the inode number.
    fn is_as_before(&mut self, fd: &OwnedFd, entry: &JournalStep) -> bool {
        let like = &entry.step.remove;
        let Ok(stat) = sys::stat_fd(fd) else {
            return false;
        };
        let now = Subject::from_stat(Vec::new(), &like.root, &stat);
        let alike = |one: &Subject| (one.size, one.mtime, one.mode, one.uid, one.gid);
        let found = entry.found.as_ref();
        alike(&now) == alike(like)
            && found.is_none_or(|found| {
                Attributes::of(fd).is_ok_and(|attributes| attributes == found.attributes)
            })
            && self.has_content(fd, entry, true) == Ok(true)
    }

    /// Finds a name that still refers to the original file, or refers to it again after an undo.
    pub(super) fn find_living(&mut self, inode: &Inode<'_>) -> Option<Living> {
        let (_, sample) = inode.done.first()?;
        for other in &inode.others {
            let Ok(root) = self.anchors.stand(&other.root) else {
                continue;
            };
            let Ok((folder, name)) = root.parent(other.path) else {
                continue;
            };
            let Ok(fd) = sys::open_file_at(&folder, name) else {
                continue;
            };
            let Ok(now) = sys::identity_now(&fd) else {
                continue;
            };
            let like = &sample.step.remove;
            let is_it = match other.undone {
                Some(entry) => self.is_as_before(&fd, entry),
                None => {
                    (now.ino, now.size, now.mtime) == (like.ino, like.size, like.mtime)
                        && self.has_content(&fd, sample, true) == Ok(true)
                }
            };
            if is_it {
                return Some(Living::new(fd));
            }
        }
        None
    }

    /// Determines what must be done to restore a name.
    ///
    /// # Errors
    /// The reason why the name cannot be restored.
    pub(super) fn look(&mut self, entry: &JournalStep) -> Result<Need, String> {
        match &entry.step.action {
            Action::Move(target) => self.look_moved(entry, target),
            _ => self.look_removed(entry),
        }
    }

    fn look_removed(&mut self, entry: &JournalStep) -> Result<Need, String> {
        let step = &entry.step;
        let linked = step.action == Action::Hardlink;
        let home = self.folder(&step.remove)?;
        let here = home.as_ref().and_then(|(folder, name)| {
            let fd = sys::open_file_at(folder, name).ok()?;
            Some((read_inode(folder, name)?, fd))
        });
        let kept = self.folder(&step.keep).ok().flatten();
        let keep = kept
            .as_ref()
            .and_then(|(folder, name)| read_inode(folder, name));
        let from = match (here, linked) {
            (Some((here, fd)), true) if Some(here) == keep || here.1 == step.keep.ino => {
                return self.content_of(entry, fd, Some(here));
            }
            (Some((_, fd)), _) if self.is_as_before(&fd, entry) => return Ok(Need::Nothing(fd)),
            (_, true) => return Err(NOT_LINKED.into()),
            (None, false)
                if home
                    .as_ref()
                    .is_some_and(|(at, name)| read_inode(at, name).is_some()) =>
            {
                return Err(TAKEN.into());
            }
            (Some(_), false) => return Err(TAKEN.into()),
            (None, false) => match &kept {
                Some((folder, name)) => {
                    sys::open_file_at(folder, name).map_err(sys::describe_errno)?
                }
                None => return Err("the folder of the copy that stayed is gone".into()),
            },
        };
        self.content_of(entry, from, None)
    }

    fn content_of(
        &mut self,
        entry: &JournalStep,
        from: OwnedFd,
        here: Option<names::Inode>,
    ) -> Result<Need, String> {
        let keep = &entry.step.keep;
        let now = sys::identity_now(&from).map_err(sys::describe_errno)?;
        let as_before = (now.ino, now.mtime) == (keep.ino, keep.mtime);
        match self.has_content(&from, entry, as_before)? {
            true => Ok(Need::Content { from, here }),
            false => Err(CHANGED.into()),
        }
    }

    fn look_moved(&mut self, entry: &JournalStep, target: &[u8]) -> Result<Need, String> {
        let step = &entry.step;
        let place = move_destination(target, &step.remove.path);
        let changed = || {
            format!(
                "the moved file is no longer {}",
                crate::name::format_readable(&place)
            )
        };
        let home = self.folder(&step.remove)?;
        let here = home.as_ref().and_then(|(folder, name)| {
            read_inode(folder, name)?;
            sys::open_file_at(folder, name).ok()
        });
        let moved = self.find_moved(entry, &place)?;
        if let Some(fd) = here {
            // A killed undo may have left the moved copy.
            return match self.is_as_before(&fd, entry) {
                true => Ok(Need::Nothing(fd)),
                false => Err(TAKEN.into()),
            };
        }
        let moved = moved.ok_or_else(changed)?;
        if moved.itself {
            return Ok(Need::Moved(moved));
        }
        // A copy on another file system has the same size and time.
        let state = sys::identity_now(&moved.fd).map_err(sys::describe_errno)?;
        let as_before = (state.size, state.mtime) == (step.remove.size, step.remove.mtime);
        match self.has_content(&moved.fd, entry, as_before)? {
            true => Ok(Need::Moved(moved)),
            false => Err(changed()),
        }
    }

    /// Opens the copy that stayed, if its content is unchanged, so that a restored file can share its blocks.
    pub(super) fn open_keep(&mut self, entry: &JournalStep) -> Option<OwnedFd> {
        let (folder, name) = self.folder(&entry.step.keep).ok().flatten()?;
        let fd = sys::open_file_at(&folder, name).ok()?;
        (self.has_content(&fd, entry, false) == Ok(true)).then_some(fd)
    }

    /// Finds a moved file under its name, or under the temporary name of an interrupted undo.
    pub(super) fn find_moved(
        &mut self,
        entry: &JournalStep,
        place: &[u8],
    ) -> Result<Option<Moved>, String> {
        let anchor = entry.target.clone().unwrap_or_default();
        let root = self.anchors.stand(&anchor)?;
        let Ok((folder, name)) = root.parent(place) else {
            return Ok(None);
        };
        let across = entry.found.as_ref().is_some_and(|found| found.across);
        for name in [name, &entry.aside] {
            let Ok(fd) = sys::open_file_at(&folder, name) else {
                continue;
            };
            let state = sys::identity_now(&fd).map_err(sys::describe_errno)?;
            let Some(inode) = read_inode(&folder, name).filter(|now| now.1 == state.ino) else {
                continue;
            };
            let itself = !across && inode.1 == entry.step.remove.ino;
            let name = name.to_vec();
            return Ok(Some(Moved {
                folder,
                name,
                fd,
                inode,
                itself,
            }));
        }
        Ok(None)
    }
}

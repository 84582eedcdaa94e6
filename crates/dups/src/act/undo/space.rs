//! Computes the disk space that an undo needs, before anything is changed.

use super::current_names::{Finder, Living, Need};
use super::inode::Inode;
use super::restore::is_beside;
use crate::act::journal::{Journal, JournalStep, Loaded};
use crate::act::{ActStep, Refusal};
use crate::{Error, sys};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Effects and cost of an undo.
#[derive(Debug, Default)]
pub struct UndoPlan {
    /// Number of names that the undo restores.
    pub names: u64,
    /// Number of copies that the undo makes. The remaining names become links or are renamed.
    pub copies: u64,
    /// Size of these copies in bytes.
    pub bytes: u64,
    /// Number of bytes that the run freed when it changed these names.
    pub freed: u64,
    /// File systems with too little space.
    pub short: Vec<Shortage>,
    /// Names that were hard links of a file but would become separate copies, with the reasons.
    pub apart: Vec<Refusal>,
    /// Names that cannot be restored, with reasons.
    pub refused: Vec<Refusal>,
}

/// A file system that has too little space for an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortage {
    /// A folder on this file system, by which messages identify it.
    pub folder: Vec<u8>,
    /// Bytes that the copies on this file system need.
    pub needed: u64,
    /// Number of free bytes on this file system.
    pub free: u64,
}

impl UndoPlan {
    /// Returns whether the undo needs more space than the run freed, or more than is free. Copies may take an
    /// eighth more than the removed files, because their blocks are newly allocated.
    #[must_use]
    pub fn is_costly(&self) -> bool {
        let allowed = self.freed + self.freed / 8 + 64 * 1024;
        !self.short.is_empty() || !self.apart.is_empty() || self.bytes > allowed
    }
}

/// Computes an undo plan without changing anything.
///
/// # Errors
/// The journal cannot be read.
pub fn plan_undo(journal: &Path) -> Result<UndoPlan, Error> {
    let Loaded { entries, .. } = Journal::load(journal)?;
    let mut planner = Planner::default();
    for inode in Inode::group(&entries).iter().rev() {
        planner.add(inode);
    }
    Ok(planner.finish())
}

#[derive(Default)]
struct Planner {
    plan: UndoPlan,
    finder: Finder,
    /// Needed space per device, with a folder on the device and the free bytes.
    devices: BTreeMap<u64, Shortage>,
}

impl Planner {
    fn add(&mut self, inode: &Inode<'_>) {
        let living = self.finder.find_living(inode);
        let lost = living.is_none() && inode.has_other_names;
        // Mount of the file to which further names are linked.
        let mut mount = living.map(|living| living.mount);
        self.plan.freed += inode.freed();
        for (_, entry) in inode.done.iter().rev() {
            let from = match self.finder.look(entry) {
                Ok(Need::Nothing(fd)) => {
                    mount.get_or_insert_with(|| Living::new(fd).mount);
                    continue;
                }
                Ok(Need::Moved(moved)) if moved.itself => {
                    self.plan.names += 1;
                    continue;
                }
                Ok(Need::Moved(moved)) if inode.shared => {
                    self.finder.open_keep(entry).unwrap_or(moved.fd)
                }
                Ok(Need::Moved(moved)) => moved.fd,
                Ok(Need::Content { from, .. }) => from,
                Err(why) => {
                    self.plan.refused.push(refuse(&entry.step, why));
                    continue;
                }
            };
            self.plan.names += 1;
            let home = self.home(entry);
            let here = home.as_ref().and_then(sys::mount_id);
            let why = match mount {
                Some(living) if living.is_none() || here.is_none() || living == here => continue,
                Some(_) => Some("links do not reach from one mount to another"),
                None if lost => Some("no other name of its file can be found"),
                None => None,
            };
            let why = why.map(str::to_owned);
            self.plan
                .apart
                .extend(why.map(|why| refuse(&entry.step, why)));
            let clone = inode.shared && home.as_ref().is_some_and(|home| is_beside(&from, home));
            if !clone {
                self.charge(entry, &from, home.as_ref());
            }
            mount.get_or_insert(here);
        }
    }

    /// Adds the cost of a copy to the plan.
    fn charge(&mut self, entry: &JournalStep, from: &OwnedFd, home: Option<&OwnedFd>) {
        let blocks = rustix::fs::fstat(from).map_or(0, |stat| stat.st_blocks);
        let bytes = u64::try_from(blocks).unwrap_or(0) * 512;
        self.plan.copies += 1;
        self.plan.bytes += bytes;
        let Some(home) = home else { return };
        let (Ok(stat), Ok(fs)) = (rustix::fs::fstat(home), rustix::fs::fstatvfs(home)) else {
            return;
        };
        let known = self.devices.entry(stat.st_dev).or_insert_with(|| Shortage {
            folder: crate::name::split(&entry.step.remove.path).0.to_vec(),
            needed: 0,
            // Reserved blocks count as used even for root, because ext4 reserves some of them for its own use.
            free: fs.f_bavail.saturating_mul(fs.f_frsize),
        });
        known.needed += bytes;
    }

    /// Opens the folder of a name, or its nearest existing parent.
    fn home(&mut self, entry: &JournalStep) -> Option<OwnedFd> {
        let like = &entry.step.remove;
        match self.finder.folder(like) {
            Ok(Some((folder, _))) => Some(folder),
            _ => {
                let root = self.finder.anchors.stand(&like.root).ok()?;
                root.fd.try_clone().ok()
            }
        }
    }

    fn finish(mut self) -> UndoPlan {
        let short = self.devices.into_values();
        self.plan.short = short.filter(|one| one.needed > one.free).collect();
        self.plan
    }
}

fn refuse(step: &ActStep, why: String) -> Refusal {
    Refusal {
        path: step.remove.path.clone(),
        why,
    }
}

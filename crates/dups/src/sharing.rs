//! Stage 5, on file systems with reflinks: which copies already share their blocks, so that what
//! is shared is not promised again.

use crate::group::Groups;
use crate::table::{FileId, Files};
use crate::{fsinfo, sys};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Most extents looked at; a file in more pieces counts as sharing nothing.
const EXTENTS: usize = 65_536;

/// Whether any root lies on a file system with reflinks. Others below it are only entered when
/// asked for, and then count as copies in full.
pub(crate) fn is_possible(roots: &[std::path::PathBuf]) -> bool {
    roots
        .iter()
        .any(|root| fsinfo::has_reflinks(rustix::fs::statfs(root)))
}

/// Asks where the copies lie whose place is not remembered; returns how many were opened.
pub(crate) fn locate_copies(files: &mut Files, groups: &mut Groups) -> u64 {
    let mut capable: HashMap<u16, bool> = HashMap::new();
    let mut opened = 0;
    let mut changed = false;
    for number in 0..groups.len() {
        let mut places: Vec<(FileId, u64)> = Vec::new();
        for id in groups.at(number).files {
            let fs = files.file(*id).fs;
            let able = *capable.entry(fs).or_insert_with(|| {
                fsinfo::has_reflinks(open(files, *id).and_then(rustix::fs::fstatfs))
            });
            if able && files.share(*id).is_none() {
                opened += 1;
                let place = open(files, *id).ok().and_then(|fd| extent_fingerprint(&fd));
                places.extend(place.map(|place| (*id, place)));
            }
        }
        if places.is_empty() {
            continue;
        }
        for (id, place) in places {
            files.set_share(id, place);
            let dir = files.file(id).dir;
            files.dirs[dir as usize].dirty = true;
        }
        groups.weigh(files, number);
        changed = true;
    }
    if changed {
        groups.sort();
    }
    opened
}

fn open(files: &Files, id: FileId) -> Result<OwnedFd, Errno> {
    files.roots.open_file(&files.path(id))
}

/// A fingerprint of where a file lies: equal for two files exactly when all their extents are the
/// same. `None` when the place of a part is not known (not yet written, or inside metadata).
pub(crate) fn extent_fingerprint(fd: &OwnedFd) -> Option<u64> {
    let extents = sys::read_extents(fd, EXTENTS).ok()?;
    if extents.is_empty() || extents.len() >= EXTENTS || extents.iter().any(|one| !one.known) {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    // Neighbouring extents of one run may be reported in one piece or in several.
    let mut runs: Vec<sys::Extent> = Vec::new();
    for extent in extents {
        match runs.last_mut() {
            Some(last)
                if last.logical + last.length == extent.logical
                    && last.physical + last.length == extent.physical =>
            {
                last.length += extent.length;
            }
            _ => runs.push(extent),
        }
    }
    for run in runs {
        hasher.update(&run.logical.to_le_bytes());
        hasher.update(&run.physical.to_le_bytes());
        hasher.update(&run.length.to_le_bytes());
    }
    let hash = hasher.finalize();
    hash.as_bytes()
        .first_chunk()
        .map(|head| u64::from_le_bytes(*head))
}

//! Stage 5, on file systems with reflinks: finds copies that already share blocks. Removing such a copy frees nothing.

use crate::group::Groups;
use crate::table::{FileId, Files};
use crate::{fsinfo, sys};
use rustix::io::Errno;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// Maximum number of extents examined per file. A file with more extents counts as unshared.
const EXTENTS: usize = 65_536;

/// Returns whether a root is on a file system with reflinks. Copies on other file systems below the root count as
/// unshared.
pub(crate) fn is_possible(roots: &[std::path::PathBuf]) -> bool {
    roots
        .iter()
        .any(|root| fsinfo::has_reflinks(rustix::fs::statfs(root)))
}

/// Reads the extents of copies whose extents are unknown. Returns the number of opened files.
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

/// Returns the [`extent_fingerprint`] of a file as it is stored now; `None` on file systems without reflinks.
pub(crate) fn read_share(files: &Files, id: FileId) -> Option<u64> {
    let fd = open(files, id).ok()?;
    fsinfo::has_reflinks(rustix::fs::fstatfs(&fd)).then(|| extent_fingerprint(&fd))?
}

fn open(files: &Files, id: FileId) -> Result<OwnedFd, Errno> {
    files.roots.open_file(&files.path(id))
}

/// Computes a fingerprint of a file's location on disk. Two files have equal fingerprints exactly if all their extents
/// are the same. Returns `None` if the location of a part is unknown (not yet written, or in metadata).
pub(crate) fn extent_fingerprint(fd: &OwnedFd) -> Option<u64> {
    let extents = sys::read_extents(fd, EXTENTS).ok()?;
    if extents.is_empty() || extents.len() >= EXTENTS || extents.iter().any(|one| !one.known) {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    // The kernel may report neighbouring extents of one run as one or several.
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

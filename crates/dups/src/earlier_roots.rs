//! The roots of earlier scans: how they were scanned, and whether they are still there.

use crate::index::{Index, Root};
use crate::scan::ScanOptions;
use crate::scan_options::RootScanOptions;
use crate::{Error, fsinfo, sys};
use rustix::fs::{Mode, OFlags};
use std::collections::HashSet;
use std::path::PathBuf;

/// The manner of each root. What is hashed is decided for all together, because they are compared with
/// each other.
pub(crate) fn read_root_options(
    roots: &[PathBuf],
    options: &ScanOptions,
    index: Option<&Index>,
) -> Result<Vec<(PathBuf, RootScanOptions)>, Error> {
    let before = match index {
        Some(index) if options.as_before => index.roots()?,
        _ => Vec::new(),
    };
    let asked = RootScanOptions {
        walk: options.walk.clone(),
        hash_all: options.hash_all,
    };
    let mut manners: Vec<(PathBuf, RootScanOptions)> = roots
        .iter()
        .map(|path| {
            let known = before.iter().find(|one| one.is_here(path));
            let manner = known.map_or_else(|| asked.clone(), |one| one.manner.clone());
            (path.clone(), manner)
        })
        .collect();
    let all = options.hash_all || manners.iter().any(|one| one.1.hash_all);
    manners.iter_mut().for_each(|one| one.1.hash_all = all);
    Ok(manners)
}

/// Roots of earlier scans that lie within those of this one and are none of them.
#[derive(Debug, Default)]
pub struct Within {
    /// This scan has gone through them, so that it decides from now on what is looked at there.
    pub(crate) superseded: Vec<PathBuf>,
    /// It has not: they lie on other file systems, or on some that are not mounted. What is remembered of
    /// them stays.
    pub(crate) apart: Vec<PathBuf>,
}

impl Within {
    pub(crate) fn of(
        roots: &[(PathBuf, RootScanOptions)],
        index: &Index,
        entered: &HashSet<(u64, u64)>,
    ) -> Result<Self, Error> {
        let mut found = Self::default();
        for one in index.roots()? {
            let inside = |(root, _): &(PathBuf, RootScanOptions)| one.path.starts_with(root);
            let is_one = roots.iter().any(|(root, _)| *root == one.path);
            if !one.machine.is_empty() || is_one || !roots.iter().any(inside) {
                continue;
            }
            let stat = rustix::fs::stat(&one.path);
            let gone_through = stat.is_ok_and(|stat| entered.contains(&(stat.st_dev, stat.st_ino)));
            match gone_through && index.presence(&one)? == Presence::There {
                true => found.superseded.push(one.path),
                false => found.apart.push(one.path),
            }
        }
        Ok(found)
    }

    /// Whether a folder belongs to a root that this scan has not gone through.
    pub(crate) fn is_apart(&self, folder: &[u8]) -> bool {
        let folder = sys::path_from_bytes(folder);
        self.apart.iter().any(|root| folder.starts_with(root))
    }
}

/// Whether a root is still what was scanned.
#[derive(Debug, PartialEq, Eq)]
pub enum Presence {
    /// It is, as far as can be told without scanning it.
    There,
    /// It cannot be opened, for this reason.
    Gone(String),
    /// It lies on another file system than its files did: probably theirs is not mounted.
    Elsewhere,
}

impl Index {
    /// Looks whether a root of an earlier scan is still there. Where it was scanned with what lies on other
    /// file systems, another one does not tell anything.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn presence(&self, root: &Root) -> Result<Presence, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let now = rustix::fs::open(&root.path, flags, Mode::empty()).and_then(|fd| {
            let device = sys::statx_device(&sys::stat_fd(&fd)?);
            let fsid = fsinfo::read_fs_info(&fd, device).fsid;
            // A device number, which NFS and XFS are known by, may be another after a reboot.
            Ok((fsid != device.cast_signed()).then_some(fsid))
        });
        let now = match now {
            Ok(now) => now,
            Err(errno) => return Ok(Presence::Gone(sys::describe_errno(errno))),
        };
        let known = self.filesystems(&root.path)?;
        let told = !root.manner.walk.other_filesystems && !known.is_empty();
        Ok(match now {
            Some(fsid) if told && !known.contains(&fsid) => Presence::Elsewhere,
            _ => Presence::There,
        })
    }
}

//! Roots of earlier scans: how they were scanned, and whether they still exist.

use crate::index::{Index, Root};
use crate::scan::ScanOptions;
use crate::scan_options::RootScanOptions;
use crate::{Error, fsinfo, sys};
use rustix::fs::{Mode, OFlags};
use std::collections::HashSet;
use std::path::PathBuf;

/// Returns the scan options of each root. If one root needs hashes of all files, all roots do, because their files are
/// compared with each other.
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

/// Earlier roots that lie below the roots of this scan and are not among them.
#[derive(Debug, Default)]
pub struct Within {
    /// Roots that this scan covered completely. The options of this scan replace the stored options of these roots.
    pub(crate) superseded: Vec<PathBuf>,
    /// Roots that this scan did not cover, on other or unmounted file systems. Their index entries stay.
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

    /// Returns whether a folder belongs to a root that this scan did not cover.
    pub(crate) fn is_apart(&self, folder: &[u8]) -> bool {
        let folder = sys::path_from_bytes(folder);
        self.apart.iter().any(|root| folder.starts_with(root))
    }
}

/// Whether the folder of an earlier root is still the folder that was scanned.
#[derive(Debug, PartialEq, Eq)]
pub enum Presence {
    /// The folder still exists, as far as can be known without a scan.
    There,
    /// The folder cannot be opened, for the given reason.
    Gone(String),
    /// The path leads to another file system than at the last scan; probably the scanned file system is not mounted.
    Elsewhere,
}

impl Index {
    /// Checks whether an earlier root still exists. If the earlier scan also entered other file systems, a changed file
    /// system proves nothing.
    ///
    /// # Errors
    /// The index cannot be read.
    pub fn presence(&self, root: &Root) -> Result<Presence, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let now = rustix::fs::open(&root.path, flags, Mode::empty()).and_then(|fd| {
            let device = sys::statx_device(&sys::stat_fd(&fd)?);
            let fsid = fsinfo::read_fs_info(&fd, device).fsid;
            // The device number, which identifies NFS and XFS, may change at a reboot.
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

//! How each root is scanned: as asked, or as it was scanned before.

use crate::Error;
use crate::index::{Index, Root};
use crate::scan::ScanOptions;
use crate::walk::WalkOptions;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::PathBuf;

/// What the index remembers of how a root was scanned.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manner {
    /// Which files were looked at.
    pub walk: WalkOptions,
    /// Whether all of them were hashed; see [`ScanOptions::hash_all`].
    pub hash_all: bool,
}

/// The manner of each root. What is hashed is decided for all together, because they are compared with
/// each other.
pub(crate) fn of(
    roots: &[PathBuf],
    options: &ScanOptions,
    index: Option<&Index>,
) -> Result<Vec<(PathBuf, Manner)>, Error> {
    let before = match index {
        Some(index) if options.as_before => index.roots()?,
        _ => Vec::new(),
    };
    let asked = Manner {
        walk: options.walk.clone(),
        hash_all: options.hash_all,
    };
    let mut manners: Vec<(PathBuf, Manner)> = roots
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

/// Roots of earlier scans that this one has gone through on its way, so that it now decides what is looked
/// at in them.
pub(crate) fn superseded(
    roots: &[(PathBuf, Manner)],
    known: &[Root],
    entered: &HashSet<(u64, u64)>,
) -> Vec<PathBuf> {
    let within = |one: &&Root| {
        one.machine.is_empty()
            && roots.iter().any(|(root, _)| one.path.starts_with(root))
            && roots.iter().all(|(root, _)| one.path != *root)
    };
    let gone_through = |one: &&Root| match rustix::fs::stat(&one.path) {
        Ok(stat) => entered.contains(&(stat.st_dev, stat.st_ino)),
        Err(errno) => errno == rustix::io::Errno::NOENT,
    };
    let found = known.iter().filter(within).filter(gone_through);
    found.map(|one| one.path.clone()).collect()
}

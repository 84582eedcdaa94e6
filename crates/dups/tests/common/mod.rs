//! Trees to scan, and the slow truth about them.
#![allow(clippy::disallowed_methods, dead_code, missing_docs)]

use assay_dups::{Control, Index, Progress, Scan, ScanOptions, scan};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Runs something with a control that nobody stops.
pub fn free<T>(work: impl FnOnce(&Control<'_>) -> T) -> T {
    let stop = AtomicBool::new(false);
    work(&Control {
        stop: &stop,
        progress: &Progress::default(),
        tick: &|| {},
        threads: None,
    })
}

pub fn scan_tree(root: &Path, options: &ScanOptions, index: Option<&mut Index>) -> Scan {
    free(|control| scan(&[root.to_path_buf()], options, index, control)).unwrap()
}

/// Groups as sets of inodes with the least path of each, hard links taken together.
pub type Groups = BTreeSet<Vec<Vec<u8>>>;

pub fn groups_of(scan: &Scan) -> Groups {
    scan.groups
        .iter()
        .map(|group| group.files.iter().map(|id| scan.files.path(*id)).collect())
        .collect()
}

/// Names by device and inode.
type Inodes = BTreeMap<(u64, u64), BTreeSet<Vec<u8>>>;

/// SHA-256 of every regular file that is not empty, by plain means.
pub fn oracle(root: &Path) -> Groups {
    let mut contents: BTreeMap<Vec<u8>, Inodes> = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    let mut seen = HashSet::new();
    while let Some(folder) = folders.pop() {
        let meta = std::fs::symlink_metadata(&folder).unwrap();
        if !seen.insert((meta.dev(), meta.ino())) {
            continue;
        }
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                folders.push(path);
            } else if meta.is_file() && meta.len() > 0 {
                let hash = Sha256::digest(std::fs::read(&path).unwrap()).to_vec();
                contents
                    .entry(hash)
                    .or_default()
                    .entry((meta.dev(), meta.ino()))
                    .or_default()
                    .insert(path.as_os_str().as_bytes().to_vec());
            }
        }
    }
    contents
        .into_values()
        .filter(|inodes| inodes.len() > 1)
        .map(|inodes| {
            let mut names: Vec<_> = inodes
                .into_values()
                .map(|names| names.into_iter().next().unwrap())
                .collect();
            names.sort();
            names
        })
        .collect()
}

/// Bytes that look random and depend on the seed alone.
pub fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

pub fn put(path: PathBuf, content: &[u8]) -> PathBuf {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, content).unwrap();
    path
}

/// Lets the clock of file times move on so far that nothing counts as just changed.
pub fn let_settle() {
    std::thread::sleep(std::time::Duration::from_millis(80));
}

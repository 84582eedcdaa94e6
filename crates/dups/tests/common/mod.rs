//! Creates trees to scan, and computes reference results with slow methods.
#![allow(clippy::disallowed_methods, dead_code, missing_docs)]

use assay_dups::act::execute::{ActOptions, ActOutcome, Moment, execute};
use assay_dups::act::journal::Journal;
use assay_dups::act::plan::{ActPlan, PlanRules, plan};
use assay_dups::act::{ActStep, Action};
use assay_dups::{Control, Index, Scan, ScanOptions, ScanProgress, scan};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// Runs a function with a control that is never stopped.
pub fn free<T>(work: impl FnOnce(&Control<'_>) -> T) -> T {
    let stop = AtomicBool::new(false);
    work(&Control {
        stop: &stop,
        progress: &ScanProgress::default(),
        tick: &|| {},
        threads: None,
    })
}

pub fn scan_tree(root: &Path, options: &ScanOptions, index: Option<&mut Index>) -> Scan {
    free(|control| scan(&[root.to_path_buf()], options, index, control)).unwrap()
}

/// Groups as sets of inodes, each with its first path; hard links count as one.
pub type Groups = BTreeSet<Vec<Vec<u8>>>;

pub fn groups_of(scan: &Scan) -> Groups {
    scan.groups
        .iter()
        .map(|group| group.files.iter().map(|id| scan.files.path(*id)).collect())
        .collect()
}

/// Names by device and inode.
type Inodes = BTreeMap<(u64, u64), BTreeSet<Vec<u8>>>;

/// Groups all regular files that are not empty by SHA-256, computed directly.
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

/// Returns pseudorandom bytes that depend only on the seed.
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

/// Waits until the clock of file times has advanced so far that no file counts as just changed.
pub fn let_settle() {
    std::thread::sleep(std::time::Duration::from_millis(80));
}

/// A tree for actions, with an index outside of the tree.
pub struct Place {
    pub dir: tempfile::TempDir,
    /// See `ActOptions::plain_renames`.
    pub plain: bool,
}

impl Place {
    pub fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            plain: false,
        }
    }

    pub fn root(&self) -> PathBuf {
        self.dir.path().join("tree")
    }

    pub fn db(&self) -> PathBuf {
        self.dir.path().join("index.db")
    }

    pub fn scan(&self) -> Scan {
        scan_tree(&self.root(), &ScanOptions::default(), None)
    }

    pub fn plan(&self, action: &Action, rules: &PlanRules) -> ActPlan {
        let scan = self.scan();
        plan(&scan.files, &scan.groups, action, rules).unwrap()
    }

    pub fn act(
        &self,
        plan: &ActPlan,
        interfere: &dyn Fn(Moment, &ActStep),
    ) -> (ActOutcome, PathBuf) {
        let mut journal = Journal::begin(&self.db()).unwrap();
        let options = ActOptions {
            interfere,
            plain_renames: self.plain,
            ..ActOptions::default()
        };
        let outcome = free(|control| execute(plan, &mut journal, &options, control)).unwrap();
        (outcome, journal.path().to_path_buf())
    }
}

/// A mounted file system in a file. Requires root, loop devices and mkfs.
pub struct Mount(pub PathBuf);

impl Mount {
    pub fn new(dir: &Path, kind: &str, arguments: &[&str]) -> Option<Self> {
        let image = dir.join(format!("{kind}.img"));
        std::fs::File::create(&image)
            .unwrap()
            .set_len(512 << 20)
            .unwrap();
        let point = dir.join(kind);
        std::fs::create_dir(&point).unwrap();
        let run = |program: &str, arguments: &[&std::ffi::OsStr]| {
            std::process::Command::new(program)
                .args(arguments)
                .output()
                .is_ok_and(|done| done.status.success())
        };
        let mut mkfs: Vec<&std::ffi::OsStr> = arguments.iter().map(|one| (*one).as_ref()).collect();
        mkfs.push(image.as_os_str());
        let options = [
            "-o".as_ref(),
            "loop".as_ref(),
            image.as_os_str(),
            point.as_os_str(),
        ];
        if !run(&format!("mkfs.{kind}"), &mkfs) || !run("mount", &options) {
            assay_testing::skipped(
                "loop",
                format!("no {kind} can be made and mounted (root, loop devices, mkfs.{kind})"),
            );
            return None;
        }
        Some(Self(point))
    }
}

impl Mount {
    /// Mounts a file system without a device, such as a small one in memory.
    pub fn plain(point: &Path, kind: &str, options: &str) -> Option<Self> {
        let done = std::process::Command::new("mount")
            .args(["-t", kind, "-o", options, kind])
            .arg(point)
            .output();
        if !done.is_ok_and(|done| done.status.success()) {
            assay_testing::skipped("root", format!("{kind} cannot be mounted"));
            return None;
        }
        Some(Self(point.to_path_buf()))
    }

    /// Mounts a folder at a second mount point.
    pub fn bind(from: &Path, point: &Path) -> Option<Self> {
        let done = std::process::Command::new("mount")
            .arg("--bind")
            .args([from, point])
            .output();
        if !done.is_ok_and(|done| done.status.success()) {
            assay_testing::skipped("root", "nothing can be bind-mounted");
            return None;
        }
        Some(Self(point.to_path_buf()))
    }

    /// Mounts a file system in memory.
    pub fn memory(point: &Path, options: &str) -> Option<Self> {
        Self::plain(point, "tmpfs", options)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

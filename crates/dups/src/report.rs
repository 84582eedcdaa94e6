//! Questions to a table of files: by folder, by file, what has no copy.

use crate::group::Group;
use crate::table::{FileId, Files, Hash, join};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Files without any copy: no other inode in the table has the same content.
///
/// Files of one content that are all names of one inode are unique too.
pub fn uniques(files: &Files, groups: &[Group]) -> Vec<FileId> {
    let mut copied = vec![false; files.files.len()];
    for group in groups {
        for id in group
            .files
            .iter()
            .chain(group.links.iter().map(|one| &one.0))
        {
            copied[*id as usize] = true;
        }
    }
    let mut found: Vec<FileId> = (0..files.files.len() as FileId)
        .filter(|id| !copied[*id as usize])
        .collect();
    found.sort_unstable_by(|a, b| crate::group::compare_paths(files, *a, *b));
    found
}

/// The group that each file belongs to, by file; `u32::MAX` = none.
pub fn group_of(files: &Files, groups: &[Group]) -> Vec<u32> {
    let mut of = vec![u32::MAX; files.files.len()];
    for (number, group) in groups.iter().enumerate() {
        for id in group
            .files
            .iter()
            .chain(group.links.iter().map(|one| &one.0))
        {
            of[*id as usize] = number as u32;
        }
    }
    of
}

/// The file at a path on this machine, if the table has it.
pub fn find(files: &Files, path: &[u8]) -> Option<FileId> {
    let (folder, name) = crate::index::split(path);
    (0..files.dirs.len() as u32)
        .filter(|dir| files.dir_path(*dir) == folder)
        .flat_map(|dir| files.dir_files(dir))
        .find(|id| files.name(*id) == name && files.machine(*id).is_empty())
}

/// Folders with the same names and contents all the way down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameFolders {
    /// Their paths, sorted; a machine's name and a colon stand before those of other machines.
    pub paths: Vec<Vec<u8>>,
    /// Files in each.
    pub files: u64,
    /// Bytes in each.
    pub bytes: u64,
}

/// Two folders that have contents in common; their subfolders are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// One.
    pub a: Vec<u8>,
    /// The other.
    pub b: Vec<u8>,
    /// Files of `a` with a copy in `b`.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of all files in `a`.
    pub bytes_a: u64,
    /// Bytes of all files in `b`.
    pub bytes_b: u64,
}

/// How folders relate.
#[derive(Debug, Default)]
pub struct Folders {
    /// Wholly equal, most bytes first; those inside others that are listed are left out.
    pub same: Vec<SameFolders>,
    /// Equal in part, most bytes first.
    pub overlapping: Vec<Overlap>,
}

/// Contents in more folders than this say nothing about two of them (licences, empty templates).
const COMMON: usize = 8;

#[derive(Default)]
struct Node {
    entries: Vec<(Vec<u8>, Hash)>,
    files: u64,
    bytes: u64,
    unknown: bool,
    digest: Option<Hash>,
}

/// Compares folders.
pub fn folders(files: &Files, groups: &[Group]) -> Folders {
    let mut tree: BTreeMap<Vec<u8>, Node> = BTreeMap::new();
    let label = |dir: u32| {
        let machine = &files.filesystems[usize::from(files.dirs[dir as usize].fs)].machine;
        match machine.is_empty() {
            true => files.dir_path(dir).to_vec(),
            false => [machine.as_bytes(), b":", files.dir_path(dir)].concat(),
        }
    };
    for dir in 0..files.dirs.len() as u32 {
        let node = tree.entry(label(dir)).or_default();
        for id in files.dir_files(dir) {
            node.files += 1;
            node.bytes += files.file(id).id.size;
            match files.hash(id) {
                Some(hash) => node.entries.push((files.name(id).to_vec(), *hash)),
                None => node.unknown = true,
            }
        }
        let mut path = label(dir);
        while let Some(at) = path
            .iter()
            .rposition(|byte| *byte == b'/')
            .filter(|at| *at > 0)
        {
            path.truncate(at);
            if tree.contains_key(&path) {
                break;
            }
            tree.insert(path.clone(), Node::default());
        }
    }
    let same = same_folders(&mut tree);
    let tops: HashSet<&[u8]> = same
        .iter()
        .flat_map(|one| &one.paths)
        .map(Vec::as_slice)
        .collect();
    let inside = |path: &[u8]| {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        ends.map(|(at, _)| at)
            .chain([path.len()])
            .any(|at| tops.contains(&path[..at]))
    };
    let mut overlapping = overlaps(files, groups, &label);
    overlapping.retain(|one| !(inside(&one.a) && inside(&one.b)));
    Folders { same, overlapping }
}

/// Fills in the digests from the leaves up and collects equal ones.
fn same_folders(tree: &mut BTreeMap<Vec<u8>, Node>) -> Vec<SameFolders> {
    let paths: Vec<Vec<u8>> = tree.keys().cloned().collect();
    let mut by_digest: HashMap<Hash, Vec<usize>> = HashMap::new();
    // A folder sorts before all that is in it.
    for (number, path) in paths.iter().enumerate().rev() {
        let Some(node) = tree.get_mut(path) else {
            continue;
        };
        if !node.unknown {
            node.entries.sort_unstable();
            let mut hasher = blake3::Hasher::new();
            for (name, hash) in &node.entries {
                hasher.update(&(name.len() as u64).to_le_bytes());
                hasher.update(name);
                hasher.update(hash);
            }
            let digest = *hasher.finalize().as_bytes();
            node.digest = Some(digest);
            by_digest.entry(digest).or_default().push(number);
        }
        let (digest, files, bytes) = (node.digest, node.files, node.bytes);
        node.entries = Vec::new();
        let (above, name) = crate::index::split(path);
        if let Some(parent) = tree.get_mut(above).filter(|_| above != path.as_slice()) {
            parent.files += files;
            parent.bytes += bytes;
            match digest {
                // The slash keeps folders and files of one name apart.
                Some(digest) => parent.entries.push((join(name, b""), digest)),
                None => parent.unknown = true,
            }
        }
    }
    let mut found: Vec<SameFolders> = by_digest
        .into_values()
        .filter(|alike| alike.len() > 1)
        .filter_map(|mut alike| {
            alike.sort_unstable();
            // Left out when the folders above are copies of each other in the same way.
            // Two in one and the same folder are news.
            let above: Vec<&[u8]> = alike
                .iter()
                .map(|number| crate::index::split(&paths[*number]).0)
                .collect();
            let distinct: HashSet<&[u8]> = above.iter().copied().collect();
            let digest = |path: &[u8]| tree.get(path).and_then(|node| node.digest);
            let first = digest(above[0]);
            let covered = first.is_some()
                && distinct.len() == above.len()
                && above.iter().all(|path| digest(path) == first);
            let node = &tree[&paths[alike[0]]];
            (!covered).then(|| SameFolders {
                paths: alike.iter().map(|number| paths[*number].clone()).collect(),
                files: node.files,
                bytes: node.bytes,
            })
        })
        .filter(|one| one.files > 0)
        .collect();
    found.sort_by(|a, b| {
        let gain = |one: &SameFolders| one.bytes * (one.paths.len() as u64 - 1);
        gain(b).cmp(&gain(a)).then_with(|| a.paths.cmp(&b.paths))
    });
    found
}

fn overlaps(files: &Files, groups: &[Group], label: &dyn Fn(u32) -> Vec<u8>) -> Vec<Overlap> {
    let mut pairs: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
    for group in groups {
        let mut dirs: Vec<u32> = group.files.iter().map(|id| files.file(*id).dir).collect();
        dirs.sort_unstable();
        dirs.dedup();
        if dirs.len() > COMMON {
            continue;
        }
        for (at, a) in dirs.iter().enumerate() {
            for b in &dirs[at + 1..] {
                let pair = pairs.entry((*a, *b)).or_default();
                pair.0 += 1;
                pair.1 += group.size;
            }
        }
    }
    let total = |dir: u32| -> u64 { files.dir_files(dir).map(|id| files.file(id).id.size).sum() };
    let mut found: Vec<Overlap> = pairs
        .into_iter()
        .map(|((a, b), (count, bytes))| {
            let (path_a, path_b) = (label(a), label(b));
            let (a, b, path_a, path_b) = match path_a <= path_b {
                true => (a, b, path_a, path_b),
                false => (b, a, path_b, path_a),
            };
            Overlap {
                a: path_a,
                b: path_b,
                files: count,
                bytes,
                bytes_a: total(a),
                bytes_b: total(b),
            }
        })
        .collect();
    found.sort_by(|x, y| {
        y.bytes
            .cmp(&x.bytes)
            .then_with(|| (&x.a, &x.b).cmp(&(&y.a, &y.b)))
    });
    found
}

/// Compares every group byte by byte once more and returns what no longer agrees.
pub fn validate(
    files: &Files,
    groups: &[Group],
    control: &crate::Control<'_>,
) -> (crate::Skipped, Vec<FileId>) {
    let (learnt, differing) = crate::compare::verify(files, groups, control);
    (learnt.skipped, differing)
}

//! Finds folders that are complete or partial copies of each other.

use crate::group::{bucket_by_content, doubtful_places, has_repeated_inodes};
use crate::name::split;
use crate::store::SpillArray;
use crate::table::{FileId, Files, Hash, NO_HASH};
use std::borrow::Cow;
use std::collections::HashMap;

/// Folders that have the same names and contents at all levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameFolders {
    /// Paths of the folders, sorted. The path of a folder on another machine begins with the name of this machine and a
    /// colon.
    pub paths: Vec<Vec<u8>>,
    /// Number of files in each folder.
    pub files: u64,
    /// Total size of the files in each folder in bytes.
    pub bytes: u64,
    /// Number of the folders that may be the same as another folder of the list, see
    /// [`crate::group::DuplicateGroup::doubtful`].
    pub doubtful: u64,
}

impl SameFolders {
    /// Returns the bytes of all folders beyond the first. Folders that may be the same as another folder are not
    /// counted.
    #[must_use]
    pub fn redundant_bytes(&self) -> u64 {
        let copies = (self.paths.len() as u64).saturating_sub(1);
        let copies = copies.saturating_sub(self.doubtful.saturating_sub(1));
        self.bytes.saturating_mul(copies)
    }
}

/// Two folders that have contents in common. Their subfolders are not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overlap {
    /// Number of the first folder in [`Files::dirs`]; [`folder_label`] returns its path.
    pub a: u32,
    /// Number of the second folder.
    pub b: u32,
    /// Number of files in `a` that have a copy in `b`.
    pub files: u64,
    /// Total size of the files in bytes.
    pub bytes: u64,
    /// Size of all files in `a` in bytes.
    pub bytes_a: u64,
    /// Size of all files in `b` in bytes.
    pub bytes_b: u64,
    /// Whether the two folders may show the same files.
    pub doubtful: bool,
}

/// Which folders are complete or partial copies of each other.
#[derive(Debug, Default)]
pub struct Folders {
    /// Equal folders, most bytes first. A folder within another listed folder is omitted.
    pub same: Vec<SameFolders>,
    /// Partly equal folders, most bytes first.
    pub overlapping: Vec<Overlap>,
}

/// Maximum number of folders in which a content may occur. A content that occurs more often, such as a licence, is no
/// evidence that two folders are related.
const COMMON: usize = 8;
const NONE: u32 = u32::MAX;

/// Returns the path of a folder. For a folder on another machine, the machine's name and a colon precede the path.
pub fn folder_label(files: &Files, dir: u32) -> Cow<'_, [u8]> {
    let machine = &files.filesystems[usize::from(files.dirs[dir as usize].fs)].machine;
    match machine.is_empty() {
        true => files.dir_path(dir).into(),
        false => [machine.as_bytes(), b":", files.dir_path(dir)]
            .concat()
            .into(),
    }
}

/// Finds folders that are complete or partial copies of each other.
pub fn compare_folders(files: &Files) -> Folders {
    let labels: Vec<Cow<'_, [u8]>> = (0..files.dirs.len() as u32)
        .map(|dir| folder_label(files, dir))
        .collect();
    let mut members = SpillArray::default();
    let (ends, mut tree) = std::thread::scope(|scope| {
        let tree = scope.spawn(|| Tree::new(files, &labels));
        let ends = bucket_by_content(files, &mut members);
        let tree = crate::pool::join(tree);
        (ends, tree)
    });
    tree.digest(files, &ends);
    let same = tree.same(files);
    let mut overlapping = find_overlaps(files, &tree, &members, &ends);
    overlapping.sort_unstable_by(|x, y| {
        let names = |one: &Overlap| (&labels[one.a as usize], &labels[one.b as usize]);
        y.bytes.cmp(&x.bytes).then_with(|| names(x).cmp(&names(y)))
    });
    Folders { same, overlapping }
}

/// A folder of the tree, with or without files of its own.
struct Node<'a> {
    path: &'a [u8],
    parent: u32,
    first_child: u32,
    next_sibling: u32,
    /// Number of the folder in the table, if it has files.
    dir: u32,
    files: u64,
    bytes: u64,
    /// Whether the folder contains a file without a copy, so that it cannot be equal to another folder.
    lone: bool,
    digest: Option<Hash>,
    /// Whether the folder or one of its parents is already listed as a copy.
    told: bool,
}

struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    /// Number of the node for each folder of the table.
    of: Vec<u32>,
    /// Nodes in bottom-up order.
    upwards: Vec<u32>,
}

impl<'a> Tree<'a> {
    fn new(files: &Files, labels: &'a [Cow<'a, [u8]>]) -> Self {
        let mut nodes: Vec<Node<'a>> = Vec::with_capacity(labels.len() * 2);
        let mut known: HashMap<&'a [u8], u32> = HashMap::with_capacity(labels.len() * 2);
        let mut of = Vec::with_capacity(labels.len());
        for (dir, label) in labels.iter().enumerate() {
            let mut path: &'a [u8] = label;
            let mut below = NONE;
            loop {
                let found = known.get(path).copied();
                let number = found.unwrap_or_else(|| {
                    known.insert(path, nodes.len() as u32);
                    nodes.push(Node {
                        path,
                        parent: NONE,
                        first_child: NONE,
                        next_sibling: NONE,
                        dir: NONE,
                        files: 0,
                        bytes: 0,
                        lone: false,
                        digest: None,
                        told: false,
                    });
                    nodes.len() as u32 - 1
                });
                match below {
                    NONE => of.push(number),
                    below => {
                        nodes[below as usize].parent = number;
                        nodes[below as usize].next_sibling = nodes[number as usize].first_child;
                        nodes[number as usize].first_child = below;
                    }
                }
                let above = split(path).0;
                if found.is_some() || above.is_empty() || above == path {
                    break;
                }
                (below, path) = (number, above);
            }
            let node = &mut nodes[of[dir] as usize];
            node.dir = dir as u32;
            for id in files.dir_files(dir as u32) {
                node.files += 1;
                node.bytes += files.file(id).id.size;
            }
        }
        let mut upwards: Vec<u32> = (0..nodes.len() as u32).collect();
        // A subfolder has a longer path than its parent.
        upwards.sort_unstable_by_key(|number| usize::MAX - nodes[*number as usize].path.len());
        Self { nodes, of, upwards }
    }

    /// Computes totals from the leaves to the root, and a digest of names and contents for each folder that can be a
    /// copy. `ends` contains the end of each content in the list of files ordered by content.
    fn digest(&mut self, files: &Files, ends: &[u32]) {
        let lone = |id: FileId| {
            let hash = files.file(id).hash;
            hash == NO_HASH || {
                let begin = (hash as usize).checked_sub(1).map_or(0, |at| ends[at]);
                ends[hash as usize] - begin < 2
            }
        };
        let mut text = Vec::new();
        for number in &self.upwards {
            let node = &self.nodes[*number as usize];
            let own = match node.dir {
                NONE => 0..0,
                dir => files.dir_files(dir),
            };
            let lone = node.lone || own.clone().any(lone);
            let mut digest = None;
            if !lone {
                let mut entries: Vec<(&[u8], bool, &Hash)> = own
                    .filter_map(|id| Some((files.name(id), false, files.hash(id)?)))
                    .collect();
                let mut child = node.first_child;
                while child != NONE {
                    let below = &self.nodes[child as usize];
                    entries.extend(
                        below
                            .digest
                            .iter()
                            .map(|one| (split(below.path).1, true, one)),
                    );
                    child = below.next_sibling;
                }
                entries.sort_unstable();
                text.clear();
                for (name, folder, hash) in entries {
                    text.extend_from_slice(&(name.len() as u32).to_le_bytes());
                    text.push(folder.into());
                    text.extend_from_slice(name);
                    text.extend_from_slice(hash);
                }
                digest = Some(*blake3::hash(&text).as_bytes());
            }
            let (parent, count, bytes) = (node.parent, node.files, node.bytes);
            self.nodes[*number as usize].digest = digest;
            if parent != NONE {
                let parent = &mut self.nodes[parent as usize];
                parent.files += count;
                parent.bytes += bytes;
                parent.lone |= lone;
            }
        }
    }

    /// Finds groups of folders with equal digests, and marks the folders as listed.
    fn same(&mut self, files: &Files) -> Vec<SameFolders> {
        let mut by_digest: Vec<(Hash, u32)> = (0..self.nodes.len() as u32)
            .filter_map(|number| Some((self.nodes[number as usize].digest?, number)))
            .filter(|(_, number)| self.nodes[*number as usize].files > 0)
            .collect();
        by_digest.sort_unstable();
        let mut found = Vec::new();
        for alike in by_digest.chunk_by(|a, b| a.0 == b.0) {
            if alike.len() < 2 || self.covered(alike) {
                continue;
            }
            let first = &self.nodes[alike[0].1 as usize];
            let mut one = SameFolders {
                paths: Vec::with_capacity(alike.len()),
                files: first.files,
                bytes: first.bytes,
                doubtful: 0,
            };
            for (_, number) in alike {
                let node = &mut self.nodes[*number as usize];
                node.told = true;
                one.paths.push(node.path.to_vec());
            }
            one.paths.sort_unstable();
            let places = one.paths.iter().map(|path| place(path));
            let doubtful = doubtful_places(files, places);
            one.doubtful = doubtful.iter().filter(|one| **one).count() as u64;
            found.push(one);
        }
        for number in self.upwards.iter().rev() {
            let parent = self.nodes[*number as usize].parent;
            if parent != NONE && self.nodes[parent as usize].told {
                self.nodes[*number as usize].told = true;
            }
        }
        found.sort_unstable_by(|a, b| {
            let gain = SameFolders::redundant_bytes;
            gain(b).cmp(&gain(a)).then_with(|| a.paths.cmp(&b.paths))
        });
        found
    }

    /// Returns whether the parents of these folders are equal, too. Then only the parents are listed. Two copies in the
    /// same parent are always listed.
    fn covered(&self, alike: &[(Hash, u32)]) -> bool {
        let mut above: Vec<u32> = alike
            .iter()
            .map(|(_, number)| self.nodes[*number as usize].parent)
            .collect();
        above.sort_unstable();
        let count = above.len();
        above.dedup();
        let digest = |number: u32| {
            let node = self.nodes.get(number as usize)?;
            node.digest
        };
        let first = digest(above[0]);
        above.len() == count && first.is_some() && above.iter().all(|one| digest(*one) == first)
    }
}

/// Returns the path in a label; `None` if the folder is on another machine.
fn place(label: &[u8]) -> Option<&[u8]> {
    label.starts_with(b"/").then_some(label)
}

fn find_overlaps(files: &Files, tree: &Tree<'_>, members: &[FileId], ends: &[u32]) -> Vec<Overlap> {
    // Pairs of folders, with the size of each common content.
    let mut pairs: Vec<((u32, u32), u64)> = Vec::new();
    let mut begin = 0;
    let mut found = Vec::new();
    let mut dirs: Vec<u32> = Vec::new();
    for end in ends {
        let ids = &members[begin as usize..*end as usize];
        begin = *end;
        if ids.len() < 2 {
            continue;
        }
        dirs.clear();
        dirs.extend(ids.iter().map(|id| files.file(*id).dir));
        dirs.sort_unstable();
        dirs.dedup();
        if dirs.len() > COMMON {
            continue;
        }
        // Folders whose common files are hard links of one inode contain no copies of each other.
        let linked = has_repeated_inodes(files, ids);
        if linked {
            found.clear();
            found.extend(ids.iter().map(|id| (files.file(*id).dir, files.inode(*id))));
            found.sort_unstable();
            found.dedup();
        }
        let one = |a: u32, b: u32| {
            let mut of = found.iter().filter(|(dir, _)| *dir == a || *dir == b);
            let first = of.next().map(|(_, inode)| *inode);
            linked && of.all(|(_, inode)| Some(*inode) == first)
        };
        let size = files.file(ids[0]).id.size;
        for (at, a) in dirs.iter().enumerate() {
            let told = |dir: u32| tree.nodes[tree.of[dir as usize] as usize].told;
            let others = dirs[at + 1..]
                .iter()
                .filter(|b| !(one(*a, **b) || told(*a) && told(**b)));
            pairs.extend(others.map(|b| ((*a, *b), size)));
        }
    }
    pairs.sort_unstable_by_key(|one| one.0);
    let own = |dir: u32| -> u64 { files.dir_files(dir).map(|id| files.file(id).id.size).sum() };
    let path = |dir: u32| tree.nodes[tree.of[dir as usize] as usize].path;
    pairs
        .chunk_by(|x, y| x.0 == y.0)
        .map(|same| {
            let (a, b) = same[0].0;
            let (a, b) = if path(a) <= path(b) { (a, b) } else { (b, a) };
            Overlap {
                a,
                b,
                files: same.len() as u64,
                bytes: same.iter().map(|one| one.1).sum(),
                bytes_a: own(a),
                bytes_b: own(b),
                doubtful: doubtful_places(files, [a, b].map(|one| place(path(one))).into_iter())
                    .contains(&true),
            }
        })
        .collect()
}

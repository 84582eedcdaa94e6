//! Stage 2: files of equal size, hard links counted once, and what of that is settled already.

use crate::table::{FileId, Files};

/// Files of one size, at least two inodes.
#[derive(Debug, Clone)]
pub struct SizeGroup {
    /// Their common size, bytes.
    pub size: u64,
    /// One name of each inode.
    pub files: std::ops::Range<usize>,
}

/// All files in an order in which equal sizes and then equal inodes are neighbours.
#[derive(Debug, Default)]
pub struct Sizes {
    /// One name of each inode, largest files first.
    pub order: Vec<FileId>,
    /// Groups within `order` that need work: not all compared with each other before.
    pub open: Vec<SizeGroup>,
    /// Further names of inodes, each with the name that stands for its inode in `order`.
    pub links: Vec<(FileId, FileId)>,
}

/// Sorts and groups. With `all`, files of a size of their own are taken too (to hash everything).
pub fn by_size(files: &Files, all: bool) -> Sizes {
    let mut keyed: Vec<(u64, u64, FileId)> = (0..files.files.len() as u32)
        .filter(|id| !files.file(*id).is_aside())
        .map(|id| {
            let file = files.file(id);
            (u64::MAX - file.id.size, file.id.ino, id)
        })
        .collect();
    keyed.sort_unstable();
    let mut sizes = Sizes::default();
    let least = if all { 1 } else { 2 };
    for same_size in keyed.chunk_by(|a, b| a.0 == b.0) {
        let begin = sizes.order.len();
        for same_ino in same_size.chunk_by(|a, b| a.1 == b.1) {
            inodes(files, same_ino, &mut sizes);
        }
        let members = &sizes.order[begin..];
        if members.len() < least {
            sizes.order.truncate(begin);
            // Names of a lone inode are kept in `links`: harmless, they get no hash.
        } else if !settled(files, members, all) {
            sizes.open.push(SizeGroup {
                size: u64::MAX - same_size[0].0,
                files: begin..sizes.order.len(),
            });
        }
    }
    sizes
}

/// Takes one name of each inode; inode numbers repeat between file systems.
fn inodes(files: &Files, same_ino: &[(u64, u64, FileId)], sizes: &mut Sizes) {
    let begin = sizes.order.len();
    for (_, _, id) in same_ino {
        let fs = files.file(*id).fs;
        let first = sizes.order[begin..]
            .iter()
            .find(|one| files.file(**one).fs == fs)
            .copied();
        match first {
            Some(first) => sizes.links.push((*id, first)),
            None => sizes.order.push(*id),
        }
    }
}

/// Whether all were compared with each other before and none changed since: all hashes known, or
/// all compared in the same scan.
fn settled(files: &Files, members: &[FileId], all: bool) -> bool {
    let first = files.file(members[0]).generation;
    members.iter().all(|id| files.hash(*id).is_some())
        || !all && first != 0 && members.iter().all(|id| files.file(*id).generation == first)
}

/// Files of one content, at least two inodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Size of each, bytes.
    pub size: u64,
    /// One name of each inode, sorted by path.
    pub files: Vec<FileId>,
    /// Further names of the same inodes: (name, the one in `files`).
    pub links: Vec<(FileId, FileId)>,
    /// How many of the files have blocks of their own: reflinks of each other count once.
    pub distinct: u64,
}

impl Group {
    /// Bytes that would be free if one copy were left, as far as sizes and known reflinks tell.
    pub fn gain(&self) -> u64 {
        self.size.saturating_mul(self.distinct.saturating_sub(1))
    }

    /// Counts the copies that have blocks of their own.
    pub(crate) fn count_distinct(&mut self, files: &Files) {
        let mut known: Vec<(u16, u64)> = self
            .files
            .iter()
            .filter_map(|id| Some((files.file(*id).fs, *files.shares.get(id)?)))
            .collect();
        let unknown = self.files.len() - known.len();
        known.sort_unstable();
        known.dedup();
        self.distinct = (unknown + known.len()) as u64;
    }
}

/// The groups of equal hash, largest gain first. Names of files in a group are sorted.
pub fn by_hash(files: &Files) -> Vec<Group> {
    let mut keyed: Vec<(u64, u64, FileId)> = (0..files.files.len() as u32)
        .filter_map(|id| {
            let hash = files.hash(id)?;
            let head = u64::from_be_bytes(hash[..8].try_into().unwrap_or_default());
            Some((u64::MAX - files.file(id).id.size, head, id))
        })
        .collect();
    keyed.sort_unstable();
    let mut groups = Vec::new();
    for alike in keyed.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        if alike.len() < 2 {
            continue;
        }
        let mut ids: Vec<FileId> = alike.iter().map(|one| one.2).collect();
        // The first 64 bits agree; the whole hash decides.
        ids.sort_by_key(|id| files.hash(*id));
        for same in ids.chunk_by(|a, b| files.hash(*a) == files.hash(*b)) {
            groups.extend(one_group(files, same));
        }
    }
    sort(files, &mut groups);
    groups
}

/// Largest gain first.
pub(crate) fn sort(files: &Files, groups: &mut [Group]) {
    groups.sort_by(|a, b| {
        (b.gain(), b.size)
            .cmp(&(a.gain(), a.size))
            .then_with(|| files.hash(a.files[0]).cmp(&files.hash(b.files[0])))
    });
}

fn one_group(files: &Files, same: &[FileId]) -> Option<Group> {
    if same.len() < 2 {
        return None;
    }
    let mut ids = same.to_vec();
    ids.sort_unstable_by(|a, b| compare_paths(files, *a, *b));
    let mut group = Group {
        size: files.file(ids[0]).id.size,
        files: Vec::with_capacity(ids.len()),
        links: Vec::new(),
        distinct: 0,
    };
    let several = ids.iter().any(|id| files.file(*id).is_linked());
    let mut first_of = std::collections::HashMap::new();
    for id in ids {
        if !several {
            group.files.push(id);
            continue;
        }
        match first_of.entry(files.inode(id)) {
            std::collections::hash_map::Entry::Occupied(first) => {
                group.links.push((id, *first.get()));
            }
            std::collections::hash_map::Entry::Vacant(none) => {
                none.insert(id);
                group.files.push(id);
            }
        }
    }
    if group.files.len() < 2 {
        return None;
    }
    group.count_distinct(files);
    Some(group)
}

/// Compares two paths bytewise, as if they were written out.
pub fn compare_paths(files: &Files, a: FileId, b: FileId) -> std::cmp::Ordering {
    let (one, two) = (files.file(a), files.file(b));
    if one.dir == two.dir {
        return files.name(a).cmp(files.name(b));
    }
    let (left, right) = (files.dir_path(one.dir), files.dir_path(two.dir));
    let common = left.len().min(right.len());
    left[..common].cmp(&right[..common]).then_with(|| {
        let rest_left = left[common..].iter().chain(b"/").chain(files.name(a));
        let rest_right = right[common..].iter().chain(b"/").chain(files.name(b));
        rest_left.cmp(rest_right)
    })
}
